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
use pgrx::pg_sys::{self, CoercionForm, Datum, Node, NodeTag, Oid, PlannerInfo};

use super::catalog::{Catalog, Metric, catalog};
use super::comparison::Comparison;
use super::nodes;
use super::support::UNHANDLED;
use super::within::within;
use crate::pg::fmgr::{Call, export};
use crate::types::signature::Bound;

/// `left <%> right` or `minhash_similarity(left, right)`, found below a comparison.
struct Estimate<'a> {
    metric: &'a Metric,
    left: *mut Node,
    right: *mut Node,
    is_similarity: bool,
}

/// Behind `<%>` and `minhash_similarity`: leaves them as they are. The call makes sure that the
/// library is loaded and knows the extension's objects before the planner is through with the
/// conditions of a query that has one of the two.
fn estimate_support(call: &mut Call) -> Datum {
    catalog(call.function_oid());
    UNHANDLED
}

/// A comparison of an estimate with a number in terms of balls; `None` if neither side is one, or
/// if `comparison` finds the operator to be another.
///
/// # Safety
/// `root` is the planner's state, `left` and `right` are expressions that have been simplified.
pub unsafe fn comparison(
    catalog: &Catalog,
    root: *mut PlannerInfo,
    left: *mut Node,
    right: *mut Node,
    comparison: impl FnOnce() -> Option<Comparison>,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(estimate) = estimate_below(catalog, left) {
            rewrite(root, &estimate, comparison()?, right)
        } else {
            let estimate = estimate_below(catalog, right)?;
            rewrite(root, &estimate, comparison()?.commuted(), left)
        }
    }
}

/// The estimate below changes of type.
///
/// # Safety
/// `node` points to an expression.
unsafe fn estimate_below(catalog: &Catalog, node: *mut Node) -> Option<Estimate<'_>> {
    // SAFETY: tags are checked before fields are read.
    unsafe {
        let node = nodes::strip_relabel(node);
        let (metric, arguments, is_similarity) =
            if let Some(operator) = nodes::downcast::<pg_sys::OpExpr>(node, NodeTag::T_OpExpr) {
                let metric = catalog.by_distance((*operator).opno)?;
                metric.minhash()?;
                (metric, (*operator).args, false)
            } else {
                let call = nodes::downcast::<pg_sys::FuncExpr>(node, NodeTag::T_FuncExpr)?;
                let is_similarity = |metric: &&Metric| {
                    (metric.minhash()).is_some_and(|own| own.similarity_function == (*call).funcid)
                };
                let metric = catalog.metrics.iter().find(is_similarity)?;
                (metric, (*call).args, true)
            };
        let [left, right] = nodes::elements(arguments)?;
        Some(Estimate {
            metric,
            left,
            right,
            is_similarity,
        })
    }
}

/// `estimate comparison bound` in terms of balls.
///
/// # Safety
/// `root` is null or the planner's state, `bound` an expression.
unsafe fn rewrite(
    root: *mut PlannerInfo,
    estimate: &Estimate,
    comparison: Comparison,
    bound: *mut Node,
) -> Option<*mut Node> {
    // SAFETY: all expressions come from the server's request and are put together with the types
    // that the functions and operators are declared with.
    unsafe {
        let bound = as_float8(root, bound)?;
        let exact = if estimate.is_similarity { 1.0 } else { 0.0 };
        let is_exact =
            || nodes::constant(bound).map(|it| f64::from_bits(it.value() as u64)) == Some(exact);
        let (kind, negated) = match (comparison, estimate.is_similarity) {
            (Comparison::LessOrEqual, false) => (Bound::Distance, false),
            (Comparison::Less, false) => (Bound::DistanceBelow, false),
            (Comparison::Greater, false) => (Bound::Distance, true),
            (Comparison::GreaterOrEqual, false) => (Bound::DistanceBelow, true),
            (Comparison::GreaterOrEqual, true) => (Bound::Similarity, false),
            (Comparison::Greater, true) => (Bound::SimilarityAbove, false),
            (Comparison::Less, true) => (Bound::Similarity, true),
            (Comparison::LessOrEqual, true) => (Bound::SimilarityAbove, true),
            (Comparison::Equal | Comparison::NotEqual, similarity) if is_exact() => {
                let kind = if similarity {
                    Bound::Similarity
                } else {
                    Bound::Distance
                };
                (kind, comparison == Comparison::NotEqual)
            }
            (Comparison::Equal | Comparison::NotEqual, _) => return None,
        };
        let bound = [bound, nodes::int4(kind as i32)];
        let condition = within(root, estimate.metric, estimate.left, estimate.right, &bound);
        Some(if negated {
            nodes::not(condition)
        } else {
            condition
        })
    }
}

/// The expression as float8; `None` if it is neither that nor a float4.
///
/// # Safety
/// `root` is the planner's state, `node` points to an expression.
unsafe fn as_float8(root: *mut PlannerInfo, node: *mut Node) -> Option<*mut Node> {
    // SAFETY: the cast is chosen by the expression's own type.
    unsafe {
        match nodes::types(node).1 {
            pg_sys::FLOAT8OID => Some(nodes::relabel(node, pg_sys::FLOAT8OID)),
            pg_sys::FLOAT4OID => {
                let cast = nodes::call(
                    Oid::from_u32(pg_sys::F_FLOAT8_FLOAT4),
                    pg_sys::FLOAT8OID,
                    [nodes::relabel(node, pg_sys::FLOAT4OID)],
                    CoercionForm::COERCE_IMPLICIT_CAST,
                );
                Some(pg_sys::eval_const_expressions(root, cast))
            }
            _ => None,
        }
    }
}

export! {
    guarded "_neardup_estimate_support" => estimate_support;
}
