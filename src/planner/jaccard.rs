//! From comparisons of estimated Jaccard distances and similarities to the operator that an index
//! knows.
//!
//! | written | planned |
//! |---|---|
//! | `sig <%> q <= r`, `r >= q <%> sig` | `sig <@ ball(q, r)` |
//! | `sig <%> q < r` | `sig <@ neardup_ball(q, r, 1)` |
//! | `minhash_similarity(sig, q) >= s` | `sig <@ neardup_ball(q, s, 2)` |
//! | `minhash_similarity(sig, q) > s` | `sig <@ neardup_ball(q, s, 3)` |
//! | the opposite of these | `NOT sig <@ ...` |
//! | `sig <%> q = 0`, `minhash_similarity(sig, q) = 1` | `sig <@ ...` |
//! | the same with columns on both sides | `neardup_within(a, b, bound, kind)`, from which either side's index gets `<@` |
//!
//! The operators take a float8, to which the server brings bounds of any other type of number.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, PlannerInfo};

use super::catalog::{Signatures, catalog};
use super::jaccard_within::within;
use super::nodes;
use super::rewrite::{Comparison, UNHANDLED, answer, simplify_request};
use crate::pg::call::{Call, export};
use crate::types::signature::Bound;

/// `left <%> right` or `minhash_similarity(left, right)`, found below a comparison.
struct Estimate {
    left: *mut Node,
    right: *mut Node,
    is_similarity: bool,
}

/// Behind the comparisons of estimates with numbers.
fn comparison_support(call: &mut Call, comparison: Comparison) -> Datum {
    let Some(request) = simplify_request(call) else {
        return UNHANDLED;
    };
    let Some(catalog) = catalog(call.function_oid()) else {
        return UNHANDLED;
    };
    let Some(signatures) = &catalog.signatures else {
        return UNHANDLED;
    };
    // SAFETY: the request holds a call of a comparison with two arguments.
    unsafe {
        let root = (*request).root;
        let Some([left, right]) = nodes::elements((*(*request).fcall).args) else {
            return UNHANDLED;
        };
        answer(if let Some(estimate) = estimate_below(signatures, left) {
            rewrite(signatures, root, &estimate, comparison, right)
        } else if let Some(estimate) = estimate_below(signatures, right) {
            rewrite(signatures, root, &estimate, comparison.commuted(), left)
        } else {
            None
        })
    }
}

/// The estimate below changes of type.
///
/// # Safety
/// `node` points to an expression.
unsafe fn estimate_below(signatures: &Signatures, node: *mut Node) -> Option<Estimate> {
    // SAFETY: tags are checked before fields are read.
    unsafe {
        let node = nodes::strip_relabel(node);
        if let Some(operator) = nodes::downcast::<pg_sys::OpExpr>(node, NodeTag::T_OpExpr) {
            let [left, right] = nodes::elements((*operator).args)?;
            return ((*operator).opno == signatures.distance_operator).then_some(Estimate {
                left,
                right,
                is_similarity: false,
            });
        }
        let function = nodes::downcast::<pg_sys::FuncExpr>(node, NodeTag::T_FuncExpr)?;
        let [left, right] = nodes::elements((*function).args)?;
        ((*function).funcid == signatures.similarity_function).then_some(Estimate {
            left,
            right,
            is_similarity: true,
        })
    }
}

/// `estimate comparison bound` in terms of balls.
///
/// # Safety
/// `root` is null or the planner's state, `bound` an expression.
unsafe fn rewrite(
    signatures: &Signatures,
    root: *mut PlannerInfo,
    estimate: &Estimate,
    comparison: Comparison,
    bound: *mut Node,
) -> Option<*mut Node> {
    // SAFETY: all expressions come from the server's request and are put together with the types
    // that the functions and operators are declared with.
    unsafe {
        let bound = as_float8(signatures, bound)?;
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
        let condition = within(signatures, root, estimate.left, estimate.right, bound, kind);
        Some(if negated {
            nodes::not(condition)
        } else {
            condition
        })
    }
}

/// The expression as float8; `None` if it is neither that nor an estimate.
///
/// # Safety
/// `node` points to an expression.
unsafe fn as_float8(signatures: &Signatures, node: *mut Node) -> Option<*mut Node> {
    // SAFETY: both types have one representation.
    unsafe {
        let base = nodes::types(node).1;
        let fits = base == pg_sys::FLOAT8OID || base == signatures.jaccard;
        fits.then(|| nodes::relabel(node, pg_sys::FLOAT8OID))
    }
}

export! {
    guarded "neardup_jaccard_lt_support" => |call: &mut Call| comparison_support(call, Comparison::Less);
    guarded "neardup_jaccard_le_support" => |call: &mut Call| comparison_support(call, Comparison::LessOrEqual);
    guarded "neardup_jaccard_eq_support" => |call: &mut Call| comparison_support(call, Comparison::Equal);
    guarded "neardup_jaccard_ne_support" => |call: &mut Call| comparison_support(call, Comparison::NotEqual);
    guarded "neardup_jaccard_ge_support" => |call: &mut Call| comparison_support(call, Comparison::GreaterOrEqual);
    guarded "neardup_jaccard_gt_support" => |call: &mut Call| comparison_support(call, Comparison::Greater);
}
