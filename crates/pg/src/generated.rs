//! Computes the values of generated columns in BEFORE triggers. The server computes them only after
//! these triggers have run.
use std::rc::Rc;

use pgrx::pg_sys;

use super::expr::Expr;
use super::memory_context::OwnContext;
use super::new_row::NewRow;
use super::rel::Rel;
use super::value::{OwnedValue, Value};

/// Planned expressions of generated columns of one table. They can be kept between statements.
pub struct PlannedColumns {
    table: pg_sys::Oid,
    columns: Planned,
    /// True if the planner may have replaced a call of a user-defined function by its result
    /// ([`Expr::folds_user_function`]). The call may return another result in a later statement.
    is_folded: bool,
}

/// Attribute number of each column, with its planned expression.
type Planned = Rc<[(i16, PlannedExpression)]>;

/// Expression in the server's plan cache, which frees it when this value is dropped.
struct PlannedExpression(*mut pg_sys::CachedExpression);

impl Drop for PlannedExpression {
    fn drop(&mut self) {
        // SAFETY: the expression is in the plan cache, and is not used any more.
        unsafe { pg_sys::FreeCachedExpression(self.0) }
    }
}

impl PlannedColumns {
    /// Plans the expressions of all stored generated columns of a table.
    pub fn all(table: Rel) -> Self {
        let columns = 1..=table.column_count();
        let stored: Vec<i16> = columns
            .filter(|&column| table.is_stored_generated(column))
            .collect();
        Self::new(table, &stored)
    }

    /// Plans the expressions of the generated columns with the attribute numbers `columns`. Raises
    /// an internal error if one of them is not a generated column.
    pub fn new(table: Rel, columns: &[i16]) -> Self {
        assert!(columns.iter().all(|&column| table.is_generated(column)));
        let mut is_folded = false;
        let plan = |&column: &i16| {
            // The planner leaves garbage in the current memory context.
            let context = OwnContext::new(c"neardup generated column");
            // SAFETY: the table is open, and the column has an expression. The plan cache copies
            // it.
            let planned = context.run(|| unsafe {
                let expression = pg_sys::build_column_default(table.raw(), i32::from(column));
                is_folded |= Expr::new(expression).folds_user_function();
                PlannedExpression(pg_sys::GetCachedExpression(expression))
            });
            (column, planned)
        };
        let columns = columns.iter().map(plan).collect();
        PlannedColumns {
            table: table.oid(),
            columns,
            is_folded,
        }
    }

    /// Returns whether another statement can use the plans. Returns false if the plans may contain
    /// results of user-defined functions, or if a function or type that a plan depends on has
    /// changed. Does not detect a change of the table itself; the caller must watch for that.
    pub fn is_valid(&self) -> bool {
        // SAFETY: the expressions are in the plan cache.
        !self.is_folded
            && (self.columns.iter()).all(|(_, planned)| unsafe { (*planned.0).is_valid })
    }

    /// Compiles the expressions for the rows of one statement. Raises an error if the current user
    /// may not execute a function in them.
    pub fn compile(&self, table: Rel) -> GeneratedColumns {
        assert_eq!(self.table, table.oid());
        let context = OwnContext::new(c"neardup generated columns");
        // SAFETY: the table is open. All objects made here live in the context, and the plans that
        // they refer to live in the result.
        let (columns, executor, slot) = context.run(|| unsafe {
            let compiled = (self.columns.iter())
                .map(|(column, planned)| {
                    let expression = (*planned.0).expr.cast();
                    (
                        *column,
                        pg_sys::ExecInitExpr(expression, core::ptr::null_mut()),
                    )
                })
                .collect();
            // Copies the descriptor because the relation's own is reference-counted.
            let descriptor = pg_sys::CreateTupleDescCopy((*table.raw()).rd_att);
            let kind = &raw const pg_sys::TTSOpsHeapTuple;
            let slot = pg_sys::MakeSingleTupleTableSlot(descriptor, kind);
            (compiled, pg_sys::CreateStandaloneExprContext(), slot)
        });
        GeneratedColumns {
            table: self.table,
            columns,
            executor,
            slot,
            _context: context,
            _planned: Rc::clone(&self.columns),
        }
    }
}

/// Compiled expressions of generated columns of one table, for the rows of one statement.
pub struct GeneratedColumns {
    table: pg_sys::Oid,
    /// Attribute number of each column, with its compiled expression.
    columns: Vec<(i16, *mut pg_sys::ExprState)>,
    executor: *mut pg_sys::ExprContext,
    /// Slot that holds the row whose generated columns are computed.
    slot: *mut pg_sys::TupleTableSlot,
    /// Memory context of all objects to which the other fields point.
    _context: OwnContext,
    /// Plans to which the compiled expressions point. Dropped after them.
    _planned: Planned,
}

impl GeneratedColumns {
    /// Computes the values of the generated columns for a row of the table, `None` for NULL. The
    /// values are in the order in which [`PlannedColumns::new`] got the columns.
    pub fn values(&self, table: Rel, row: &NewRow) -> Vec<Option<OwnedValue>> {
        assert_eq!(self.table, table.oid());
        // SAFETY: the row is a row of the table. Values live until the context is reset.
        unsafe {
            pg_sys::ExecForceStoreHeapTuple(row.tuple(), self.slot, false);
            (*self.executor).ecxt_scantuple = self.slot;
            let memory = (*self.executor).ecxt_per_tuple_memory;
            let outer = pg_sys::MemoryContextSwitchTo(memory);
            let values = (self.columns.iter())
                .map(|&(column, expression)| {
                    let mut null = false;
                    let value = pg_sys::ExecEvalExpr(expression, self.executor, &mut null);
                    (!null).then(|| Value::new(value, &table.attribute(column)).to_owned())
                })
                .collect();
            pg_sys::MemoryContextSwitchTo(outer);
            pg_sys::MemoryContextReset(memory);
            pg_sys::ExecClearTuple(self.slot);
            values
        }
    }

    /// Returns the row with the computed values of its generated columns, as the server will store
    /// it; `None` if there are no generated columns.
    pub fn complete<'a>(&self, table: Rel, row: &NewRow<'a>) -> Option<NewRow<'a>> {
        if self.columns.is_empty() {
            return None;
        }
        let values = self.values(table, row);
        let columns: Vec<i16> = self.columns.iter().map(|&(column, _)| column).collect();
        let values: Vec<Option<Value>> = values
            .iter()
            .map(|value| value.as_ref().map(OwnedValue::get))
            .collect();
        Some(row.with(&columns, &values))
    }
}
