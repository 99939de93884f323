//! Estimates of the rows that `<@`, `~=`, `_neardup_within` and `_neardup_at_distance`
//! yield.
//!
//! This file reads the questions that the planner asks; `estimate` answers them.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid, PlannerInfo, VariableStatData};

use super::catalog::{Catalog, Kind, catalog};
use super::estimate::{Distances, join, matched, restriction};
use super::nodes;
use super::statistics::{self, Column, Sought};
use super::support::UNHANDLED;
use crate::pg::fmgr::{Call, export};

/// Estimate where nothing is known: the server's own default for pattern matches.
const UNKNOWN: f64 = 0.005;

/// `near(a, b)` at some distances, whichever operator or function was written.
struct NearClause<'a> {
    kind: &'a Kind,
    /// The fingerprints; `b` is null if it cannot be told apart from its ball.
    a: *mut Node,
    b: *mut Node,
    distances: Distances,
}

impl<'a> NearClause<'a> {
    /// Reads `left operator right`; `None` if the types are not those of `<@`, `@>` or `~=`
    /// on fingerprints.
    ///
    /// # Safety
    /// `root` is the planner's state, the others are expressions.
    unsafe fn of_operator(
        catalog: &'a Catalog,
        root: *mut PlannerInfo,
        left: *mut Node,
        right: *mut Node,
    ) -> Option<Self> {
        // SAFETY: as the caller promises.
        unsafe {
            let (left_type, right_type) = (nodes::types(left).1, nodes::types(right).1);
            if let Some(kind) = catalog.by_ball(right_type) {
                return (left_type == kind.fingerprint)
                    .then(|| Self::of_ball(kind, root, left, right));
            }
            if let Some(kind) = catalog.by_ball(left_type) {
                return (right_type == kind.fingerprint)
                    .then(|| Self::of_ball(kind, root, right, left));
            }
            // Anyone may name this estimator for an operator on other types; their values are not
            // to be read as fingerprints.
            let kind = catalog.by_fingerprint(left_type)?;
            if right_type != left_type {
                return None;
            }
            Some(NearClause {
                kind,
                a: left,
                b: right,
                distances: Distances::up_to(kind.usual_radius()),
            })
        }
    }

    /// Reads `fingerprint <@ ball`, also where the ball is a call or a constant.
    ///
    /// # Safety
    /// `root` is the planner's state, the others are expressions.
    unsafe fn of_ball(
        kind: &'a Kind,
        root: *mut PlannerInfo,
        fingerprint: *mut Node,
        ball: *mut Node,
    ) -> Self {
        // SAFETY: tags and functions are checked before arguments are read; a constant of the
        // ball type is a ball.
        unsafe {
            if let Some(call) = nodes::downcast::<pg_sys::FuncExpr>(ball, NodeTag::T_FuncExpr)
                && (*call).funcid == kind.ball_function
                && let Some([center, radius]) = nodes::elements((*call).args)
            {
                return NearClause {
                    kind,
                    a: fingerprint,
                    b: center,
                    distances: Distances::up_to(estimated_radius(kind, root, radius)),
                };
            }
            if let Some(ball) = nodes::constant(pg_sys::estimate_expression_value(root, ball)) {
                let (center, radius) = (kind.traits.ball_parts)(ball);
                let (mut length, mut by_value) = (0, false);
                pg_sys::get_typlenbyval(kind.fingerprint, &mut length, &mut by_value);
                let none = pg_sys::InvalidOid;
                let center = pg_sys::makeConst(
                    kind.fingerprint,
                    -1,
                    none,
                    length.into(),
                    center,
                    false,
                    by_value,
                );
                return NearClause {
                    kind,
                    a: fingerprint,
                    b: center.cast(),
                    distances: Distances::up_to(radius),
                };
            }
            NearClause {
                kind,
                a: fingerprint,
                b: core::ptr::null_mut(),
                distances: Distances::up_to(kind.usual_radius()),
            }
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
                restriction(self.kind, &column, nodes::constant(other), self.distances)
            };
            column.release();
            statistics::release(&variable);
            share
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
                    Sought::Pairs(a, b) => join(self.kind, a, b, self.distances),
                    Sought::Matched { outer, inner } => {
                        matched(self.kind, outer, inner, self.distances)
                    }
                }
            })
        }
    }

    /// An expression without columns whose value nobody knows: NULL of the fingerprint type.
    unsafe fn unknown(&self) -> *mut Node {
        // SAFETY: a NULL has no value that would have to fit the type.
        unsafe { pg_sys::makeNullConst(self.kind.fingerprint, -1, pg_sys::InvalidOid).cast() }
    }
}

impl Kind {
    /// The radius of `~=`, which is assumed as well where the radius is a parameter.
    fn usual_radius(&self) -> i32 {
        self.traits.near_duplicate as i32
    }
}

/// The radius of the ball on the right side of an operator, if the planner can know it.
///
/// # Safety
/// `root` is the planner's state, `operator` one of the extension's, `ball` an expression.
pub unsafe fn known_radius(root: *mut PlannerInfo, operator: Oid, ball: *mut Node) -> Option<i64> {
    // SAFETY: as the caller promises; the function is checked before arguments are read, and a
    // constant of the ball type is a ball.
    unsafe {
        let catalog = catalog(pg_sys::get_opcode(operator))?;
        let kind = catalog.by_ball(nodes::types(ball).1)?;
        if let Some(call) = nodes::downcast::<pg_sys::FuncExpr>(ball, NodeTag::T_FuncExpr)
            && (*call).funcid == kind.ball_function
            && let Some([_, radius]) = nodes::elements((*call).args)
        {
            return nodes::constant_integer(pg_sys::estimate_expression_value(root, radius));
        }
        let ball = nodes::constant(pg_sys::estimate_expression_value(root, ball))?;
        Some((kind.traits.ball_parts)(ball).1.into())
    }
}

/// The centre of the ball on the right side of an operator, as far as the planner can tell it from
/// its ball; null if not.
///
/// # Safety
/// `root` is the planner's state, `operator` one of the extension's, `ball` an expression.
pub unsafe fn center(root: *mut PlannerInfo, operator: Oid, ball: *mut Node) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        let Some(catalog) = catalog(pg_sys::get_opcode(operator)) else {
            return core::ptr::null_mut();
        };
        match catalog.by_ball(nodes::types(ball).1) {
            Some(kind) => NearClause::of_ball(kind, root, core::ptr::null_mut(), ball).b,
            None => core::ptr::null_mut(),
        }
    }
}

/// The radius if the planner can know it, and the usual one if not.
///
/// # Safety
/// `root` is the planner's state, `radius` an expression.
unsafe fn estimated_radius(kind: &Kind, root: *mut PlannerInfo, radius: *mut Node) -> i32 {
    // SAFETY: as the caller promises.
    let known = unsafe { nodes::constant_integer(pg_sys::estimate_expression_value(root, radius)) };
    known.map_or(kind.usual_radius(), |radius| {
        radius.clamp(-1, i32::MAX.into()) as i32
    })
}

fn share(share: f64) -> Datum {
    Datum::from(share.clamp(0.0, 1.0).to_bits())
}

/// The restriction estimator of `<@`, `@>` and `~=`.
fn operator_restriction(call: &mut Call) -> Datum {
    let (root, operator, arguments) = operator_arguments(call);
    let relation = call.arg(3).value() as i32;
    // SAFETY: restriction estimators are declared to take these arguments.
    unsafe {
        let Some([left, right]) = nodes::elements(arguments) else {
            return share(UNKNOWN);
        };
        let Some(catalog) = catalog(call.function_oid()) else {
            return share(UNKNOWN);
        };
        match NearClause::of_operator(&catalog, root, left, right) {
            Some(clause) => share(clause.restriction(root, relation, pg_sys::get_opcode(operator))),
            None => share(UNKNOWN),
        }
    }
}

/// The join estimator of `<@`, `@>` and `~=`.
fn operator_join(call: &mut Call) -> Datum {
    let (root, operator, arguments) = operator_arguments(call);
    let kind_of_join = call.arg(3).value() as i16 as pg_sys::JoinType::Type;
    // SAFETY: join estimators are declared to take these arguments.
    unsafe {
        let Some([left, right]) = nodes::elements(arguments) else {
            return share(UNKNOWN);
        };
        let Some(catalog) = catalog(call.function_oid()) else {
            return share(UNKNOWN);
        };
        match NearClause::of_operator(&catalog, root, left, right) {
            Some(clause) => {
                let special = call.arg(4).cast_mut_ptr();
                share(clause.join(root, kind_of_join, special, pg_sys::get_opcode(operator)))
            }
            None => share(UNKNOWN),
        }
    }
}

fn operator_arguments(call: &Call) -> (*mut PlannerInfo, Oid, *mut pg_sys::List) {
    (
        call.arg(0).cast_mut_ptr(),
        Oid::from_u32(call.arg(1).value() as u32),
        call.arg(2).cast_mut_ptr(),
    )
}

/// Answers a request about a function of two fingerprints and a number that says, through
/// `distances`, how far they lie apart.
///
/// # Safety
/// `request` is the server's request, for such a function.
pub unsafe fn answer(
    catalog: &Catalog,
    request: *mut pg_sys::SupportRequestSelectivity,
    distances: fn(i32) -> Distances,
) -> Datum {
    // SAFETY: as the caller promises.
    unsafe {
        let root = (*request).root;
        let Some([a, b, number]) = nodes::elements((*request).args) else {
            return UNHANDLED;
        };
        let Some(kind) = catalog.by_fingerprint(nodes::types(a).1) else {
            return UNHANDLED;
        };
        let clause = NearClause {
            kind,
            a,
            b,
            distances: distances(estimated_radius(kind, root, number)),
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
}
