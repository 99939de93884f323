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
    Selectivity(Selectivity<'a>),
    IndexCondition(IndexCondition<'a>),
    Other,
}

/// The answer to [`SupportRequest::Simplify`].
pub fn replaced_by(replacement: Option<Expr>) -> Datum {
    replacement.map_or(UNHANDLED, |expression| expression.as_ptr().into())
}

/// A condition whose rows are to be estimated.
#[derive(Clone, Copy)]
pub struct Condition<'a> {
    pub planner: Planner<'a>,
    /// The function behind the condition.
    pub function: Oid,
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
        let node: *mut Node = self.arg(0).cast_mut_ptr();
        // SAFETY: support functions are called with a request that lives as long as the call. The
        // tag says which struct it is.
        unsafe {
            match (*node).type_ {
                NodeTag::T_SupportRequestSimplify => {
                    let request = &*node.cast::<pg_sys::SupportRequestSimplify>();
                    let planner = Planner::new(request.root);
                    SupportRequest::Simplify(planner, List::new((*request.fcall).args))
                }
                NodeTag::T_SupportRequestSelectivity => {
                    let request = &mut *node.cast::<pg_sys::SupportRequestSelectivity>();
                    let rows = match request.is_join {
                        true => Rows::Join(request.jointype, request.sjinfo),
                        false => Rows::Relation(request.varRelid),
                    };
                    SupportRequest::Selectivity(Selectivity {
                        condition: Condition {
                            planner: Planner::new(request.root),
                            function: request.funcid,
                            operands: List::new(request.args),
                            rows,
                        },
                        request,
                    })
                }
                NodeTag::T_SupportRequestIndexCondition => {
                    let request = &mut *node.cast::<pg_sys::SupportRequestIndexCondition>();
                    let Form::Call(_, arguments) = Expr::new(request.node).form() else {
                        return SupportRequest::Other;
                    };
                    SupportRequest::IndexCondition(IndexCondition {
                        planner: Planner::new(request.root),
                        arguments,
                        indexed: request.indexarg,
                        family: request.opfamily,
                        request,
                    })
                }
                _ => SupportRequest::Other,
            }
        }
    }

    /// The condition that an estimator is called for. Estimators are declared with `internal`,
    /// `oid`, `internal` and, for restrictions, `integer`, or for joins, `smallint` and `internal`.
    /// `None` if there is no such operator.
    pub fn estimated_condition(&self) -> Option<Condition<'_>> {
        let rows = match self.len() {
            4 => Rows::Relation(self.int4(3)),
            _ => Rows::Join(self.int4(3) as i16 as _, self.arg(4).cast_mut_ptr()),
        };
        let function = catalog::operator(self.oid(1))?.oprcode;
        // SAFETY: the planner's state and the operands live as long as the call.
        let (planner, operands) = unsafe {
            let operands = self.arg(2).cast_mut_ptr();
            (
                Planner::new(self.arg(0).cast_mut_ptr()),
                List::new(operands),
            )
        };
        Some(Condition {
            planner,
            function,
            operands,
            rows,
        })
    }
}
