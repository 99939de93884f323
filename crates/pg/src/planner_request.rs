//! Requests from the planner to support functions and estimators.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid};

use super::catalog;
use super::expr::{Expr, Form, List};
use super::fmgr::Call;
use super::planner::Planner;

/// Answer to an unhandled request: a null pointer, which is not SQL NULL.
pub const UNHANDLED: Datum = Datum::null();

/// Request to a support function.
pub enum SupportRequest<'a> {
    /// Replace a call with these arguments by another expression.
    Simplify(Planner<'a>, List<'a>),
    /// Estimate the share of rows.
    Selectivity(Selectivity<'a>),
    /// Find a condition that an index supports.
    IndexCondition(IndexCondition<'a>),
    /// Any other request.
    Other,
}

/// Answer to [`SupportRequest::Simplify`].
pub fn replaced_by(replacement: Option<Expr>) -> Datum {
    replacement.map_or(UNHANDLED, |expression| expression.as_ptr().into())
}

/// Condition whose selectivity the planner requests.
#[derive(Clone, Copy)]
pub struct Condition<'a> {
    /// The planner's call.
    pub planner: Planner<'a>,
    /// The function behind the condition.
    pub function: Oid,
    /// Operands of the condition.
    pub operands: List<'a>,
    /// Rows whose share is estimated.
    pub(super) rows: Rows,
}

#[derive(Clone, Copy)]
pub(super) enum Rows {
    /// Rows of the relation with this index; 0 for the only relation whose columns occur.
    Relation(i32),
    /// Rows of a join. The server's structure that describes it lives as long as the call.
    Join(pg_sys::JoinType::Type, *mut pg_sys::SpecialJoinInfo),
}

/// Request for the share of rows for which a function returns true.
pub struct Selectivity<'a> {
    /// The condition and its rows.
    pub condition: Condition<'a>,
    request: &'a mut pg_sys::SupportRequestSelectivity,
}

impl Selectivity<'_> {
    /// The answer.
    pub fn answer(self, share: f64) -> Datum {
        self.request.selectivity = share;
        Datum::from(core::ptr::from_mut(self.request))
    }
}

/// Request for a condition that an index can use instead of a function call.
pub struct IndexCondition<'a> {
    /// The planner's call.
    pub planner: Planner<'a>,
    /// The arguments of the function.
    pub arguments: List<'a>,
    /// The position of the argument that matches the index column.
    pub indexed: i32,
    /// The operator family of that column.
    pub family: Oid,
    request: &'a mut pg_sys::SupportRequestIndexCondition,
}

impl<'a> IndexCondition<'a> {
    /// Returns whether the value of an expression is known before the index search.
    pub fn is_known(&self, expression: Expr<'a>) -> bool {
        let (root, index) = (self.request.root, self.request.index);
        // SAFETY: the server has set the planner's state and an index.
        unsafe { pg_sys::is_pseudo_constant_for_index(root, expression.as_ptr(), index) }
    }

    /// The answer. If `lossy`, the server calls the function again for each row of the index.
    pub fn answer(self, condition: Expr<'a>, lossy: bool) -> Datum {
        self.request.lossy = lossy;
        Datum::from(List::build(&[condition]))
    }
}

impl Call {
    /// The request to a support function, which is declared with one argument of type `internal`.
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

    /// The condition that an estimator must estimate. Estimators have arguments of types
    /// `internal`, `oid`, `internal`, and then `integer` for restrictions, or `smallint` and
    /// `internal` for joins. `None` if there is no such operator.
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

/// # Safety
/// The planner has made the request. The objects that it points to live as long as the request.
unsafe fn simplify(request: &pg_sys::SupportRequestSimplify) -> SupportRequest<'_> {
    // SAFETY: the caller's promise.
    unsafe {
        let planner = Planner::new(request.root);
        SupportRequest::Simplify(planner, List::new((*request.fcall).args))
    }
}

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

/// # Safety
/// The planner has made the request. The objects that it points to live as long as the request.
unsafe fn index_condition(
    request: &mut pg_sys::SupportRequestIndexCondition,
) -> SupportRequest<'_> {
    // SAFETY: the caller's promise.
    let (planner, node) = unsafe { (Planner::new(request.root), Expr::new(request.node)) };
    let Form::Call(_, arguments) = node.form() else {
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
