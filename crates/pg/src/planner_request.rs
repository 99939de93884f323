//! Requests that the planner sends to the support functions and selectivity estimators of this
//! extension, and their answers.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid};

use super::catalog;
use super::expr::{Expr, ExprKind, List};
use super::fmgr::Call;
use super::planner::Planner;

/// Answer of a support function to a request that it does not handle: a null pointer, which is not
/// SQL NULL.
pub const UNHANDLED: Datum = Datum::null();

/// Request of the planner to a support function. The request is about one SQL function, which the
/// comments below call the supported function.
pub enum SupportRequest<'a> {
    /// Replace a call of the supported function by another expression. Has the planner's state and
    /// the arguments of the call. The function [`replaced_by`] makes the answer.
    Simplify(Planner<'a>, List<'a>),
    /// Estimate the share of rows for which the supported function returns true.
    Selectivity(Selectivity<'a>),
    /// Find a condition that an index can evaluate instead of a call of the supported function.
    IndexCondition(IndexCondition<'a>),
    /// A request of another kind, which is not handled.
    Other,
}

/// Answers [`SupportRequest::Simplify`] with the new expression; `None` keeps the call.
pub fn replaced_by(replacement: Option<Expr>) -> Datum {
    replacement.map_or(UNHANDLED, |expression| expression.as_ptr().into())
}

/// Condition whose selectivity the planner requests from a support function or an estimator.
#[derive(Clone, Copy)]
pub struct Condition<'a> {
    /// State of the planner during this call.
    pub planner: Planner<'a>,
    /// OID of the function that evaluates the condition: the supported function, or the function of
    /// the operator.
    pub function: Oid,
    /// Operands of the condition, which are the arguments of `function`.
    pub operands: List<'a>,
    /// Rows for which the planner evaluates the condition.
    pub(super) rows: Rows,
}

/// Rows for which a condition's selectivity is estimated.
#[derive(Clone, Copy)]
pub(super) enum Rows {
    /// Rows of one relation. Has the relation's number in the range table, or 0. If it is 0, the
    /// condition has columns of only one relation, and this relation is meant.
    Relation(i32),
    /// Rows of a join, given by its type and by the server's description of it, which lives as long
    /// as the call.
    Join(pg_sys::JoinType::Type, *mut pg_sys::SpecialJoinInfo),
}

/// Request for the share of rows for which the supported function returns true.
pub struct Selectivity<'a> {
    /// The condition, which is a call of the supported function. The share is requested for the
    /// rows in its field `rows`.
    pub condition: Condition<'a>,
    request: &'a mut pg_sys::SupportRequestSelectivity,
}

impl Selectivity<'_> {
    /// Answers the request with `share`, the share of rows from 0 to 1.
    pub fn answer(self, share: f64) -> Datum {
        self.request.selectivity = share;
        Datum::from(core::ptr::from_mut(self.request))
    }
}

/// Request for a condition that an index can evaluate instead of a call of the supported function.
pub struct IndexCondition<'a> {
    /// State of the planner during this call.
    pub planner: Planner<'a>,
    /// Arguments of the supported function.
    pub arguments: List<'a>,
    /// Position, counted from 0, of the argument that matches the index column.
    pub indexed: i32,
    /// Operator family of the index column.
    pub family: Oid,
    request: &'a mut pg_sys::SupportRequestIndexCondition,
}

impl<'a> IndexCondition<'a> {
    /// Returns whether the index scan can evaluate an expression once, before it searches: the
    /// expression is not volatile and has no column of the index's table.
    pub fn is_known(&self, expression: Expr<'a>) -> bool {
        let (root, index) = (self.request.root, self.request.index);
        // SAFETY: the server has set the planner's state and an index.
        unsafe { pg_sys::is_pseudo_constant_for_index(root, expression.as_ptr(), index) }
    }

    /// Answers the request with `condition`, which an index can evaluate. If `lossy` is true, the
    /// server also calls the supported function for each row that the index finds.
    pub fn answer(self, condition: Expr<'a>, lossy: bool) -> Datum {
        self.request.lossy = lossy;
        Datum::from(List::build(&[condition]))
    }
}

impl Call {
    /// Reads the request from a call of a support function. The function must be declared with one
    /// argument of type `internal`.
    pub fn support_request(&self) -> SupportRequest<'_> {
        let node: *mut Node = self.internal(0);
        // SAFETY: the server passes a request to support functions that lives as long as the call.
        // The node's tag identifies its struct.
        unsafe {
            match (*node).type_ {
                NodeTag::T_SupportRequestSimplify => simplify(&*node.cast()),
                NodeTag::T_SupportRequestSelectivity => selectivity(&mut *node.cast()),
                NodeTag::T_SupportRequestIndexCondition => index_condition(&mut *node.cast()),
                _ => SupportRequest::Other,
            }
        }
    }

    /// Reads the condition from a call of a selectivity estimator of an operator. `None` if the
    /// operator does not exist.
    ///
    /// An estimator is declared with arguments of types `internal`, `oid` and `internal`, followed
    /// by `integer` for restrictions, or by `smallint` and `internal` for joins.
    pub fn estimated_condition(&self) -> Option<Condition<'_>> {
        let rows = match self.arg_count() {
            4 => Rows::Relation(self.int4(3)),
            _ => Rows::Join(self.int4(3) as i16 as _, self.internal(4)),
        };
        let function = catalog::operator(self.oid(1))?.oprcode;
        // SAFETY: the planner's state and the operands live as long as the call.
        let (planner, operands) =
            unsafe { (Planner::new(self.internal(0)), List::new(self.internal(2))) };
        Some(Condition {
            planner,
            function,
            operands,
            rows,
        })
    }
}

/// Reads a request to replace a call of the supported function.
/// # Safety
/// The planner has made the request. The objects that it points to live as long as the request.
unsafe fn simplify(request: &pg_sys::SupportRequestSimplify) -> SupportRequest<'_> {
    // SAFETY: the caller's promise.
    unsafe {
        let planner = Planner::new(request.root);
        SupportRequest::Simplify(planner, List::new((*request.fcall).args))
    }
}

/// Reads a request for the share of rows for which the supported function returns true.
/// # Safety
/// The planner has made the request. The objects that it points to live as long as the request.
unsafe fn selectivity(request: &mut pg_sys::SupportRequestSelectivity) -> SupportRequest<'_> {
    let rows = match request.is_join {
        true => Rows::Join(request.jointype, request.sjinfo),
        false => Rows::Relation(request.varRelid),
    };
    // SAFETY: the caller's promise.
    let (planner, operands) = unsafe { (Planner::new(request.root), List::new(request.args)) };
    SupportRequest::Selectivity(Selectivity {
        condition: Condition {
            planner,
            function: request.funcid,
            operands,
            rows,
        },
        request,
    })
}

/// Reads a request for a condition that an index can evaluate; [`SupportRequest::Other`] if the
/// supported function is not used in a plain call.
/// # Safety
/// The planner has made the request. The objects that it points to live as long as the request.
unsafe fn index_condition(
    request: &mut pg_sys::SupportRequestIndexCondition,
) -> SupportRequest<'_> {
    // SAFETY: the caller's promise.
    let (planner, node) = unsafe { (Planner::new(request.root), Expr::new(request.node)) };
    let ExprKind::Call(_, arguments) = node.kind() else {
        return SupportRequest::Other;
    };
    SupportRequest::IndexCondition(IndexCondition {
        planner,
        arguments,
        indexed: request.indexarg,
        family: request.opfamily,
        request,
    })
}
