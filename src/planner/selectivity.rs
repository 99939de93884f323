//! Estimates of the rows that `<@`, `~=`, `_neardup_within` and `_neardup_at_distance`
//! yield.
//!
//! This file reads the questions that the planner asks; `estimate` answers them.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid, PlannerInfo, VariableStatData};

use super::catalog::{Catalog, Metric, catalog};
use super::estimate::{Distances, join, matched, restriction};
use super::nodes;
use super::planned_ball::{BallRadius, PlannedBall};
use super::statistics::{self, Column, Sought};
use super::support::UNHANDLED;
use super::within_arguments::read_arguments;
use crate::pg::fmgr::{Call, export};

/// Estimate where nothing is known: the server's own default for pattern matches.
const UNKNOWN: f64 = 0.005;

/// `near(a, b)` at some distances, whichever operator or function was written.
struct NearClause<'a> {
    metric: &'a Metric,
    /// The two values; `b` is null if it cannot be told apart from its ball.
    a: *mut Node,
    b: *mut Node,
    distances: Distances,
}

impl<'a> NearClause<'a> {
    /// Reads `left operator right`; `None` if the types are not those of `<@`, `@>` or `~=`
    /// on values with a metric. `radius_of_values`: that of an operator on two values.
    ///
    /// # Safety
    /// `root` is the planner's state, the others are expressions.
    unsafe fn of_operator(
        catalog: &'a Catalog,
        root: *mut PlannerInfo,
        [left, right]: [*mut Node; 2],
        radius_of_values: fn(&Metric) -> f64,
    ) -> Option<Self> {
        // SAFETY: as the caller promises.
        unsafe {
            let (left_type, right_type) = (nodes::types(left).1, nodes::types(right).1);
            // Anyone may name this estimator for an operator on other types; their values are not
            // to be read as these.
            let (metric, a, ball) = if let Some(metric) = catalog.by_ball(right_type) {
                (metric, left, right)
            } else if let Some(metric) = catalog.by_ball(left_type) {
                (metric, right, left)
            } else {
                let metric = catalog.by_value(left_type)?;
                let distances = Distances::up_to(radius_of_values(metric));
                let (a, b) = (left, right);
                return (left_type == right_type).then_some(NearClause {
                    metric,
                    a,
                    b,
                    distances,
                });
            };
            if nodes::types(a).1 != metric.value {
                return None;
            }
            let ball = PlannedBall::read(metric, root, ball);
            Some(NearClause {
                metric,
                a,
                b: ball.center,
                distances: Distances::up_to(metric.estimated_radius(ball.radius)),
            })
        }
    }

    /// The estimate for a condition on one relation.
    ///
    /// # Safety
    /// `root` is the planner's state; `relation` is 0 or the one relation whose columns vary;
    /// `function` is the one behind the condition.
    unsafe fn restriction(&self, root: *mut PlannerInfo, relation: i32, function: Oid) -> f64 {
        let mut variable = VariableStatData::default();
        let (mut other, mut on_left) = (core::ptr::null_mut(), false);
        // SAFETY: the list has the two expressions that the server's function asks for; what it
        // fills in is released at the end.
        unsafe {
            // A ball that cannot be read is a value not known yet.
            let b = if self.b.is_null() {
                self.unknown()
            } else {
                self.b
            };
            if !pg_sys::get_restriction_variable(
                root,
                nodes::list([self.a, b]),
                relation,
                &mut variable,
                &mut other,
                &mut on_left,
            ) {
                return UNKNOWN;
            }
            let column = Column::read(&mut variable, function);
            let is_null = nodes::downcast::<pg_sys::Const>(other, NodeTag::T_Const)
                .is_some_and(|value| (*value).constisnull);
            let share = if is_null && !self.b.is_null() {
                0.0
            } else {
                restriction(self.metric, &column, self.plain(other), self.distances)
            };
            column.release();
            statistics::release(&variable);
            share
        }
    }

    /// The value of a constant, uncompressed once for all comparisons with it.
    unsafe fn plain(&self, node: *mut Node) -> Option<Datum> {
        // SAFETY: the constant is a value of the metric's type; signatures are a varlena.
        unsafe {
            let value = nodes::constant(node)?;
            Some(match self.metric.hamming() {
                Some(_) => value,
                None => Datum::from(pg_sys::pg_detoast_datum(value.cast_mut_ptr())),
            })
        }
    }

    /// The estimate for a condition that joins two relations.
    ///
    /// # Safety
    /// `root` is the planner's state, `special` what it knows of the join, `function` the one
    /// behind the condition.
    unsafe fn join(
        &self,
        root: *mut PlannerInfo,
        kind_of_join: pg_sys::JoinType::Type,
        special: *mut pg_sys::SpecialJoinInfo,
        function: Oid,
    ) -> f64 {
        if self.b.is_null() {
            return UNKNOWN;
        }
        let operands = [self.a, self.b];
        // SAFETY: the caller's promise.
        unsafe {
            statistics::join_estimate(root, kind_of_join, special, operands, function, |sought| {
                match sought {
                    Sought::Pairs(a, b) => join(self.metric, a, b, self.distances),
                    Sought::Matched { outer, inner } => {
                        matched(self.metric, outer, inner, self.distances)
                    }
                }
            })
        }
    }

    /// An expression without columns whose value nobody knows: NULL of the metric's type.
    unsafe fn unknown(&self) -> *mut Node {
        // SAFETY: a NULL has no value that would have to fit the type.
        unsafe { pg_sys::makeNullConst(self.metric.value, -1, pg_sys::InvalidOid).cast() }
    }
}

impl Metric {
    /// The radius if the planner can know it, and the usual one if not.
    fn estimated_radius(&self, known: Option<BallRadius>) -> f64 {
        known.map_or(self.usual_radius(), BallRadius::distance)
    }
}

/// The share that `estimate` finds for a condition, given the planner's state and the function
/// behind the condition's operator. `radius_of_values`: that of an operator on two values.
fn operator_estimate(
    call: &Call,
    radius_of_values: fn(&Metric) -> f64,
    estimate: impl FnOnce(&NearClause, *mut PlannerInfo, Oid) -> f64,
) -> Datum {
    let root = call.arg(0).cast_mut_ptr();
    let operator = Oid::from_u32(call.arg(1).value() as u32);
    // SAFETY: estimators are declared to take the planner's state, an operator and its arguments.
    let share = unsafe {
        nodes::elements(call.arg(2).cast_mut_ptr()).and_then(|operands| {
            let catalog = catalog(call.function_oid())?;
            let clause = NearClause::of_operator(&catalog, root, operands, radius_of_values)?;
            Some(estimate(&clause, root, pg_sys::get_opcode(operator)))
        })
    };
    Datum::from(share.unwrap_or(UNKNOWN).clamp(0.0, 1.0).to_bits())
}

/// The restriction estimator of `<@`, `@>` and `~=`.
fn operator_restriction(call: &mut Call) -> Datum {
    let relation = call.arg(3).value() as i32;
    operator_estimate(call, Metric::usual_radius, |clause, root, function| {
        // SAFETY: restriction estimators are declared to take these arguments.
        unsafe { clause.restriction(root, relation, function) }
    })
}

/// The restriction estimator of `=`, which knows the common values of long signatures, too.
fn equality_restriction(call: &mut Call) -> Datum {
    let relation = call.arg(3).value() as i32;
    operator_estimate(
        call,
        |_| 0.0,
        |clause, root, function| {
            // SAFETY: restriction estimators are declared to take these arguments.
            unsafe { clause.restriction(root, relation, function) }
        },
    )
}

/// The join estimator of `<@`, `@>` and `~=`.
fn operator_join(call: &mut Call) -> Datum {
    let kind_of_join = call.arg(3).value() as i16 as pg_sys::JoinType::Type;
    let special = call.arg(4).cast_mut_ptr();
    operator_estimate(call, Metric::usual_radius, |clause, root, function| {
        // SAFETY: join estimators are declared to take these arguments.
        unsafe { clause.join(root, kind_of_join, special, function) }
    })
}

/// Answers a request about a function of two values and a bound that says, through `distances`, how
/// far they lie apart.
///
/// # Safety
/// `request` is the server's request, for such a function.
pub unsafe fn answer(
    catalog: &Catalog,
    request: *mut pg_sys::SupportRequestSelectivity,
    distances: fn(f64) -> Distances,
) -> Datum {
    // SAFETY: as the caller promises.
    unsafe {
        let root = (*request).root;
        let Some((metric, [a, b], bound)) = read_arguments(catalog, (*request).args) else {
            return UNHANDLED;
        };
        let radius = metric.estimated_radius(metric.radius(root, &bound));
        let clause = NearClause {
            metric,
            a,
            b,
            distances: distances(radius),
        };
        let share = if (*request).is_join {
            let (kind, special) = ((*request).jointype, (*request).sjinfo);
            clause.join(root, kind, special, (*request).funcid)
        } else {
            clause.restriction(root, (*request).varRelid, (*request).funcid)
        };
        (*request).selectivity = share.clamp(0.0, 1.0);
        Datum::from(request)
    }
}

export! {
    guarded "_neardup_sel" => operator_restriction;
    guarded "_neardup_joinsel" => operator_join;
    guarded "_neardup_jaccard_sel" => operator_restriction;
    guarded "_neardup_jaccard_joinsel" => operator_join;
    guarded "_neardup_signature_eqsel" => equality_restriction;
}
