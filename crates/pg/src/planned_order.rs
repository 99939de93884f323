//! Replaces the ORDER BY of a query while the server plans the query.
use pgrx::pg_sys::{self, Oid, SortGroupClause, TargetEntry};

use super::compat;
use super::expr::Expr;
use super::planned_conditions::PlannedRelation;

/// The only ORDER BY item of a query.
pub struct Order<'a> {
    /// Expression to sort by.
    pub expression: Expr<'a>,
    /// Operator to sort by: `<` of the expression's type for ASC, `>` for DESC.
    pub operator: Oid,
    /// True if the item has NULLS FIRST.
    pub nulls_first: bool,
}

impl<'a> PlannedRelation<'a> {
    /// Calls `replace` with the ORDER BY item of the query if the query has exactly one, and has no
    /// grouping, DISTINCT or set operations. `replace` returns an expression of type `int4`, by
    /// which the query then sorts, ascending and with NULLS LAST. If it returns `None`, the order
    /// stays as it is.
    ///
    /// Call this function in the `get_relation_info_hook`. The planner calls that hook when it
    /// opens the tables of the query, and reads the ORDER BY only later.
    pub fn replace_order(&self, replace: impl FnOnce(Order<'a>) -> Option<Expr<'a>>) {
        let Some(root) = self.planner.root() else {
            return;
        };
        if self.rel.reloptkind != pg_sys::RelOptKind::RELOPT_BASEREL {
            return;
        }
        // SAFETY: the planner's state, its query and their lists belong to this call. A sort item
        // references an entry of the target list.
        unsafe {
            let query = &*(*root).parse;
            if !is_plain(query) {
                return;
            }
            let item: *mut SortGroupClause = pg_sys::list_nth(query.sortClause, 0).cast();
            let targets = (*root).processed_tlist;
            let target = pg_sys::get_sortgroupref_tle((*item).tleSortGroupRef, targets);
            let order = Order {
                expression: Expr::new((*target).expr.cast()),
                operator: (*item).sortop,
                nulls_first: (*item).nulls_first,
            };
            let Some(by) = replace(order) else { return };
            assert!(by.has_type(pg_sys::INT4OID));
            if (*target).resjunk {
                (*target).expr = by.as_ptr().cast();
            } else {
                (*item).tleSortGroupRef = append_target(root, by);
            }
            (*item).eqop = Oid::from_u32(pg_sys::Int4EqualOperator);
            (*item).sortop = Oid::from_u32(pg_sys::Int4LessOperator);
            (*item).nulls_first = false;
            compat::set_ascending(&mut *item);
        }
    }
}

/// Returns whether a query is a SELECT with exactly one ORDER BY item and without grouping,
/// aggregates, window functions, DISTINCT, set operations or set-returning functions in its
/// columns.
fn is_plain(query: &pg_sys::Query) -> bool {
    // SAFETY: null, which is the empty list, or a list.
    let items = unsafe { pg_sys::list_length(query.sortClause) };
    items == 1
        && query.commandType == pg_sys::CmdType::CMD_SELECT
        && query.groupClause.is_null()
        && query.groupingSets.is_null()
        && query.distinctClause.is_null()
        && query.setOperations.is_null()
        && !(query.hasAggs || query.hasWindowFuncs || query.hasTargetSRFs)
}

/// Adds an expression to the target list as a column that is not part of the result. Returns the
/// number by which a sort item refers to the new column (`ressortgroupref`).
///
/// # Safety
/// `root` is the planner's state before it has built the targets of relations.
unsafe fn append_target(root: *mut pg_sys::PlannerInfo, expression: Expr) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        let targets = (*root).processed_tlist;
        let number = pg_sys::list_length(targets) as i16 + 1;
        let (node, no_name) = (expression.as_ptr().cast(), core::ptr::null_mut());
        let target: *mut TargetEntry = pg_sys::makeTargetEntry(node, number, no_name, true);
        let used = (0..pg_sys::list_length(targets)).map(|n| {
            let target: *mut TargetEntry = pg_sys::list_nth(targets, n).cast();
            (*target).ressortgroupref
        });
        let reference = used.max().unwrap_or_default() + 1;
        (*target).ressortgroupref = reference;
        (*root).processed_tlist = pg_sys::lappend(targets, target.cast());
        reference
    }
}
