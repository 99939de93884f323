//! Estimates of the rows that conditions on signatures yield.
//!
//! Two sources, of which the larger share counts: the signature's own kin (whoever asks for
//! near-duplicates mostly asks about something that is in the table, so about one distinct value),
//! and the statistics' sample, which shows how alike the rows are to each other. To these come the
//! most common values, whose shares are known.
use pgrx::pg_sys::{self, Datum, Node, Oid, PlannerInfo, VariableStatData};

use super::catalog::{Signatures, catalog};
use super::nodes;
use super::planned_ball::{BallRadius, PlannedBall, kind_of, radius_of};
use super::signature_sample::KEPT;
use super::statistics::{self, Column};
use crate::pg::fmgr::{Call, export};
use crate::types::signature::Signature;

/// Estimate where nothing is known: the server's own default for pattern matches.
const UNKNOWN: f64 = 0.005;

/// Most values of a sample that are compared with those of another.
const SAMPLE: usize = 50;

/// A radius as a share of positions, of signatures of any length.
#[derive(Clone, Copy)]
struct Radius(f64);

impl Radius {
    /// That of `~=`, and what is assumed where the radius is a parameter.
    const USUAL: Radius = Radius(0.2);

    fn of(ball: BallRadius) -> Self {
        Radius(ball.share())
    }

    fn holds(self, a: &Signature, b: &Signature) -> bool {
        share_of_mismatches(a, b).is_some_and(|share| share <= self.0)
    }
}

/// The share of positions in which two signatures differ, of which statistics may have kept the
/// first [`KEPT`] only; `None` if they were made differently.
fn share_of_mismatches(a: &Signature, b: &Signature) -> Option<f64> {
    let lengths = [a.values.len(), b.values.len()];
    let length = lengths[0].min(lengths[1]);
    let first = |of: &Signature<'_>| of.values.len() > length && length == KEPT;
    let a = if first(a) { a.first(length) } else { *a };
    let b = if first(b) { b.first(length) } else { *b };
    a.mismatches(&b)
        .map(|mismatches| mismatches as f64 / length as f64)
}

/// `near(a, b)` within a radius, whichever operator or function was written.
struct NearClause {
    a: *mut Node,
    /// Null if it cannot be told apart from its ball.
    b: *mut Node,
    radius: Radius,
}

impl NearClause {
    /// Reads `left operator right`, of `<@`, `@>` or `~=`.
    ///
    /// # Safety
    /// `root` is the planner's state, the others are expressions.
    unsafe fn of_operator(
        signatures: &Signatures,
        root: *mut PlannerInfo,
        left: *mut Node,
        right: *mut Node,
    ) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            if nodes::types(right).1 == signatures.ball {
                Self::of_ball(signatures, root, left, right)
            } else if nodes::types(left).1 == signatures.ball {
                Self::of_ball(signatures, root, right, left)
            } else {
                let radius = Radius::USUAL;
                NearClause {
                    a: left,
                    b: right,
                    radius,
                }
            }
        }
    }

    /// Reads `signature <@ ball`, also where the ball is a call or a constant.
    ///
    /// # Safety
    /// `root` is the planner's state, the others are expressions.
    unsafe fn of_ball(
        signatures: &Signatures,
        root: *mut PlannerInfo,
        signature: *mut Node,
        ball: *mut Node,
    ) -> Self {
        // SAFETY: as the caller promises.
        let ball = unsafe { PlannedBall::read(signatures, root, ball) };
        NearClause {
            a: signature,
            b: ball.center,
            radius: ball.radius.map_or(Radius::USUAL, Radius::of),
        }
    }

    /// The estimate for a condition on one relation.
    ///
    /// # Safety
    /// `root` is the planner's state; `relation` is 0 or the one relation whose columns vary;
    /// `function` is the one behind the condition.
    unsafe fn restriction(
        &self,
        signatures: &Signatures,
        root: *mut PlannerInfo,
        relation: i32,
        function: Oid,
    ) -> f64 {
        let mut variable = VariableStatData::default();
        let (mut other, mut on_left) = (core::ptr::null_mut(), false);
        // SAFETY: the list has the two expressions that the server's function asks for; what it
        // fills in is released at the end.
        unsafe {
            let unknown = || {
                pg_sys::makeNullConst(signatures.signature, -1, pg_sys::InvalidOid).cast::<Node>()
            };
            let b = if self.b.is_null() { unknown() } else { self.b };
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
            let share = self.share(&column, nodes::constant(other));
            column.release();
            statistics::release(&variable);
            share
        }
    }

    /// The share of a column's rows near a centre, or near a value not known yet.
    unsafe fn share(&self, column: &Column, center: Option<Datum>) -> f64 {
        let Radius(radius) = self.radius;
        if radius < 0.0 {
            return 0.0;
        }
        if radius >= 1.0 {
            return 1.0 - column.null_fraction;
        }
        // SAFETY: the statistics of a column of signatures, and a constant of that type.
        unsafe {
            let sample = read(&column.sample);
            let Some(center) = center else {
                let density = self.density(&sample, &sample);
                return (1.0 - column.null_fraction) * density.max(1.0 / column.distinct);
            };
            let center = Signature::from_datum(center);
            let common: f64 = (column.common.iter())
                .filter(|(value, _)| self.radius.holds(&Signature::from_datum(*value), &center))
                .map(|(_, share)| share)
                .sum();
            if radius == 0.0 && common > 0.0 {
                return common;
            }
            let density = self.density(&sample, &[center]);
            common + column.other_fraction() * density.max(1.0 / column.other_distinct())
        }
    }

    /// The share of pairs of different values that lie within the radius. One lucky pair is no
    /// evidence.
    fn density(&self, a: &[Signature], b: &[Signature]) -> f64 {
        let hits = (a.iter())
            .flat_map(|a| b.iter().map(move |b| (a, b)))
            .filter(|(a, b)| {
                share_of_mismatches(a, b).is_some_and(|it| it > 0.0 && it <= self.radius.0)
            })
            .count();
        if hits < 2 {
            0.0
        } else {
            (hits - 1) as f64 / (a.len() * b.len()) as f64
        }
    }

    /// The share of pairs of rows that both have one of their column's most common values, and
    /// near ones.
    ///
    /// # Safety
    /// Both columns hold signatures.
    unsafe fn common(&self, a: &Column, b: &Column) -> f64 {
        // SAFETY: as the caller promises.
        let signature = |value: &Datum| unsafe { Signature::from_datum(*value) };
        let signatures = |column: &Column| -> Vec<(Signature<'_>, f64)> {
            (column.common.iter())
                .map(|(value, share)| (signature(value), *share))
                .collect()
        };
        let (a, b) = (signatures(a), signatures(b));
        (a.iter())
            .flat_map(|a| b.iter().map(move |b| (a, b)))
            .filter(|((a, _), (b, _))| self.radius.holds(a, b))
            .map(|((_, of_a), (_, of_b))| of_a * of_b)
            .sum()
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
        let share = |a: &Column, b: &Column| {
            let present = (1.0 - a.null_fraction) * (1.0 - b.null_fraction);
            match self.radius.0 {
                radius if radius < 0.0 => 0.0,
                radius if radius >= 1.0 => present,
                _ => {
                    // SAFETY: both columns hold signatures.
                    let (density, common) = unsafe {
                        let density = self.density(&read(&a.sample), &read(&b.sample));
                        (density, self.common(a, b))
                    };
                    let others = a.other_distinct().max(b.other_distinct());
                    common + a.other_fraction() * b.other_fraction() * density.max(1.0 / others)
                }
            }
        };
        let operands = [self.a, self.b];
        // SAFETY: the caller's promise.
        unsafe {
            statistics::join_selectivity(root, kind_of_join, special, operands, function, share)
        }
    }
}

/// Some values of a sample.
///
/// # Safety
/// They are signatures.
unsafe fn read(sample: &[Datum]) -> Vec<Signature<'_>> {
    let step = sample.len().div_ceil(SAMPLE).max(1);
    // SAFETY: as the caller promises.
    (sample.iter().step_by(step))
        .map(|value| unsafe { Signature::from_datum(*value) })
        .collect()
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
        let Some(signatures) = &catalog.signatures else {
            return share(UNKNOWN);
        };
        if !are_signatures(signatures, left, right) {
            return share(UNKNOWN);
        }
        let clause = NearClause::of_operator(signatures, root, left, right);
        let function = pg_sys::get_opcode(operator);
        share(clause.restriction(signatures, root, relation, function))
    }
}

/// The restriction estimator of `=`, which knows the common values of long signatures, too.
fn equality_restriction(call: &mut Call) -> Datum {
    let (root, operator, arguments) = operator_arguments(call);
    let relation = call.arg(3).value() as i32;
    // SAFETY: restriction estimators are declared to take these arguments.
    unsafe {
        let Some([a, b]) = nodes::elements(arguments) else {
            return share(UNKNOWN);
        };
        let Some(catalog) = catalog(call.function_oid()) else {
            return share(UNKNOWN);
        };
        let Some(signatures) = &catalog.signatures else {
            return share(UNKNOWN);
        };
        let radius = Radius(0.0);
        let clause = NearClause { a, b, radius };
        let function = pg_sys::get_opcode(operator);
        share(clause.restriction(signatures, root, relation, function))
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
        let Some(signatures) = &catalog.signatures else {
            return share(UNKNOWN);
        };
        if !are_signatures(signatures, left, right) {
            return share(UNKNOWN);
        }
        let clause = NearClause::of_operator(signatures, root, left, right);
        let special = call.arg(4).cast_mut_ptr();
        share(clause.join(root, kind_of_join, special, pg_sys::get_opcode(operator)))
    }
}

/// Whether the operands are two signatures, or a signature and a ball. Anyone may name these
/// estimators for an operator on other types, whose values are not to be read as signatures.
///
/// # Safety
/// Both are expressions.
unsafe fn are_signatures(signatures: &Signatures, left: *mut Node, right: *mut Node) -> bool {
    // SAFETY: as the caller promises.
    let types = unsafe { (nodes::types(left).1, nodes::types(right).1) };
    let (signature, ball) = (signatures.signature, signatures.ball);
    [(signature, signature), (signature, ball), (ball, signature)].contains(&types)
}

fn operator_arguments(call: &Call) -> (*mut PlannerInfo, Oid, *mut pg_sys::List) {
    (
        call.arg(0).cast_mut_ptr(),
        Oid::from_u32(call.arg(1).value() as u32),
        call.arg(2).cast_mut_ptr(),
    )
}

/// Answers a request about `_neardup_within(a, b, bound, kind)`; false if it is left to the server.
///
/// # Safety
/// `request` is the server's request, for that function.
pub unsafe fn within(
    signatures: &Signatures,
    request: *mut pg_sys::SupportRequestSelectivity,
) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let root = (*request).root;
        let Some([a, b, bound, kind]) = nodes::elements((*request).args) else {
            return false;
        };
        let Some(kind) = kind_of(kind) else {
            return false;
        };
        let radius = radius_of(root, bound, kind).map_or(Radius::USUAL, Radius::of);
        let clause = NearClause { a, b, radius };
        let share = if (*request).is_join {
            let (kind, special) = ((*request).jointype, (*request).sjinfo);
            clause.join(root, kind, special, (*request).funcid)
        } else {
            clause.restriction(signatures, root, (*request).varRelid, (*request).funcid)
        };
        (*request).selectivity = share.clamp(0.0, 1.0);
        true
    }
}

export! {
    guarded "_neardup_jaccard_sel" => operator_restriction;
    guarded "_neardup_signature_eqsel" => equality_restriction;
    guarded "_neardup_jaccard_joinsel" => operator_join;
}
