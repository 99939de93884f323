//! Values of an index's columns, computed from rows of the table with the rights of the table's
//! owner.
use pgrx::pg_sys;

use super::memory_context::OwnContext;
use super::rel::Rel;
use super::security_context::AsOwner;
use super::slot::Slot;
use super::value::{Value, ValueType};

/// Columns of one index, compiled so that their values can be computed for rows of the table.
pub struct IndexColumns<'a> {
    index: Rel<'a>,
    info: *mut pg_sys::IndexInfo,
    executor: *mut pg_sys::EState,
    /// Type of the values of each column.
    types: Vec<ValueType>,
    /// Memory context that holds the objects of `info` and `executor`.
    _context: OwnContext,
}

impl<'a> IndexColumns<'a> {
    /// Compiles the columns of an index. Raises an internal error if the index is not on this
    /// table.
    pub fn new(table: Rel, index: Rel<'a>) -> Self {
        let form = index.index_form();
        assert_eq!(form.table, table.oid());
        let context = OwnContext::new(c"neardup index columns");
        // SAFETY: the index is open. All objects made here live in the context or its children.
        let (info, executor, expressions) = context.run(|| unsafe {
            let info = index.index_info();
            let executor = pg_sys::CreateExecutorState();
            pg_sys::MakePerTupleExprContext(executor);
            let list = (*info).ii_Expressions;
            let types = (0..pg_sys::list_length(list))
                .map(|i| pg_sys::exprType(pg_sys::list_nth(list, i).cast()));
            (info, executor, types.collect::<Vec<_>>())
        });
        let mut expressions = expressions.into_iter();
        let types = (form.columns.iter())
            .map(|&column| match column {
                0 => ValueType::from_oid(expressions.next().expect("an expression for each 0")),
                column => ValueType::from_attribute(&table.attribute(column)),
            })
            .collect();
        IndexColumns {
            index,
            info,
            executor,
            types,
            _context: context,
        }
    }

    /// Computes the values of the index's columns for the row in a slot, calls `take` with the
    /// values (`None` for NULL), and returns the result of `take`.
    pub fn with<T>(&self, slot: &Slot, take: impl FnOnce(&[Option<Value>]) -> T) -> T {
        const COLUMNS: usize = pg_sys::INDEX_MAX_KEYS as usize;
        assert_eq!(slot.table(), self.index.index_form().table);
        assert!(!slot.is_empty(), "no row in the slot");
        let mut values = [pg_sys::Datum::from(0); COLUMNS];
        let mut nulls = [true; COLUMNS];
        // SAFETY: the slot holds a row of the table. The arrays have room for the maximum number
        // of index columns. Values live until the context is reset.
        unsafe {
            let context = (*self.executor).es_per_tuple_exprcontext;
            (*context).ecxt_scantuple = slot.raw();
            // An index has the same owner as its table.
            let has_expressions = !(*self.info).ii_Expressions.is_null();
            let as_owner = has_expressions.then(|| AsOwner::new(self.index));
            let (into, flags) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::FormIndexDatum(self.info, slot.raw(), self.executor, into, flags);
            drop(as_owner);
            let typed: Vec<Option<Value>> = (self.types.iter().zip(values.iter().zip(nulls)))
                .map(|(&of, (&value, null))| (!null).then(|| Value::typed(value, of)))
                .collect();
            let result = take(&typed);
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            result
        }
    }
}
