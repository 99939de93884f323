//! `_neardup_within(a, b, bound, kind)` of signatures: a condition that either side's index can
//! serve, as the one of fingerprints ([`super::within`]).
use pgrx::pg_sys::{self, CoercionForm, Datum, Node, NodeTag, PlannerInfo};

use super::catalog::{Signatures, catalog};
use super::planned_ball::kind_of;
use super::support::{UNHANDLED, answer};
use super::{jaccard_estimate, nodes};
use crate::pg::fmgr::{Call, export};
use crate::settings;
use crate::types::signature::Bound;

/// The estimate of `left` and `right` keeps to a bound, in the form that serves the most indexes.
///
/// # Safety
/// `root` is null or the planner's state, `left` and `right` are signatures, `bound` is a float8.
pub unsafe fn within(
    signatures: &Signatures,
    root: *mut PlannerInfo,
    left: *mut Node,
    right: *mut Node,
    bound: *mut Node,
    kind: Bound,
) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        match (
            pg_sys::contain_vars_of_level(left, 0),
            pg_sys::contain_vars_of_level(right, 0),
        ) {
            (true, false) => contained(signatures, root, left, right, bound, kind),
            (false, true) => contained(signatures, root, right, left, bound, kind),
            // Either side may turn out to be the indexed one: `within_support` decides for each.
            _ => nodes::call(
                signatures.within_function,
                pg_sys::BOOLOID,
                [left, right, bound, nodes::int4(kind as i32)],
                CoercionForm::COERCE_EXPLICIT_CALL,
            ),
        }
    }
}

/// `key <@ ball(center, bound)`.
///
/// # Safety
/// As for `within`.
unsafe fn contained(
    signatures: &Signatures,
    root: *mut PlannerInfo,
    key: *mut Node,
    center: *mut Node,
    bound: *mut Node,
    kind: Bound,
) -> *mut Node {
    let form = CoercionForm::COERCE_EXPLICIT_CALL;
    // SAFETY: as the caller promises.
    unsafe {
        let mut ball = match kind {
            Bound::Distance => {
                let function = signatures.ball_function;
                nodes::call(function, signatures.ball, [center, bound], form)
            }
            _ => nodes::call(
                signatures.bound_function,
                signatures.ball,
                [center, bound, nodes::int4(kind as i32)],
                form,
            ),
        };
        if settings::allow_approximate() {
            // In the condition, so that EXPLAIN shows it.
            ball = nodes::call(
                signatures.approximate_function,
                signatures.ball,
                [ball],
                form,
            );
        }
        if nodes::tag(center) == NodeTag::T_Const && nodes::tag(bound) == NodeTag::T_Const {
            ball = pg_sys::eval_const_expressions(root, ball);
        }
        nodes::operator(signatures.contained_operator, key, ball)
    }
}

/// Behind `_neardup_within(a, b, bound, kind)`.
fn within_support(call: &mut Call) -> Datum {
    let Some(catalog) = catalog(call.function_oid()) else {
        return UNHANDLED;
    };
    let Some(signatures) = &catalog.signatures else {
        return UNHANDLED;
    };
    let request: *mut Node = call.arg(0).cast_mut_ptr();
    // SAFETY: support functions are called with one of the server's request nodes.
    unsafe {
        if let Some(request) = nodes::downcast(request, NodeTag::T_SupportRequestIndexCondition) {
            answer(index_condition(signatures, request))
        } else if let Some(request) = nodes::downcast(request, NodeTag::T_SupportRequestSimplify) {
            answer(simplify_within(signatures, request))
        } else if let Some(request) = nodes::downcast(request, NodeTag::T_SupportRequestSelectivity)
        {
            if jaccard_estimate::within(signatures, request) {
                Datum::from(request)
            } else {
                UNHANDLED
            }
        } else {
            UNHANDLED
        }
    }
}

/// With a constant or a parameter on one side, a call is `<@` like any other.
///
/// # Safety
/// `request` is the server's request, for `_neardup_within`.
unsafe fn simplify_within(
    signatures: &Signatures,
    request: *mut pg_sys::SupportRequestSimplify,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises.
    unsafe {
        let [left, right, bound, kind] = nodes::elements((*(*request).fcall).args)?;
        let replacement = within(
            signatures,
            (*request).root,
            left,
            right,
            bound,
            kind_of(kind)?,
        );
        (nodes::tag(replacement) == NodeTag::T_OpExpr).then_some(replacement)
    }
}

/// `key <@ ball(other, bound)` for the side that is the index's key, as a list of one condition.
///
/// # Safety
/// `request` is the server's request, for `_neardup_within`.
unsafe fn index_condition(
    signatures: &Signatures,
    request: *mut pg_sys::SupportRequestIndexCondition,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises; the tag is checked before the call's arguments are read.
    unsafe {
        let function: *mut pg_sys::FuncExpr =
            nodes::downcast((*request).node, NodeTag::T_FuncExpr)?;
        let [left, right, bound, kind] = nodes::elements((*function).args)?;
        let kind = kind_of(kind)?;
        let (key, other) = match (*request).indexarg {
            0 => (left, right),
            1 => (right, left),
            _ => return None,
        };
        let known_at_start =
            |node| pg_sys::is_pseudo_constant_for_index((*request).root, node, (*request).index);
        if !pg_sys::op_in_opfamily(signatures.contained_operator, (*request).opfamily)
            || !known_at_start(other)
            || !known_at_start(bound)
        {
            return None;
        }
        (*request).lossy = false;
        let condition = contained(signatures, (*request).root, key, other, bound, kind);
        Some(nodes::list([condition]).cast())
    }
}

export! {
    guarded "_neardup_jaccard_within_support" => within_support;
}
