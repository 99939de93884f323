//! `_neardup_within(a, b, radius)` and `_neardup_at_distance(a, b, distance)`: conditions that either
//! side's index can serve.
//!
//! An index condition has the form `column operator value`. While two tables are being joined it
//! is open which of them will be the one that is searched, so the condition is kept as a function,
//! and the planner asks its support function about each index that one of the arguments matches.
use pgrx::pg_sys::{self, CoercionForm, Datum, Node, NodeTag, PlannerInfo};

use super::catalog::{Catalog, Kind, catalog};
use super::estimate::Distances;
use super::support::{UNHANDLED, answer};
use super::{nodes, selectivity};
use crate::pg::fmgr::{Call, export};

/// `left` and `right` differ in at most `radius` bits, in the form that serves the most indexes.
///
/// # Safety
/// `root` is null or the planner's state, `left` and `right` are of the kind's type, `radius` is
/// an int4.
pub unsafe fn within(
    root: *mut PlannerInfo,
    kind: &Kind,
    left: *mut Node,
    right: *mut Node,
    radius: *mut Node,
) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        match (
            pg_sys::contain_vars_of_level(left, 0),
            pg_sys::contain_vars_of_level(right, 0),
        ) {
            (true, false) => contained(root, kind, left, right, radius),
            (false, true) => contained(root, kind, right, left, radius),
            // Either side may turn out to be the indexed one: `within_support` decides for each.
            _ => {
                let function = kind.within_function;
                nodes::call(
                    function,
                    pg_sys::BOOLOID,
                    [left, right, radius],
                    CoercionForm::COERCE_EXPLICIT_CALL,
                )
            }
        }
    }
}

/// `key <@ ball(center, radius)`.
///
/// # Safety
/// As for `within`.
unsafe fn contained(
    root: *mut PlannerInfo,
    kind: &Kind,
    key: *mut Node,
    center: *mut Node,
    radius: *mut Node,
) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        let function = kind.ball_function;
        let mut ball = nodes::call(
            function,
            kind.ball,
            [center, radius],
            CoercionForm::COERCE_EXPLICIT_CALL,
        );
        if nodes::tag(center) == NodeTag::T_Const && nodes::tag(radius) == NodeTag::T_Const {
            ball = pg_sys::eval_const_expressions(root, ball);
        }
        nodes::operator(kind.contained_operator, key, ball)
    }
}

/// `left` and `right` differ in exactly `distance` bits.
///
/// # Safety
/// `left` and `right` are of the kind's type, `distance` is an int4.
pub unsafe fn at_distance(
    kind: &Kind,
    left: *mut Node,
    right: *mut Node,
    distance: *mut Node,
) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        nodes::call(
            kind.at_distance_function,
            pg_sys::BOOLOID,
            [left, right, distance],
            CoercionForm::COERCE_EXPLICIT_CALL,
        )
    }
}

/// Behind `_neardup_at_distance(a, b, distance)`.
fn at_distance_support(call: &mut Call) -> Datum {
    let Some(catalog) = catalog(call.function_oid()) else {
        return UNHANDLED;
    };
    let request: *mut Node = call.arg(0).cast_mut_ptr();
    // SAFETY: support functions are called with one of the server's request nodes.
    unsafe {
        if let Some(request) = nodes::downcast(request, NodeTag::T_SupportRequestIndexCondition) {
            // The ball holds nearer ones as well: each row is compared once more.
            answer(index_condition(&catalog, request, true))
        } else if let Some(request) = nodes::downcast(request, NodeTag::T_SupportRequestSelectivity)
        {
            selectivity::answer(&catalog, request, Distances::exactly)
        } else {
            UNHANDLED
        }
    }
}

/// Behind `_neardup_within(a, b, radius)`.
fn within_support(call: &mut Call) -> Datum {
    let Some(catalog) = catalog(call.function_oid()) else {
        return UNHANDLED;
    };
    let request: *mut Node = call.arg(0).cast_mut_ptr();
    // SAFETY: support functions are called with one of the server's request nodes.
    unsafe {
        if let Some(request) = nodes::downcast(request, NodeTag::T_SupportRequestIndexCondition) {
            answer(index_condition(&catalog, request, false))
        } else if let Some(request) = nodes::downcast(request, NodeTag::T_SupportRequestSimplify) {
            answer(simplify_within(&catalog, request))
        } else if let Some(request) = nodes::downcast(request, NodeTag::T_SupportRequestSelectivity)
        {
            selectivity::answer(&catalog, request, Distances::up_to)
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
    catalog: &Catalog,
    request: *mut pg_sys::SupportRequestSimplify,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises.
    unsafe {
        let [left, right, radius] = nodes::elements((*(*request).fcall).args)?;
        let kind = catalog.by_fingerprint(nodes::types(left).1)?;
        let replacement = within((*request).root, kind, left, right, radius);
        (nodes::tag(replacement) == NodeTag::T_OpExpr).then_some(replacement)
    }
}

/// `key <@ ball(other, radius)` for the side that is the index's key, as a list of one condition.
///
/// # Safety
/// `request` is the server's request, for `_neardup_within` or `_neardup_at_distance`.
unsafe fn index_condition(
    catalog: &Catalog,
    request: *mut pg_sys::SupportRequestIndexCondition,
    lossy: bool,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises; the tag is checked before the call's arguments are read.
    unsafe {
        let function: *mut pg_sys::FuncExpr =
            nodes::downcast((*request).node, NodeTag::T_FuncExpr)?;
        let [left, right, radius] = nodes::elements((*function).args)?;
        let (key, other) = match (*request).indexarg {
            0 => (left, right),
            1 => (right, left),
            _ => return None,
        };
        let kind = catalog.by_fingerprint(nodes::types(key).1)?;
        let known_at_start =
            |node| pg_sys::is_pseudo_constant_for_index((*request).root, node, (*request).index);
        if !pg_sys::op_in_opfamily(kind.contained_operator, (*request).opfamily)
            || !known_at_start(other)
            || !known_at_start(radius)
        {
            return None;
        }
        (*request).lossy = lossy;
        Some(nodes::list([contained((*request).root, kind, key, other, radius)]).cast())
    }
}

export! {
    guarded "_neardup_within_support" => within_support;
    guarded "_neardup_at_distance_support" => at_distance_support;
}
