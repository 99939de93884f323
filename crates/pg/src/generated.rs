//! Computes the values of generated columns in BEFORE triggers. The server computes them only after
//! these triggers have run.
use pgrx::pg_sys;

use super::memory_context::OwnContext;
use super::new_row::NewRow;
use super::rel::Rel;
use super::value::{OwnedValue, Value};

/// Compiled expressions of generated columns of one table.
pub struct GeneratedColumns {
    table: pg_sys::Oid,
    /// Attribute number of each column, with its compiled expression.
    columns: Vec<(i16, *mut pg_sys::ExprState)>,
    executor: *mut pg_sys::ExprContext,
    /// Slot that holds the row whose generated columns are computed.
    slot: *mut pg_sys::TupleTableSlot,
    /// Memory context of all objects to which the other fields point.
    _context: OwnContext,
}

impl GeneratedColumns {
    /// Compiles the expressions of all stored generated columns of a table.
    pub fn all(table: Rel) -> Self {
        let columns = 1..=table.column_count();
        let stored: Vec<i16> = columns
            .filter(|&column| table.is_stored_generated(column))
            .collect();
        Self::new(table, &stored)
    }

    /// Compiles the expressions of the generated columns with the attribute numbers `columns`.
    /// Raises an internal error if one of them is not a generated column.
    pub fn new(table: Rel, columns: &[i16]) -> Self {
        assert!(columns.iter().all(|&column| table.is_generated(column)));
        let context = OwnContext::new(c"neardup generated columns");
        // SAFETY: the table is open, and each of the columns has an expression. All objects made
        // here live in the context.
        let (columns, executor, slot) = context.run(|| unsafe {
            let prepared = (columns.iter())
                .map(|&column| {
                    let expression = pg_sys::build_column_default(table.raw(), i32::from(column));
                    let expression = pg_sys::expression_planner(expression.cast());
                    let state = pg_sys::ExecInitExpr(expression, core::ptr::null_mut());
                    (column, state)
                })
                .collect();
            // Copies the descriptor because the relation's own is reference-counted.
            let descriptor = pg_sys::CreateTupleDescCopy((*table.raw()).rd_att);
            let kind = &raw const pg_sys::TTSOpsHeapTuple;
            let slot = pg_sys::MakeSingleTupleTableSlot(descriptor, kind);
            (prepared, pg_sys::CreateStandaloneExprContext(), slot)
        });
        GeneratedColumns {
            table: table.oid(),
            columns,
            executor,
            slot,
            _context: context,
        }
    }

    /// Computes the values of the generated columns for a row of the table, `None` for NULL. The
    /// values are in the order in which [`GeneratedColumns::new`] got the columns.
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
