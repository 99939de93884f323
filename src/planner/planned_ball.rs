//! Balls as the planner sees them: the bound is often known even if the centre is not.
use pgrx::pg_sys::Oid;

use super::catalog::{SearchedType, catalog};
use crate::types::signature::Bound;
use neardup_pg::expr::{Expr, Form};
use neardup_pg::planner::Planner;

/// Radius of a ball, if it is known before the query runs.
#[derive(Clone, Copy)]
pub enum BallRadius {
    /// Radius of a ball of fingerprints, in bits; below zero for an empty ball.
    Bits(i32),
    /// Radius of a ball of signatures.
    Signatures(SignatureRadius),
}

impl BallRadius {
    /// Returns the radius for estimates: in bits, or as a share of positions.
    pub fn distance(self) -> f64 {
        match self {
            BallRadius::Bits(bits) => bits.into(),
            BallRadius::Signatures(radius) => radius.share(),
        }
    }
}

/// Radius of a ball of signatures, if it is known before the query runs.
#[derive(Clone, Copy)]
pub enum SignatureRadius {
    /// Number of mismatches and of positions, if the whole ball is known.
    Mismatches(i32, usize),
    /// Bound of a ball whose centre may be a column of another table.
    Bound(Bound, f64),
}

impl SignatureRadius {
    /// Returns the maximum mismatches for this length; below zero for an empty ball.
    pub fn mismatches(self, hashes: usize) -> i32 {
        match self {
            SignatureRadius::Mismatches(mismatches, _) => mismatches,
            SignatureRadius::Bound(kind, bound) => kind.mismatches(hashes, bound),
        }
    }

    /// Returns the maximum number of mismatches as a share of positions, for estimates.
    fn share(self) -> f64 {
        // Any length is good enough for an estimate.
        const HASHES: usize = 1000;
        match self {
            SignatureRadius::Mismatches(mismatches, hashes) => {
                f64::from(mismatches) / hashes as f64
            }
            SignatureRadius::Bound(..) => f64::from(self.mismatches(HASHES)) / HASHES as f64,
        }
    }
}

/// Ball as the planner sees it: a constant, or a call that makes one.
#[derive(Default)]
pub struct PlannedBall<'a> {
    /// Centre; `None` if it cannot be separated from the ball.
    pub center: Option<Expr<'a>>,
    /// Radius; `None` if it is a parameter without a value.
    pub radius: Option<BallRadius>,
    /// True if an index may answer approximately.
    pub approximate: bool,
}

impl<'a> PlannedBall<'a> {
    /// Reads an operand of one of the extension's operators; `None` if its type is not a ball
    /// type.
    pub fn from_operand(planner: Planner<'a>, operator: Oid, ball: Expr<'a>) -> Option<Self> {
        let catalog = catalog(neardup_pg::catalog::operator(operator)?.oprcode)?;
        let searched = catalog.by_ball(ball.base_type())?;
        Some(Self::read(searched, planner, ball))
    }

    /// Reads an expression of the type's balls.
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
        while let Form::Call(function, arguments) = ball.form() {
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
    /// Returns the radius of a bound, if the planner can know it. `bound` has the arguments after
    /// the centre in a call that makes a ball, or after the values in a call of `_neardup_within`.
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

/// Returns the kind of bound, a constant in a call of `_neardup_within`.
pub fn bound_kind(expression: Expr) -> Option<Bound> {
    Bound::from_code(expression.integer()? as i32)
}
