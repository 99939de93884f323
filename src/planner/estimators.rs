//! Selectivity estimators for `<@`, `@>`, `~=`, `=` on signatures, `_neardup_within` and
//! `_neardup_at_distance`. These are conditions that two values have a distance in some range, or
//! that a ball (all values within a radius of a centre) contains a value.
//!
//! This file reads the planner's requests and the statistics; [`super::selectivity`] computes the
//! estimates.
use neardup_blocktree::metric::Metric;
use pgrx::pg_sys::Datum;

use super::catalog::{Catalog, SearchedType, catalog};
use super::index_probe;
use super::planned_ball::{BallRadius, PlannedBall};
use super::point::Point;
use super::selectivity::{Distances, join, matched, restriction, usual_radius};
use super::statistics::Column;
use super::within_arguments::read_arguments;
use neardup_pg::column_statistics::{Operands, Statistics};
use neardup_pg::expr::{Expr, ExprKind};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::planner_request::{Condition, Selectivity, UNHANDLED};

/// Estimated share of rows if nothing is known about the values. The server uses the same default
/// for pattern matches.
const UNKNOWN: f64 = 0.005;

/// Condition that the distance of two values `a` and `b` is in a range. The query writes it with
/// one of the operators and functions listed at the top of this file.
struct NearClause<'c, 'a> {
    /// Type of both values.
    searched: &'c SearchedType,
    /// The condition as the planner passes it: its operands, its function, and the relation or join
    /// for whose rows it is estimated.
    condition: Condition<'a>,
    /// First value. In a condition with a ball, it is the value that must be in the ball.
    a: Expr<'a>,
    /// Second value. In a condition with a ball, it is the centre of the ball. `None` if the
    /// expression of the ball does not show the centre.
    b: Option<Expr<'a>>,
    /// Range of distances that the condition admits.
    distances: Distances,
}

impl<'c, 'a> NearClause<'c, 'a> {
    /// Parses a condition `left operator right`. Its operands are two values, or a value and a
    /// ball, of a type that is searched by distance. Returns `None` for other operands. A ball has
    /// its own radius. An operator between two values, such as `~=`, has none; then the radius is
    /// what `radius_of_values` returns for the metric of the type.
    fn from_operator(
        catalog: &'c Catalog,
        condition: Condition<'a>,
        radius_of_values: fn(Metric) -> f64,
    ) -> Option<Self> {
        let [left, right] = condition.operands.elements()?;
        let (left_type, right_type) = (left.base_type(), right.base_type());
        // A user may declare this estimator for operators on other types. Their values must not be
        // decoded as fingerprints, signatures or balls.
        let (searched, a, ball) = if let Some(searched) = catalog.by_ball(right_type) {
            (searched, left, right)
        } else if let Some(searched) = catalog.by_ball(left_type) {
            (searched, right, left)
        } else {
            let searched = catalog.by_value(left_type)?;
            return (left_type == right_type).then(|| NearClause {
                searched,
                condition,
                a: left,
                b: Some(right),
                distances: Distances::up_to(radius_of_values(searched.metric)),
            });
        };
        if !a.has_type(searched.value) {
            return None;
        }
        let ball = PlannedBall::read(searched, condition.planner, ball);
        Some(NearClause {
            searched,
            condition,
            a,
            b: ball.center,
            distances: Distances::up_to(searched.estimated_radius(ball.radius)),
        })
    }

    /// Returns the estimated share of rows, or of row pairs in a join, that fulfil the condition.
    /// `None` if neither value is a column.
    fn estimate(&self) -> Option<f64> {
        let (searched, distances) = (self.searched, self.distances);
        let metric = searched.metric;
        // If the ball does not show its centre, the centre is an unknown value.
        let unknown = || self.condition.planner.null(searched.value);
        let operands = [self.a, self.b.unwrap_or_else(unknown)];
        self.condition
            .estimate(operands, |operands| match operands {
                Operands::Restriction(column, other) => match other.kind() {
                    ExprKind::Constant(None) if self.b.is_some() => 0.0,
                    _ => {
                        let center = other.value().and_then(|value| searched.point(value));
                        restriction(metric, &self.read(column), center, distances)
                    }
                },
                _ if self.b.is_none() => UNKNOWN,
                Operands::Parameterized {
                    column: a,
                    other: b,
                }
                | Operands::Pairs(a, b) => join(metric, &self.read(a), &self.read(b), distances),
                Operands::Matched { outer, inner } => {
                    let index = inner.index(searched.contained_operator);
                    let index = index.filter(|_| inner.allow(self.condition.function));
                    let finds = |value: &Point| {
                        let center = searched.value(value);
                        let found = index_probe::finds(index?, center.get(), distances.radius())?;
                        // The index search finds rows at all distances up to the radius. If the
                        // condition does not admit the small distances, a found row is no evidence.
                        (!found || distances.is_ball()).then_some(found)
                    };
                    matched(
                        metric,
                        &self.read(outer),
                        &self.read(inner),
                        distances,
                        finds,
                    )
                }
            })
    }

    /// Converts the statistics of a column to a [`Column`]. The result contains no values of the
    /// column if the current user may not read it, unless the function of the condition is
    /// leakproof.
    fn read(&self, statistics: &Statistics) -> Column {
        Column::read(self.searched, statistics, self.condition.function)
    }
}

impl SearchedType {
    /// Returns the radius for an estimate: `known` if the planner knows the radius, and otherwise
    /// the usual radius of near-duplicates. The unit is bits, or the share of positions for
    /// signatures.
    fn estimated_radius(&self, known: Option<BallRadius>) -> f64 {
        known.map_or(usual_radius(self.metric), BallRadius::distance)
    }
}

/// Answers an estimator call for an operator: returns the share of rows, or of row pairs in a join,
/// that fulfil the condition. `radius_of_values` returns the maximum distance that an operator
/// between two values admits. It is not used if one operand is a ball.
fn operator_estimate(call: &Call, radius_of_values: fn(Metric) -> f64) -> Datum {
    let share = || {
        let condition = call.estimated_condition()?;
        let catalog = catalog(call.function_oid())?;
        NearClause::from_operator(&catalog, condition, radius_of_values)?.estimate()
    };
    Datum::from(share().unwrap_or(UNKNOWN).clamp(0.0, 1.0).to_bits())
}

/// Estimator of `<@`, `@>` and `~=` for restrictions and joins.
fn near_estimate(call: &mut Call) -> Datum {
    operator_estimate(call, usual_radius)
}

/// Restriction estimator of `=` on signatures: the estimated share of rows at distance 0. Unlike
/// the server's `eqsel`, it also uses the statistics of long signatures, which ANALYZE stores in
/// shortened form.
fn equality_estimate(call: &mut Call) -> Datum {
    operator_estimate(call, |_| 0.0)
}

/// Answers a selectivity request about a call of `_neardup_within` or `_neardup_at_distance`. The
/// arguments of the call have a bound, which gives a radius. `distances` returns the distances that
/// the called function admits for this radius: all distances up to it, or the radius only.
pub fn answer(catalog: &Catalog, request: Selectivity, distances: fn(f64) -> Distances) -> Datum {
    let condition = request.condition;
    let Some((searched, [a, b], bound)) = read_arguments(catalog, condition.operands) else {
        return UNHANDLED;
    };
    let radius = searched.estimated_radius(searched.radius(condition.planner, &bound));
    let clause = NearClause {
        searched,
        condition,
        a,
        b: Some(b),
        distances: distances(radius),
    };
    let share = clause.estimate().unwrap_or(UNKNOWN);
    request.answer(share.clamp(0.0, 1.0))
}

export! {
    guarded "_neardup_sel" => near_estimate;
    guarded "_neardup_joinsel" => near_estimate;
    guarded "_neardup_signature_eqsel" => equality_estimate;
}
