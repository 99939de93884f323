//! Comparison of two rows of a table by its unique keys, including keys with expressions or a
//! predicate. It shows whether a new row conflicts with an existing one.
use pgrx::pg_sys;

use super::equality::EqualColumn;
use super::memory_context::OwnContext;
use super::new_row::NewRow;
use super::rel::{OpenRelation, Rel};
use super::slot::Slot;

/// Number of the column that is a table's primary key; `None` if there is no primary key or if it
/// has several columns.
pub fn primary_key_column(table: Rel) -> Option<i16> {
    let index = OpenRelation::index(table.primary_key()?, pg_sys::AccessShareLock);
    let form = index.rel().index_form();
    (form.key_columns == 1).then(|| form.columns[0])
}

/// Unique index of the table that the server checks when a row is written.
struct UniqueKey {
    /// The server's description of the index. The server uses it to compute the key values of a
    /// row.
    info: *mut pg_sys::IndexInfo,
    /// Predicate of the index, ready for execution; null if the index holds all rows.
    predicate: *mut pg_sys::ExprState,
    /// Equality operator of each key column.
    columns: Vec<EqualColumn>,
    /// True if the index treats two NULLs as equal.
    nulls_equal: bool,
}

/// Unique keys of a table, with the executor's state that evaluates their expressions.
pub struct UniqueKeys {
    /// OID of the table.
    table: pg_sys::Oid,
    keys: Vec<UniqueKey>,
    executor: *mut pg_sys::EState,
    /// Slot that holds the new row during a comparison.
    new_row: *mut pg_sys::TupleTableSlot,
    /// Memory context of all objects to which the other fields point.
    _context: OwnContext,
}

/// Values of a row's key columns, each `None` for NULL. `None` as a whole if the predicate excludes
/// the row from the index.
type Indexed = Option<Vec<Option<pg_sys::Datum>>>;

impl UniqueKey {
    /// Reads the unique key of an open index. Returns `None` unless the index is unique, is
    /// maintained by INSERT and UPDATE, and is checked when a row is written. So it returns `None`
    /// for deferrable keys and for exclusion constraints.
    ///
    /// # Safety
    /// The executor's state and the current memory context live as long as the key.
    unsafe fn new(index: Rel, executor: *mut pg_sys::EState) -> Option<Self> {
        let form = index.index_form();
        if !form.is_unique_at_once || !form.is_ready {
            return None;
        }
        // Access methods with unique indexes use the strategy numbers of btree.
        let equal = pg_sys::BTEqualStrategyNumber as u16;
        // SAFETY: the caller's promise, and the index is open.
        unsafe {
            // The index's expressions run with the writer's rights, as in INSERT and UPDATE.
            let info = pg_sys::BuildIndexInfo(index.raw());
            Some(UniqueKey {
                info,
                predicate: pg_sys::ExecPrepareQual((*info).ii_Predicate, executor),
                columns: (0..form.key_columns)
                    .map(|i| EqualColumn::new(index, i, equal))
                    .collect(),
                nulls_equal: form.nulls_equal,
            })
        }
    }

    /// Returns the key values of the row in a slot; `None` if the predicate excludes the row.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    unsafe fn of_row(
        &self,
        slot: *mut pg_sys::TupleTableSlot,
        executor: *mut pg_sys::EState,
    ) -> Indexed {
        // SAFETY: the caller's promise; expressions read the slot that is set here.
        unsafe {
            let context = (*executor).es_per_tuple_exprcontext;
            (*context).ecxt_scantuple = slot;
            if !self.predicate.is_null() && !pg_sys::ExecQual(self.predicate, context) {
                return None;
            }
            let mut values = [pg_sys::Datum::null(); pg_sys::INDEX_MAX_KEYS as usize];
            let mut nulls = [true; pg_sys::INDEX_MAX_KEYS as usize];
            let (into, flags) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::FormIndexDatum(self.info, slot, executor, into, flags);
            let columns = 0..self.columns.len();
            Some(columns.map(|i| (!nulls[i]).then_some(values[i])).collect())
        }
    }

    /// Returns whether two rows have equal key values. Two NULLs are equal only if the index treats
    /// them as equal.
    ///
    /// # Safety
    /// `a` and `b` were returned by [`UniqueKey::of_row`].
    unsafe fn equal(&self, a: &[Option<pg_sys::Datum>], b: &[Option<pg_sys::Datum>]) -> bool {
        (self.columns.iter().zip(a).zip(b)).all(|((column, &a), &b)| match (a, b) {
            // SAFETY: both values have the type of the index column.
            (Some(a), Some(b)) => unsafe { column.equal_datums(a, b) },
            (None, None) => self.nulls_equal,
            _ => false,
        })
    }
}

impl UniqueKeys {
    /// Reads the unique keys of a table.
    pub fn new(table: Rel) -> Self {
        let context = OwnContext::new(c"neardup unique keys");
        // SAFETY: each index is open while it is read. All objects made here live in the context
        // or its children.
        let (keys, executor, new_row) = context.run(|| unsafe {
            let executor = pg_sys::CreateExecutorState();
            pg_sys::MakePerTupleExprContext(executor);
            let keys = (table.indexes().into_iter())
                .filter_map(|oid| {
                    let index = OpenRelation::index(oid, pg_sys::AccessShareLock);
                    UniqueKey::new(index.rel(), executor)
                })
                .collect();
            let descriptor = pg_sys::CreateTupleDescCopy((*table.raw()).rd_att);
            let kind = &raw const pg_sys::TTSOpsHeapTuple;
            let new_row = pg_sys::MakeSingleTupleTableSlot(descriptor, kind);
            (keys, executor, new_row)
        });
        UniqueKeys {
            table: table.oid(),
            keys,
            executor,
            new_row,
            _context: context,
        }
    }

    /// Returns whether the table has no unique keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns whether an existing row and a new row of the table have equal values in at least one
    /// unique key. Raises an internal error if the keys were read from a table other than `table`.
    pub fn any_equal(&self, table: Rel, existing: &Slot, new: &NewRow) -> bool {
        assert_eq!(self.table, table.oid());
        // SAFETY: both are rows of the table. Values live until the context is reset.
        unsafe {
            pg_sys::ExecForceStoreHeapTuple(new.tuple(), self.new_row, false);
            let memory = (*(*self.executor).es_per_tuple_exprcontext).ecxt_per_tuple_memory;
            let outer = pg_sys::MemoryContextSwitchTo(memory);
            let equal = self.keys.iter().any(|key| {
                let new = key.of_row(self.new_row, self.executor);
                new.is_some_and(|new| {
                    let existing = key.of_row(existing.raw(), self.executor);
                    existing.is_some_and(|existing| key.equal(&existing, &new))
                })
            });
            pg_sys::MemoryContextSwitchTo(outer);
            pg_sys::MemoryContextReset(memory);
            pg_sys::ExecClearTuple(self.new_row);
            equal
        }
    }
}
