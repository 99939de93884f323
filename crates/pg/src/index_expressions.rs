//! Expressions and predicates of indexes, loaded through the relation cache.
//!
//! When the server loads an expression or a predicate, it folds constants, which can run functions
//! of the table's owner. So this module loads them with the owner's rights, unless the server has
//! just loaded them for the same user. The relation cache keeps loaded expressions and predicates,
//! except for a predicate that folding reduces to true. So each call of this module may run
//! functions of the owner.
use pgrx::pg_sys;

use super::expr::{Expr, List};
use super::rel::Rel;
use super::security_context::AsOwner;

impl Rel<'_> {
    /// Copies the index's expressions.
    fn expressions(&self) -> List<'_> {
        // SAFETY: the relation is open. The copies are made in the current memory context, which
        // outlives this use of the relation.
        self.folded(|| unsafe { List::new(pg_sys::RelationGetIndexExpressions(self.raw())) })
    }

    /// Copies the conditions of the index's predicate; empty if the index is not partial.
    fn predicate(&self) -> List<'_> {
        // SAFETY: as in `expressions`.
        self.folded(|| unsafe { List::new(pg_sys::RelationGetIndexPredicate(self.raw())) })
    }

    /// Makes the server's description (`IndexInfo`) of the index, in the current memory context.
    pub(super) fn index_info(self) -> *mut pg_sys::IndexInfo {
        // SAFETY: the relation is open.
        self.folded(|| unsafe { pg_sys::BuildIndexInfo(self.raw()) })
    }

    /// Calls `load`, which loads expressions of the index and folds their constants, and returns
    /// its result. Folding can call functions, so `load` runs with the rights of the table's owner.
    /// If the index has neither expressions nor a predicate, the rights do not change.
    fn folded<T>(&self, load: impl FnOnce() -> T) -> T {
        let has_expressions = self.has(pg_sys::Anum_pg_index_indexprs) || self.is_partial();
        let _as_owner = has_expressions.then(|| AsOwner::new(*self));
        load()
    }

    /// Returns whether the index has a predicate.
    pub fn is_partial(self) -> bool {
        self.has(pg_sys::Anum_pg_index_indpred)
    }

    /// Returns whether a column (`Anum_pg_index_...`) of the index's row in pg_index is not NULL.
    fn has(&self, column: u32) -> bool {
        // SAFETY: each index has a row in pg_index.
        unsafe {
            let row = (*self.raw()).rd_indextuple;
            !pg_sys::heap_attisnull(row, column as i32, core::ptr::null_mut())
        }
    }

    /// Returns whether a parallel worker may evaluate all expressions of the index.
    pub fn has_parallel_safe_expressions(self) -> bool {
        // SAFETY: the relation is open. The query has nothing but a list of expressions, which the
        // server inspects.
        unsafe {
            let query = pg_sys::palloc0(size_of::<pg_sys::Query>()).cast::<pg_sys::Query>();
            (*query).type_ = pg_sys::NodeTag::T_Query;
            (*query).targetList = self.expressions().raw();
            pg_sys::max_parallel_hazard(query) as u8 == pg_sys::PROPARALLEL_SAFE
        }
    }

    /// Attribute numbers of the table's columns that the expressions and the predicate of the index
    /// use; 0 stands for whole rows. A number may occur more than once.
    pub fn columns_of_expressions(self) -> Vec<i16> {
        let (expressions, conditions) = (self.expressions(), self.predicate());
        let all = expressions.iter().chain(conditions.iter());
        all.flat_map(Expr::columns_used).collect()
    }

    /// Attribute numbers of the table's columns that the expression of the searched column uses; 0
    /// stands for whole rows. Empty if that column is not an expression.
    pub fn columns_of_searched_expression(self) -> Vec<i16> {
        (self.searched_expression()).map_or_else(Vec::new, Expr::columns_used)
    }

    /// Copies the expression of the searched column ([`Rel::searched_column`]), with constants
    /// folded; `None` if that column is not an expression.
    pub fn searched_expression(&self) -> Option<Expr<'_>> {
        let columns = self.index_form().columns;
        let (before, others) = columns.split_at(self.searched_column());
        let position = before.iter().filter(|column| **column == 0).count();
        (others[0] == 0).then(|| self.expressions().iter().nth(position))?
    }

    /// Returns whether the index certainly contains all rows of its table in which the column with
    /// the attribute number `column` is NULL. If `column` is `None`, returns whether it contains
    /// all rows of the table. Returns false if the server cannot infer this from the predicate of
    /// the index.
    ///
    /// Triggers call this function with the rights of the user who writes a row. Unlike the other
    /// functions of this module, it does not switch to the owner's rights to load the predicate.
    /// The switch would protect nobody, because INSERT and UPDATE load the predicates of all
    /// indexes with the rights of that user anyway.
    pub fn holds_all_with_null(self, table: Rel, column: Option<i16>) -> bool {
        // SAFETY: the relation is open.
        let predicate = unsafe { pg_sys::RelationGetIndexPredicate(self.raw()) };
        if predicate.is_null() {
            return true;
        }
        let Some(column) = column else {
            return false;
        };
        let attribute = table.attribute(column);
        // SAFETY: the condition is built as the parser builds it.
        unsafe {
            let variable = pg_sys::makeVar(
                1,
                column,
                attribute.atttypid,
                attribute.atttypmod,
                attribute.attcollation,
                0,
            );
            let test = pg_sys::palloc0(size_of::<pg_sys::NullTest>()).cast::<pg_sys::NullTest>();
            (*test).xpr.type_ = pg_sys::NodeTag::T_NullTest;
            (*test).arg = variable.cast();
            (*test).nulltesttype = pg_sys::NullTestType::IS_NULL;
            (*test).location = -1;
            let condition = pg_sys::lappend(core::ptr::null_mut(), test.cast());
            pg_sys::predicate_implied_by(predicate, condition, false)
        }
    }
}
