//! Stored generated columns, which the server itself computes only after the BEFORE triggers.
use core::cell::OnceCell;

use pgrx::pg_sys;

use super::new_row::NewRow;
use crate::pg::compat;

/// Expressions of generated columns, ready to be evaluated for rows of their table.
pub struct GeneratedColumns {
    /// Columns counted from 1, each with its expression.
    columns: Vec<(i16, *mut pg_sys::ExprState)>,
    context: *mut pg_sys::ExprContext,
    slot: *mut pg_sys::TupleTableSlot,
}

impl GeneratedColumns {
    /// The expressions of all stored generated columns.
    ///
    /// # Safety
    /// The relation is open; the memory context outlives the result.
    pub unsafe fn all(relation: pg_sys::Relation, memory: pg_sys::MemoryContext) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let columns = 1..=(*(*relation).rd_att).natts as i16;
            let stored: Vec<i16> = columns
                .filter(|&column| is_stored(relation, column))
                .collect();
            Self::of(relation, &stored, memory)
        }
    }

    /// The expressions of some stored generated columns.
    ///
    /// # Safety
    /// As for [`Self::all`].
    pub unsafe fn of(
        relation: pg_sys::Relation,
        columns: &[i16],
        memory: pg_sys::MemoryContext,
    ) -> Self {
        // SAFETY: the caller's promise; each of the columns has an expression.
        unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(memory);
            let prepared = (columns.iter())
                .map(|&column| {
                    let expression = pg_sys::build_column_default(relation, i32::from(column));
                    let expression = pg_sys::expression_planner(expression.cast());
                    let state = pg_sys::ExecInitExpr(expression, core::ptr::null_mut());
                    (column, state)
                })
                .collect();
            let generated = GeneratedColumns {
                columns: prepared,
                context: pg_sys::CreateStandaloneExprContext(),
                // A copy of the descriptor: references to the relation's own are counted.
                slot: pg_sys::MakeSingleTupleTableSlot(
                    pg_sys::CreateTupleDescCopy((*relation).rd_att),
                    &raw const pg_sys::TTSOpsHeapTuple,
                ),
            };
            pg_sys::MemoryContextSwitchTo(outer);
            generated
        }
    }

    /// The values of the columns for a row, in the current memory context; `None` for NULL.
    ///
    /// # Safety
    /// The tuple is one of the relation's.
    pub unsafe fn values(&self, tuple: pg_sys::HeapTuple) -> Vec<Option<pg_sys::Datum>> {
        // SAFETY: the caller's promise.
        unsafe {
            pg_sys::ExecForceStoreHeapTuple(tuple, self.slot, false);
            (*self.context).ecxt_scantuple = self.slot;
            let values = (self.columns.iter())
                .map(|&(_, expression)| {
                    let mut null = false;
                    let value = pg_sys::ExecEvalExpr(expression, self.context, &mut null);
                    (!null).then_some(value)
                })
                .collect();
            pg_sys::ExecClearTuple(self.slot);
            values
        }
    }

    /// A row as it will be stored, with its generated columns.
    ///
    /// # Safety
    /// The row is one of the relation's.
    pub unsafe fn complete(&self, row: &NewRow) -> pg_sys::HeapTuple {
        if self.columns.is_empty() {
            return row.tuple;
        }
        // SAFETY: the caller's promise; as many columns, values and flags as are counted.
        unsafe {
            let values = self.values(row.tuple);
            let mut columns: Vec<i32> = self.columns.iter().map(|&(n, _)| i32::from(n)).collect();
            let mut nulls: Vec<bool> = values.iter().map(Option::is_none).collect();
            let mut datums: Vec<pg_sys::Datum> = (values.into_iter())
                .map(|value| value.unwrap_or(pg_sys::Datum::null()))
                .collect();
            pg_sys::heap_modify_tuple_by_cols(
                row.tuple,
                row.descriptor,
                columns.len() as i32,
                columns.as_mut_ptr(),
                datums.as_mut_ptr(),
                nulls.as_mut_ptr(),
            )
        }
    }
}

/// Whether a column is generated and stored.
///
/// # Safety
/// The relation is open, and has this column.
pub unsafe fn is_stored(relation: pg_sys::Relation, column: i16) -> bool {
    // SAFETY: the caller's promise.
    let form = unsafe { &*compat::attribute((*relation).rd_att, column as usize - 1) };
    !form.attisdropped && form.attgenerated as u8 == pg_sys::ATTRIBUTE_GENERATED_STORED
}

/// The generated columns of a table, prepared when the first row needs them.
pub struct Lazy {
    memory: pg_sys::MemoryContext,
    columns: OnceCell<GeneratedColumns>,
}

impl Lazy {
    /// # Safety
    /// The memory context outlives the value.
    pub unsafe fn new(memory: pg_sys::MemoryContext) -> Self {
        Lazy {
            memory,
            columns: OnceCell::new(),
        }
    }

    /// A row as it will be stored.
    ///
    /// # Safety
    /// The row is one of the relation's, which is open and always the same.
    pub unsafe fn complete(&self, relation: pg_sys::Relation, row: &NewRow) -> pg_sys::HeapTuple {
        // SAFETY: the caller's promises.
        unsafe {
            let columns =
                (self.columns).get_or_init(|| GeneratedColumns::all(relation, self.memory));
            columns.complete(row)
        }
    }
}
