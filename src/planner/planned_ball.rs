//! Balls as the planner sees them: their bound is often known where the centre is not.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid, PlannerInfo};

use super::catalog::{Metric, Space, catalog};
use super::nodes;
use crate::types::signature::{Bound, SignatureBall};

/// The radius of a ball, as far as it is known before the query runs.
#[derive(Clone, Copy)]
pub enum BallRadius {
    /// Of a ball of fingerprints, in bits; below zero if nothing is near enough.
    Bits(i32),
    /// Of a ball of signatures.
    Signatures(SignatureRadius),
}

impl BallRadius {
    /// The greatest distance within, for estimates: in bits, or as a share of positions.
    pub fn distance(self) -> f64 {
        match self {
            BallRadius::Bits(bits) => bits.into(),
            BallRadius::Signatures(radius) => radius.share(),
        }
    }
}

/// The radius of a ball of signatures, as far as it is known before the query runs.
#[derive(Clone, Copy)]
pub enum SignatureRadius {
    /// Of a ball that is known as a whole: mismatches, and of how many positions.
    Mismatches(i32, usize),
    /// Of a ball whose centre may come from another table.
    Bound(Bound, f64),
}

impl SignatureRadius {
    /// The most mismatches of signatures of this length; below zero if nothing is near enough.
    pub fn mismatches(self, hashes: usize) -> i32 {
        match self {
            SignatureRadius::Mismatches(mismatches, _) => mismatches,
            SignatureRadius::Bound(kind, bound) => kind.mismatches(hashes, bound),
        }
    }

    /// The most mismatches as a share of positions, for estimates.
    fn share(self) -> f64 {
        // As good as any length, for an estimate.
        const HASHES: usize = 1000;
        match self {
            SignatureRadius::Mismatches(mismatches, hashes) => {
                f64::from(mismatches) / hashes as f64
            }
            SignatureRadius::Bound(..) => f64::from(self.mismatches(HASHES)) / HASHES as f64,
        }
    }
}

/// A ball as the planner sees it: a constant, or a call that makes one.
pub struct PlannedBall {
    /// Null if it cannot be told apart from the ball.
    pub center: *mut Node,
    /// `None` where it is a parameter without a value.
    pub radius: Option<BallRadius>,
    /// True if an index may answer approximately.
    pub approximate: bool,
}

impl PlannedBall {
    /// Reads an expression; `None` if the type is not that of balls.
    ///
    /// # Safety
    /// `root` is the planner's state, `operator` one of the extension's, `ball` an expression.
    pub unsafe fn of_operand(
        root: *mut PlannerInfo,
        operator: Oid,
        ball: *mut Node,
    ) -> Option<Self> {
        // SAFETY: as the caller promises.
        unsafe {
            let catalog = catalog(pg_sys::get_opcode(operator))?;
            let metric = catalog.by_ball(nodes::types(ball).1)?;
            Some(Self::read(metric, root, ball))
        }
    }

    /// Reads an expression of the type of balls.
    ///
    /// # Safety
    /// `root` is the planner's state, `ball` an expression of the metric's ball type.
    pub unsafe fn read(metric: &Metric, root: *mut PlannerInfo, mut ball: *mut Node) -> Self {
        let mut planned = PlannedBall {
            center: core::ptr::null_mut(),
            radius: None,
            approximate: false,
        };
        // SAFETY: tags and functions are checked before arguments are read; a constant of the
        // ball type is a ball.
        unsafe {
            if let Some(known) = nodes::constant(pg_sys::estimate_expression_value(root, ball)) {
                return Self::of_constant(metric, known);
            }
            while let Some(call) = nodes::downcast::<pg_sys::FuncExpr>(ball, NodeTag::T_FuncExpr) {
                let function = (*call).funcid;
                let mut arguments = nodes::members((*call).args);
                let Some(first) = arguments.next() else {
                    break;
                };
                let (is_approximate, has_bound) = match &metric.space {
                    Space::Hamming(_) => (false, false),
                    Space::MinHash(minhash) => (
                        minhash.approximate_function == function,
                        minhash.bound_function == function,
                    ),
                };
                if !is_approximate {
                    if function == metric.ball_function || has_bound {
                        planned.center = first;
                        let bound: Vec<*mut Node> = arguments.collect();
                        planned.radius = metric.radius(root, &bound);
                    }
                    break;
                }
                planned.approximate = true;
                ball = first;
            }
        }
        planned
    }

    /// Reads a constant.
    ///
    /// # Safety
    /// `ball` is a value of the metric's ball type.
    unsafe fn of_constant(metric: &Metric, ball: Datum) -> Self {
        let (mut length, mut by_value) = (0, false);
        // SAFETY: as the caller promises; the centre is a value of the metric's type.
        unsafe {
            let (center, radius, approximate) = match &metric.space {
                Space::Hamming(hamming) => {
                    let (center, radius) = (hamming.traits.ball_parts)(ball);
                    (center, BallRadius::Bits(radius), false)
                }
                Space::MinHash(_) => {
                    let ball = SignatureBall::from_datum(ball);
                    let hashes = ball.center.values.len();
                    let radius = SignatureRadius::Mismatches(ball.mismatches, hashes);
                    let radius = BallRadius::Signatures(radius);
                    (ball.center.into_datum(), radius, ball.approximate)
                }
            };
            pg_sys::get_typlenbyval(metric.value, &mut length, &mut by_value);
            let (value, none, length) = (metric.value, pg_sys::InvalidOid, length.into());
            PlannedBall {
                center: pg_sys::makeConst(value, -1, none, length, center, false, by_value).cast(),
                radius: Some(radius),
                approximate,
            }
        }
    }
}

impl Metric {
    /// The radius of a bound, if the planner can know it.
    ///
    /// # Safety
    /// `root` is the planner's state, `bound` what follows the centre in a call that makes a ball,
    /// or the values in one of `_neardup_within`.
    pub unsafe fn radius(&self, root: *mut PlannerInfo, bound: &[*mut Node]) -> Option<BallRadius> {
        // SAFETY: as the caller promises; the bound of signatures is a float8.
        unsafe {
            let number = pg_sys::estimate_expression_value(root, *bound.first()?);
            if self.hamming().is_some() {
                let radius = nodes::constant_integer(number)?;
                return Some(BallRadius::Bits(radius.clamp(-1, i32::MAX.into()) as i32));
            }
            let kind = match bound.get(1) {
                Some(kind) => bound_kind(*kind)?,
                None => Bound::Distance,
            };
            let number = f64::from_bits(nodes::constant(number)?.value() as u64);
            Some(BallRadius::Signatures(SignatureRadius::Bound(kind, number)))
        }
    }
}

/// The kind of bound, which is a constant in a call of `_neardup_within`.
///
/// # Safety
/// `node` points to an expression.
pub unsafe fn bound_kind(node: *mut Node) -> Option<Bound> {
    // SAFETY: as the caller promises.
    Bound::from_code(unsafe { nodes::constant_integer(node) }? as i32)
}
