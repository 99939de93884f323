//! Requests of the planner to support functions and estimators.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid};

use super::catalog;
use super::expr::{Expr, Form, List};
use super::fmgr::Call;
use super::planner::Planner;

/// The answer to a request that is not handled: a null pointer, which is not SQL NULL.
pub const UNHANDLED: Datum = Datum::null();

/// A request to a support function.
pub enum SupportRequest<'a> {
    /// To replace a call with these arguments by another expression.
    Simplify(Planner<'a>, List<'a>),
    /// To estimate the share of rows.
    Selectivity(Selectivity<'a>),
    /// To find a condition that an index serves.
    IndexCondition(IndexCondition<'a>),
    /// Any other request.
    Other,
}

/// The answer to [`SupportRequest::Simplify`].
pub fn replaced_by(replacement: Option<Expr>) -> Datum {
    replacement.map_or(UNHANDLED, |expression| expression.as_ptr().into())
}

/// A condition whose rows are to be estimated.
#[derive(Clone, Copy)]
pub struct Condition<'a> {
    /// The planner's call.
    pub planner: Planner<'a>,
    /// The function behind the condition.
    pub function: Oid,
    /// Operands of the condition.
    pub operands: List<'a>,
    /// The rows of which a share is asked for.
    pub(super) rows: Rows,
}

#[derive(Clone, Copy)]
pub(super) enum Rows {
    /// Of one relation, or of the only one whose columns occur if this is 0.
    Relation(i32),
    /// Of a join, which is described by a structure of the server that lives as long as the call.
    Join(pg_sys::JoinType::Type, *mut pg_sys::SpecialJoinInfo),
}

/// A request for the share of rows that a function returns true for.
pub struct Selectivity<'a> {
    /// The condition, and its rows.
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

/// A request for a condition that an index can serve in place of a function call.
pub struct IndexCondition<'a> {
    /// The planner's call.
    pub planner: Planner<'a>,
    /// The arguments of the function.
    pub arguments: List<'a>,
    /// The position of the argument which is the index's column.
    pub indexed: i32,
    /// The operator family of that column.
    pub family: Oid,
    request: &'a mut pg_sys::SupportRequestIndexCondition,
}

impl<'a> IndexCondition<'a> {
    /// Returns whether an expression has a value before the index is searched.
    pub fn is_known(&self, expression: Expr<'a>) -> bool {
        let (root, index) = (self.request.root, self.request.index);
        // SAFETY: the server has set the planner's state and an index.
        unsafe { pg_sys::is_pseudo_constant_for_index(root, expression.as_ptr(), index) }
    }

    /// The answer. `lossy`: the function is called for each row that the index yields.
    pub fn answer(self, condition: Expr<'a>, lossy: bool) -> Datum {
        self.request.lossy = lossy;
        Datum::from(List::build(&[condition]))
    }
}

impl Call {
    /// The request to a support function, which is declared with one argument of type `internal`.
    pub fn support_request(&self) -> SupportRequest<'_> {
        let node: *mut Node = self.internal(0);
        // SAFETY: support functions are called with a request that lives as long as the call. The
        // tag says which struct it is.
        unsafe {
            match (*node).type_ {
                NodeTag::T_SupportRequestSimplify => simplify(&*node.cast()),
                NodeTag::T_SupportRequestSelectivity => selectivity(&mut *node.cast()),
                NodeTag::T_SupportRequestIndexCondition => index_condition(&mut *node.cast()),
                _ => SupportRequest::Other,
            }
        }
    }

    /// The condition that an estimator is called for. Estimators are declared with `internal`,
    /// `oid`, `internal` and, for restrictions, `integer`, or for joins, `smallint` and `internal`.
    /// `None` if there is no such operator.
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
/// The planner has made the request, which lives as long as what it points to.
unsafe fn simplify(request: &pg_sys::SupportRequestSimplify) -> SupportRequest<'_> {
    // SAFETY: the caller's promise.
    unsafe {
        let planner = Planner::new(request.root);
        SupportRequest::Simplify(planner, List::new((*request.fcall).args))
    }
}

/// # Safety
/// The planner has made the request, which lives as long as what it points to.
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
/// The planner has made the request, which lives as long as what it points to.
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
