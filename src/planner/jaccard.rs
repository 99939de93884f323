//! From comparisons of estimated Jaccard distances and similarities to the operator that an index
//! knows.
//!
//! | written | planned |
//! |---|---|
//! | `sig <%> q <= r`, `r >= q <%> sig` | `sig <@ ball(q, r)` |
//! | `sig <%> q < r` | `sig <@ _neardup_ball(q, r, 1)` |
//! | `minhash_similarity(sig, q) >= s` | `sig <@ _neardup_ball(q, s, 2)` |
//! | `minhash_similarity(sig, q) > s` | `sig <@ _neardup_ball(q, s, 3)` |
//! | the opposite of these | `NOT sig <@ ...` |
//! | `sig <%> q = 0`, `minhash_similarity(sig, q) = 1` | `sig <@ ...` |
//! | the same with columns on both sides | `_neardup_within(a, b, bound, kind)` |
//!
//! The operators are the server's own, on float8, to which the parser brings bounds of any other
//! type of number but float4: [`super::conditions`] finds them.
use pgrx::pg_sys::{self, Datum};

use super::catalog::{Catalog, Metric, catalog};
use super::comparison::Comparison;
use super::within::within;
use crate::pg::expr::{Expr, Form};
use crate::pg::fmgr::{Call, export};
use crate::pg::planner::Planner;
use crate::pg::planner_request::UNHANDLED;
use crate::types::signature::Bound;

/// `left <%> right` or `minhash_similarity(left, right)`, found below a comparison.
struct Estimate<'c, 'a> {
    metric: &'c Metric,
    values: [Expr<'a>; 2],
    is_similarity: bool,
}

/// Behind `<%>` and `minhash_similarity`: leaves them as they are. The call makes sure that the
/// library is loaded and knows the extension's objects before the planner is through with the
/// conditions of a query that has one of the two.
fn estimate_support(call: &mut Call) -> Datum {
    catalog(call.function_oid());
    UNHANDLED
}

/// Rewrites a comparison of an estimate, on either side, with a number to the form that this file's
/// table has for it. `comparison` tells which comparison the operator makes; it is called only if a
/// side is an estimate. `None` if neither is, if `comparison` returns `None`, or if the table has
/// no such form. Both sides must have been simplified.
pub fn comparison<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    [left, right]: [Expr<'a>; 2],
    comparison: impl FnOnce() -> Option<Comparison>,
) -> Option<Expr<'a>> {
    if let Some(estimate) = estimate_below(catalog, left) {
        rewrite(planner, &estimate, comparison()?, right)
    } else {
        let estimate = estimate_below(catalog, right)?;
        rewrite(planner, &estimate, comparison()?.commuted(), left)
    }
}

/// The estimate below changes of type.
fn estimate_below<'c, 'a>(catalog: &'c Catalog, expression: Expr<'a>) -> Option<Estimate<'c, 'a>> {
    let (metric, arguments, is_similarity) = match expression.strip_relabel().form() {
        Form::Operator(operator, arguments) => {
            let metric = catalog.by_distance(operator)?;
            metric.minhash()?;
            (metric, arguments, false)
        }
        Form::Call(function, arguments) => {
            let is_similarity = |metric: &&Metric| {
                (metric.minhash()).is_some_and(|own| own.similarity_function == function)
            };
            let metric = catalog.metrics.iter().find(is_similarity)?;
            (metric, arguments, true)
        }
        _ => return None,
    };
    Some(Estimate {
        metric,
        values: arguments.elements()?,
        is_similarity,
    })
}

/// `estimate comparison bound` in terms of balls.
fn rewrite<'a>(
    planner: Planner<'a>,
    estimate: &Estimate<'_, 'a>,
    comparison: Comparison,
    bound: Expr<'a>,
) -> Option<Expr<'a>> {
    let bound = as_float8(planner, bound)?;
    let exact = if estimate.is_similarity { 1.0 } else { 0.0 };
    let (kind, negated) = match (comparison, estimate.is_similarity) {
        (Comparison::LessOrEqual, false) => (Bound::Distance, false),
        (Comparison::Less, false) => (Bound::DistanceBelow, false),
        (Comparison::Greater, false) => (Bound::Distance, true),
        (Comparison::GreaterOrEqual, false) => (Bound::DistanceBelow, true),
        (Comparison::GreaterOrEqual, true) => (Bound::Similarity, false),
        (Comparison::Greater, true) => (Bound::SimilarityAbove, false),
        (Comparison::Less, true) => (Bound::Similarity, true),
        (Comparison::LessOrEqual, true) => (Bound::SimilarityAbove, true),
        (Comparison::Equal | Comparison::NotEqual, _) if bound.float() != Some(exact) => {
            return None;
        }
        (Comparison::Equal | Comparison::NotEqual, true) => {
            (Bound::Similarity, comparison == Comparison::NotEqual)
        }
        (Comparison::Equal | Comparison::NotEqual, false) => {
            (Bound::Distance, comparison == Comparison::NotEqual)
        }
    };
    let bound = [bound, planner.int4(kind as i32)];
    let condition = within(planner, estimate.metric, estimate.values, &bound);
    Some(match negated {
        true => planner.not(condition),
        false => condition,
    })
}

/// The expression as float8; `None` if it is neither that nor a float4.
fn as_float8<'a>(planner: Planner<'a>, expression: Expr<'a>) -> Option<Expr<'a>> {
    let base = expression.base_type();
    let plain = expression.relabelled(base);
    match base {
        pg_sys::FLOAT8OID => Some(plain),
        pg_sys::FLOAT4OID => Some(planner.simplified(planner.cast(pg_sys::F_FLOAT8_FLOAT4, plain))),
        _ => None,
    }
}

export! {
    guarded "_neardup_estimate_support" => estimate_support;
}
