//! Reads what the planner knows of a ball in an expression: its centre and its radius. A ball
//! contains all values within the radius of the centre. The radius is often known even if the
//! centre is not.
use pgrx::pg_sys::Oid;

use super::catalog::{SearchedType, catalog};
use crate::types::signature::Bound;
use neardup_pg::expr::{Expr, ExprKind};
use neardup_pg::planner::Planner;

/// Radius of a ball that is known before the query runs.
#[derive(Clone, Copy)]
pub enum BallRadius {
    /// Radius of a ball of fingerprints, in bits; below zero for an empty ball.
    Bits(i32),
    /// Radius of a ball of signatures.
    Signatures(SignatureRadius),
}

impl BallRadius {
    /// Returns the radius in the unit of selectivity estimates: bits for fingerprints, a share of
    /// the positions for signatures.
    pub fn distance(self) -> f64 {
        match self {
            BallRadius::Bits(bits) => bits.into(),
            BallRadius::Signatures(radius) => radius.share(),
        }
    }
}

/// Radius of a ball of signatures that is known before the query runs.
#[derive(Clone, Copy)]
pub enum SignatureRadius {
    /// Radius of a ball whose centre is also known before the query runs, for example because the
    /// ball is a constant. The fields are the maximum number of mismatches (differing positions),
    /// and the number of positions (hashes) of the centre.
    Mismatches(i32, usize),
    /// Radius of a ball whose centre is not known before the query runs, for example because it is
    /// a column of another table. The fields are the kind of the bound, such as "similarity at
    /// least", and its value. The number of mismatches depends on the number of positions of the
    /// centre, so it is not known either.
    Bound(Bound, f64),
}

impl SignatureRadius {
    /// Returns the maximum number of mismatches for signatures of `hashes` positions; below zero if
    /// the ball is empty.
    pub fn mismatches(self, hashes: usize) -> i32 {
        match self {
            SignatureRadius::Mismatches(mismatches, _) => mismatches,
            SignatureRadius::Bound(kind, bound) => kind.mismatches(hashes, bound),
        }
    }

    /// Returns the maximum number of mismatches as a share of the positions, for selectivity
    /// estimates.
    fn share(self) -> f64 {
        // Any realistic number of positions is good enough for an estimate.
        const HASHES: usize = 1000;
        match self {
            SignatureRadius::Mismatches(mismatches, hashes) => {
                f64::from(mismatches) / hashes as f64
            }
            SignatureRadius::Bound(..) => f64::from(self.mismatches(HASHES)) / HASHES as f64,
        }
    }
}

/// What the planner knows of the ball that an expression computes. The expression may be a
/// constant, or a call of a function that makes balls.
#[derive(Default)]
pub struct PlannedBall<'a> {
    /// Centre of the ball; `None` if the expression does not show it.
    pub center: Option<Expr<'a>>,
    /// Radius of the ball; `None` if it is not known before the query runs.
    pub radius: Option<BallRadius>,
    /// True if an index search for this ball may miss rows (`neardup.allow_approximate`).
    pub approximate: bool,
}

impl<'a> PlannedBall<'a> {
    /// Returns what the planner knows of `ball`, an operand of the operator with OID `operator`.
    /// `None` if the operator does not belong to the extension, or the operand does not have a ball
    /// type.
    pub fn from_operand(planner: Planner<'a>, operator: Oid, ball: Expr<'a>) -> Option<Self> {
        let catalog = catalog(neardup_pg::catalog::operator(operator)?.oprcode)?;
        let searched = catalog.by_ball(ball.base_type())?;
        Some(Self::read(searched, planner, ball))
    }

    /// Returns what the planner knows of the ball that the expression `ball` computes. The
    /// expression has the ball type of `searched`.
    pub fn read(searched: &SearchedType, planner: Planner<'a>, mut ball: Expr<'a>) -> Self {
        let known = planner.estimated(ball).value();
        if let Some(ball) = known.and_then(|known| searched.ball(known)) {
            return PlannedBall {
                center: Some(planner.copied_constant(&ball.center)),
                radius: Some(ball.radius),
                approximate: ball.approximate,
            };
        }
        let mut planned = PlannedBall::default();
        while let ExprKind::Call(function, arguments) = ball.kind() {
            let arguments: Vec<Expr> = arguments.iter().collect();
            let Some((&first, bound)) = arguments.split_first() else {
                break;
            };
            if searched.approximate_function == Some(function) {
                planned.approximate = true;
                ball = first;
                continue;
            }
            if searched.ball_function == function || searched.bound_function == Some(function) {
                planned.center = Some(first);
                planned.radius = searched.radius(planner, bound);
            }
            break;
        }
        planned
    }
}

impl SearchedType {
    /// Returns the radius that a bound describes; `None` if it is not known before the query runs.
    /// `bound` has the arguments after the centre in a call that makes a ball, or the arguments
    /// after the two values in a call of `_neardup_within`.
    pub fn radius<'a>(&self, planner: Planner<'a>, bound: &[Expr<'a>]) -> Option<BallRadius> {
        let number = planner.estimated(*bound.first()?);
        if self.metric.is_hamming() {
            let radius = number.integer()?.clamp(-1, i32::MAX.into());
            return Some(BallRadius::Bits(radius as i32));
        }
        let kind = match bound.get(1) {
            Some(kind) => bound_kind(*kind)?,
            None => Bound::Distance,
        };
        let radius = SignatureRadius::Bound(kind, number.float()?);
        Some(BallRadius::Signatures(radius))
    }
}

/// Decodes the kind of a bound, such as "similarity at least", from the number that is an argument
/// of `_neardup_within` or `_neardup_ball`. `None` if the argument is not a constant, or the number
/// has no meaning.
pub fn bound_kind(expression: Expr) -> Option<Bound> {
    Bound::from_code(expression.integer()? as i32)
}
