//! `_neardup_within(a, b, bound...)` and `_neardup_at_distance(a, b, distance)`: conditions on the
//! distance of two values, for which an index on either value can be searched. The bound of
//! fingerprints is a radius. The bound of signatures is a number and the kind of the bound
//! ([`Bound`]). A ball, as in `a <@ ball`, contains all values within a bound of its centre.
//!
//! An index condition has the form `column operator value`. In a join, either of the two columns
//! may be the one whose index is searched. So the condition stays a function call, and the planner
//! calls its support function for each index that matches one of the arguments.
use pgrx::pg_sys::Datum;

use super::catalog::{Catalog, SearchedType, catalog};
use super::estimators;
use super::planned_ball::bound_kind;
use super::selectivity::Distances;
use super::within_arguments::read_arguments;
use crate::settings;
use crate::types::signature::Bound;
use neardup_pg::catalog::strategy_in_family;
use neardup_pg::expr::{Expr, ExprKind, List};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::planner::Planner;
use neardup_pg::planner_request::{IndexCondition, SupportRequest, UNHANDLED, replaced_by};

/// Returns the condition that `left` and `right` are within a bound. If only one of them contains
/// columns, the condition is `<@` with a ball around the other one. Otherwise it is a call of
/// `_neardup_within`. `bound` has the arguments of `_neardup_within` after the two values.
pub fn within<'a>(
    planner: Planner<'a>,
    searched: &SearchedType,
    [left, right]: [Expr<'a>; 2],
    bound: &[Expr<'a>],
) -> Expr<'a> {
    match (left.has_columns(), right.has_columns()) {
        (true, false) => contained(planner, searched, left, right, bound),
        (false, true) => contained(planner, searched, right, left, bound),
        // An index on either value may be searched: `within_support` makes the condition for each
        // index.
        _ => planner.call(searched.within_function, &[&[left, right], bound].concat()),
    }
}

/// Returns the condition `key <@ ball(center, bound)`. `bound` has the arguments of
/// `_neardup_within` after the two values. If `neardup.allow_approximate` is on, an index search
/// for a ball of signatures may miss rows.
fn contained<'a>(
    planner: Planner<'a>,
    searched: &SearchedType,
    key: Expr<'a>,
    center: Expr<'a>,
    bound: &[Expr<'a>],
) -> Expr<'a> {
    let (function, arguments) = match searched.bound_function {
        Some(function) if bound_kind(bound[1]) != Some(Bound::Distance) => (function, bound),
        _ => (searched.ball_function, &bound[..1]),
    };
    let mut ball = planner.call(function, &[&[center], arguments].concat());
    if let Some(function) = searched.approximate_function
        && settings::allow_approximate()
    {
        // The ball itself allows approximate searches, so that EXPLAIN shows it.
        ball = planner.call(function, &[ball]);
    }
    if center.is_constant() && bound[0].is_constant() {
        ball = planner.simplified(ball);
    }
    planner.operator(searched.contained_operator, key, ball)
}

/// Support function of `_neardup_at_distance(a, b, distance)`: answers the planner's requests for
/// index conditions and selectivity.
fn at_distance_support(call: &mut Call) -> Datum {
    let Some(catalog) = catalog(call.function_oid()) else {
        return UNHANDLED;
    };
    match call.support_request() {
        // The index condition is a ball, which also contains nearer values, so the server must
        // recheck each row.
        SupportRequest::IndexCondition(request) => index_condition(&catalog, request, true),
        SupportRequest::Selectivity(request) => {
            estimators::answer(&catalog, request, Distances::exactly)
        }
        _ => UNHANDLED,
    }
}

/// Support function of `_neardup_within(a, b, bound...)`: answers the planner's requests for index
/// conditions, simplification and selectivity.
fn within_support(call: &mut Call) -> Datum {
    let Some(catalog) = catalog(call.function_oid()) else {
        return UNHANDLED;
    };
    match call.support_request() {
        SupportRequest::IndexCondition(request) => index_condition(&catalog, request, false),
        SupportRequest::Simplify(planner, arguments) => {
            replaced_by(simplify_within(&catalog, planner, arguments))
        }
        SupportRequest::Selectivity(request) => {
            estimators::answer(&catalog, request, Distances::up_to)
        }
        SupportRequest::Other => UNHANDLED,
    }
}

/// Rewrites a call of `_neardup_within` with these arguments to `<@` if only one of its two values
/// contains columns. Otherwise returns `None`.
fn simplify_within<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    arguments: List<'a>,
) -> Option<Expr<'a>> {
    let (searched, values, bound) = read_arguments(catalog, arguments)?;
    let replacement = within(planner, searched, values, &bound);
    matches!(replacement.kind(), ExprKind::Operator(..)).then_some(replacement)
}

/// Answers a request for an index condition by `key <@ ball(other, bound)`. `key` is the argument
/// that the index covers, and `other` is the other argument. `lossy` is true if the index also
/// finds rows that do not fulfil the condition, so that the server must recheck the rows.
fn index_condition(catalog: &Catalog, request: IndexCondition, lossy: bool) -> Datum {
    let condition = || {
        let (searched, [left, right], bound) = read_arguments(catalog, request.arguments)?;
        let (key, other) = match request.indexed {
            0 => (left, right),
            1 => (right, left),
            _ => return None,
        };
        let serves = strategy_in_family(searched.contained_operator, request.family) != 0;
        (serves && request.is_known(other) && request.is_known(bound[0]))
            .then(|| contained(request.planner, searched, key, other, &bound))
    };
    match condition() {
        Some(condition) => request.answer(condition, lossy),
        None => UNHANDLED,
    }
}

export! {
    guarded "_neardup_within_support" => within_support;
    guarded "_neardup_at_distance_support" => at_distance_support;
}
