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
//! | `fingerprint_similarity(sig, q)` | the same as `minhash_similarity(sig, q)` |
//! | `fingerprint_similarity(fp, q) >= s` | `fp <@ ball(q, radius)` |
//! | `fingerprint_similarity(fp, q) > s` | `fp <@ ball(q, radius)`, with the radius above `s` |
//! | `fingerprint_similarity(fp, q) = 1` | `fp <@ ball(q, 0)` |
//! | the same with columns on both sides | `_neardup_within(a, b, bound...)` |
//!
//! The radius of fingerprints is a constant if `s` is one, and else
//! `_neardup_similarity_radius(s, bits)` or `_neardup_similarity_radius_above(s, bits)`.
//!
//! The operators are the server's own, on float8, to which the parser brings bounds of any other
//! type of number but float4: [`super::conditions`] finds them.
use neardup_blocktree::metric::Metric;
use neardup_sketch::minhash_fingerprint;
use pgrx::pg_sys::{self, Datum, Oid};

use super::catalog::{Catalog, SearchedType, catalog};
use super::comparison::Comparison;
use super::within::within;
use crate::types::signature::Bound;
use neardup_pg::expr::{Expr, Form};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::planner::Planner;
use neardup_pg::planner_request::UNHANDLED;

/// `left <%> right`, or a function of the two that returns an estimated similarity, found below a
/// comparison.
struct Estimate<'c, 'a> {
    searched: &'c SearchedType,
    values: [Expr<'a>; 2],
    is_similarity: bool,
}

/// Behind `<%>`, `minhash_similarity` and `fingerprint_similarity`: leaves them as they are. The
/// call makes sure that the library is loaded and knows the extension's objects before the planner
/// is through with the conditions of a query that has one of them.
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
        rewrite(catalog, planner, &estimate, comparison()?, right)
    } else {
        let estimate = estimate_below(catalog, right)?;
        rewrite(catalog, planner, &estimate, comparison()?.commuted(), left)
    }
}

/// The estimate below changes of type.
fn estimate_below<'c, 'a>(catalog: &'c Catalog, expression: Expr<'a>) -> Option<Estimate<'c, 'a>> {
    let (searched, arguments, is_similarity) = match expression.strip_relabel().form() {
        Form::Operator(operator, arguments) => {
            let searched = catalog.by_distance(operator)?;
            if !searched.metric.is_jaccard() {
                return None;
            }
            (searched, arguments, false)
        }
        Form::Call(function, arguments) => {
            let is_similarity =
                |searched: &&SearchedType| searched.similarity_functions.contains(&function);
            let searched = catalog.types.iter().find(is_similarity)?;
            (searched, arguments, true)
        }
        _ => return None,
    };
    Some(Estimate {
        searched,
        values: arguments.elements()?,
        is_similarity,
    })
}

/// `estimate comparison bound` in terms of balls.
fn rewrite<'a>(
    catalog: &Catalog,
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
    let bound = match estimate.searched.metric {
        Metric::Hamming { bits } => vec![radius(catalog, planner, bits, kind, bound)?],
        Metric::Jaccard(()) | Metric::Overlap => vec![bound, planner.int4(kind as i32)],
    };
    let condition = within(planner, estimate.searched, estimate.values, &bound);
    Some(match negated {
        true => planner.not(condition),
        false => condition,
    })
}

/// The radius, of type int4, that a bound of the similarity of fingerprints stands for. `None` for
/// bounds of distances.
fn radius<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    bits: u32,
    kind: Bound,
    bound: Expr<'a>,
) -> Option<Expr<'a>> {
    let [least, above] = catalog.similarity_radii;
    let (function, of_constant): (Oid, fn(f64, u32) -> i32) = match kind {
        Bound::Similarity => (least, minhash_fingerprint::radius),
        Bound::SimilarityAbove => (above, minhash_fingerprint::radius_above),
        Bound::Distance | Bound::DistanceBelow => return None,
    };
    Some(match bound.float() {
        Some(constant) => planner.int4(of_constant(constant, bits)),
        None => planner.call(function, &[bound, planner.int4(bits as i32)]),
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
