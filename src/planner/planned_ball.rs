//! Balls of signatures as the planner sees them: their bound is often known where the centre is
//! not.
use pgrx::pg_sys::{self, Node, NodeTag, Oid, PlannerInfo};

use super::catalog::{Signatures, catalog};
use super::nodes;
use crate::types::signature::{Bound, SignatureBall};

/// The radius of a ball of signatures, as far as it is known before the query runs.
#[derive(Clone, Copy)]
pub enum BallRadius {
    /// Of a ball that is known as a whole: mismatches, and of how many positions.
    Mismatches(i32, usize),
    /// Of a ball whose centre may come from another table.
    Bound(Bound, f64),
}

impl BallRadius {
    /// The most mismatches of signatures of this length; below zero if nothing is near enough.
    pub fn mismatches(self, hashes: usize) -> i32 {
        match self {
            BallRadius::Mismatches(mismatches, _) => mismatches,
            BallRadius::Bound(kind, bound) => kind.mismatches(hashes, bound),
        }
    }

    /// The most mismatches as a share of positions, for estimates.
    pub fn share(self) -> f64 {
        // As good as any length, for an estimate.
        const HASHES: usize = 1000;
        match self {
            BallRadius::Mismatches(mismatches, hashes) => f64::from(mismatches) / hashes as f64,
            BallRadius::Bound(..) => f64::from(self.mismatches(HASHES)) / HASHES as f64,
        }
    }
}

/// A ball of signatures as the planner sees it: a constant, or a call that makes one.
pub struct PlannedBall {
    /// Null if it cannot be told apart from the ball.
    pub center: *mut Node,
    /// `None` where it is a parameter without a value.
    pub radius: Option<BallRadius>,
    /// True if an index may answer approximately.
    pub approximate: bool,
}

impl PlannedBall {
    /// Reads an expression; `None` if the type is not that of balls of signatures.
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
            let signatures = catalog.signatures.as_ref()?;
            (nodes::types(ball).1 == signatures.ball).then(|| Self::read(signatures, root, ball))
        }
    }

    /// Reads an expression of the type of balls.
    ///
    /// # Safety
    /// `root` is the planner's state, `ball` an expression of that type.
    pub unsafe fn read(
        signatures: &Signatures,
        root: *mut PlannerInfo,
        mut ball: *mut Node,
    ) -> Self {
        let mut planned = PlannedBall {
            center: core::ptr::null_mut(),
            radius: None,
            approximate: false,
        };
        // SAFETY: tags and functions are checked before arguments are read; a constant of the
        // ball type is a ball.
        unsafe {
            if let Some(known) = nodes::constant(pg_sys::estimate_expression_value(root, ball)) {
                let known = SignatureBall::from_datum(known);
                let center = known.center.into_datum();
                let (none, no_collation) = (-1, pg_sys::InvalidOid);
                let constant = pg_sys::makeConst(
                    signatures.signature,
                    none,
                    no_collation,
                    none,
                    center,
                    false,
                    false,
                );
                planned.center = constant.cast();
                let hashes = known.center.values.len();
                planned.radius = Some(BallRadius::Mismatches(known.mismatches, hashes));
                planned.approximate = known.approximate;
                return planned;
            }
            while let Some(call) = nodes::downcast::<pg_sys::FuncExpr>(ball, NodeTag::T_FuncExpr) {
                let function = (*call).funcid;
                if let Some([inner]) = nodes::elements((*call).args) {
                    planned.approximate |= function == signatures.approximate_function;
                    ball = inner;
                    continue;
                }
                if let Some([center, bound]) = nodes::elements((*call).args)
                    && function == signatures.ball_function
                {
                    planned.center = center;
                    planned.radius = radius_of(root, bound, Bound::Distance);
                } else if let Some([center, bound, kind]) = nodes::elements((*call).args)
                    && function == signatures.bound_function
                    && let Some(kind) = kind_of(kind)
                {
                    planned.center = center;
                    planned.radius = radius_of(root, bound, kind);
                }
                break;
            }
        }
        planned
    }
}

/// The radius of a bound, if the planner can know it.
///
/// # Safety
/// `root` is the planner's state, `bound` a float8 expression.
pub unsafe fn radius_of(
    root: *mut PlannerInfo,
    bound: *mut Node,
    kind: Bound,
) -> Option<BallRadius> {
    // SAFETY: as the caller promises.
    let known = unsafe { nodes::constant(pg_sys::estimate_expression_value(root, bound)) }?;
    Some(BallRadius::Bound(
        kind,
        f64::from_bits(known.value() as u64),
    ))
}

/// The kind of bound, which is a constant in a call of `neardup_within`.
///
/// # Safety
/// `node` points to an expression.
pub unsafe fn kind_of(node: *mut Node) -> Option<Bound> {
    // SAFETY: as the caller promises.
    Bound::from_code(unsafe { nodes::constant_integer(node) }? as i32)
}
