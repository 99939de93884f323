//! `_neardup_within(a, b, bound...)` and `_neardup_at_distance(a, b, distance)`: conditions that
//! either side's index can serve. The bound of fingerprints is a radius; that of signatures is a
//! number and its kind ([`Bound`]).
//!
//! An index condition has the form `column operator value`. While two tables are being joined it
//! is open which of them will be the one that is searched, so the condition is kept as a function,
//! and the planner asks its support function about each index that one of the arguments matches.
use pgrx::pg_sys::{self, CoercionForm, Datum, Node, NodeTag, PlannerInfo};

use super::catalog::{Catalog, Hamming, Metric, catalog};
use super::estimate::Distances;
use super::planned_ball::bound_kind;
use super::support::{UNHANDLED, answer};
use super::within_arguments::read_arguments;
use super::{nodes, selectivity};
use crate::pg::fmgr::{Call, export};
use crate::settings;
use crate::types::signature::Bound;

/// `left` and `right` lie within a bound, in the form that serves the most indexes.
///
/// # Safety
/// `root` is null or the planner's state, `left` and `right` are of the metric's type, `bound` is
/// what follows them in a call of its `_neardup_within`.
pub unsafe fn within(
    root: *mut PlannerInfo,
    metric: &Metric,
    left: *mut Node,
    right: *mut Node,
    bound: &[*mut Node],
) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        match (
            pg_sys::contain_vars_of_level(left, 0),
            pg_sys::contain_vars_of_level(right, 0),
        ) {
            (true, false) => contained(root, metric, left, right, bound),
            (false, true) => contained(root, metric, right, left, bound),
            // Either side may turn out to be the indexed one: `within_support` decides for each.
            _ => nodes::call(
                metric.within_function,
                pg_sys::BOOLOID,
                [left, right].into_iter().chain(bound.iter().copied()),
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
    root: *mut PlannerInfo,
    metric: &Metric,
    key: *mut Node,
    center: *mut Node,
    bound: &[*mut Node],
) -> *mut Node {
    let form = CoercionForm::COERCE_EXPLICIT_CALL;
    // SAFETY: as the caller promises.
    unsafe {
        let (function, arguments) = match metric.minhash() {
            Some(minhash) if bound_kind(bound[1]) != Some(Bound::Distance) => {
                (minhash.bound_function, bound)
            }
            _ => (metric.ball_function, &bound[..1]),
        };
        let arguments = [center].into_iter().chain(arguments.iter().copied());
        let mut ball = nodes::call(function, metric.ball, arguments, form);
        if let Some(minhash) = metric.minhash()
            && settings::allow_approximate()
        {
            // In the condition, so that EXPLAIN shows it.
            ball = nodes::call(minhash.approximate_function, metric.ball, [ball], form);
        }
        if nodes::tag(center) == NodeTag::T_Const && nodes::tag(bound[0]) == NodeTag::T_Const {
            ball = pg_sys::eval_const_expressions(root, ball);
        }
        nodes::operator(metric.contained_operator, key, ball)
    }
}

/// `left` and `right` differ in exactly `distance` bits.
///
/// # Safety
/// `left` and `right` are fingerprints of that type, `distance` is an int4.
pub unsafe fn at_distance(
    hamming: &Hamming,
    left: *mut Node,
    right: *mut Node,
    distance: *mut Node,
) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        nodes::call(
            hamming.at_distance_function,
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

/// Behind `_neardup_within(a, b, bound...)`.
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
        let (metric, [left, right], bound) = read_arguments(catalog, (*(*request).fcall).args)?;
        let replacement = within((*request).root, metric, left, right, &bound);
        (nodes::tag(replacement) == NodeTag::T_OpExpr).then_some(replacement)
    }
}

/// `key <@ ball(other, bound)` for the side that is the index's key, as a list of one condition.
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
        let (metric, [left, right], bound) = read_arguments(catalog, (*function).args)?;
        let (key, other) = match (*request).indexarg {
            0 => (left, right),
            1 => (right, left),
            _ => return None,
        };
        let known_at_start =
            |node| pg_sys::is_pseudo_constant_for_index((*request).root, node, (*request).index);
        if !pg_sys::op_in_opfamily(metric.contained_operator, (*request).opfamily)
            || !known_at_start(other)
            || !known_at_start(bound[0])
        {
            return None;
        }
        (*request).lossy = lossy;
        Some(nodes::list([contained((*request).root, metric, key, other, &bound)]).cast())
    }
}

export! {
    guarded "_neardup_within_support" => within_support;
    guarded "_neardup_jaccard_within_support" => within_support;
    guarded "_neardup_at_distance_support" => at_distance_support;
}
