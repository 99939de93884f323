//! Unique keys by which an existing row is the same as a row that is to be inserted: plain ones,
//! those of expressions, and those with a predicate. ON CONFLICT says what becomes of such a row.
use core::cell::OnceCell;

use pgrx::pg_sys;

use super::columns::EqualColumn;
use super::generated;
use super::new_row::NewRow;
use crate::pg::compat;

/// A unique index that is checked at once.
struct UniqueKey {
    info: *mut pg_sys::IndexInfo,
    /// The predicate; null: all rows are in the index.
    predicate: *mut pg_sys::ExprState,
    columns: Vec<EqualColumn>,
    /// Whether two NULLs are equal.
    nulls_equal: bool,
}

/// A table's unique keys, with what their expressions are evaluated in.
struct UniqueKeys {
    keys: Vec<UniqueKey>,
    executor: *mut pg_sys::EState,
    new_row: *mut pg_sys::TupleTableSlot,
}

/// The values of a row in an index; `None`: the index does not hold the row.
type Indexed = Option<Vec<Option<pg_sys::Datum>>>;

impl UniqueKey {
    /// The key of an open index; `None` if it does not forbid equal rows at any time.
    unsafe fn of(index: pg_sys::Relation, executor: *mut pg_sys::EState) -> Option<Self> {
        // SAFETY: the index is open, and the executor's state lives as long as the key.
        unsafe {
            let form = &*(*index).rd_index;
            // A key WITHOUT OVERLAPS is an exclusion constraint, whose last column is not equality.
            let enforced = form.indisunique && form.indimmediate && form.indisready;
            if !enforced || form.indisexclusion {
                return None;
            }
            // Access methods with unique indexes are like btree.
            let equal = pg_sys::BTEqualStrategyNumber as i16;
            let info = pg_sys::BuildIndexInfo(index);
            Some(UniqueKey {
                info,
                predicate: pg_sys::ExecPrepareQual((*info).ii_Predicate, executor),
                columns: (0..form.indnkeyatts as usize)
                    .map(|i| EqualColumn::of(index, i, equal))
                    .collect(),
                nulls_equal: compat::nulls_not_distinct(form),
            })
        }
    }

    /// Key values of the row in a slot, if the index holds it.
    unsafe fn of_row(
        &self,
        slot: *mut pg_sys::TupleTableSlot,
        executor: *mut pg_sys::EState,
    ) -> Indexed {
        // SAFETY: the slot holds a row of the table, and is the one that expressions are told of.
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

    unsafe fn equal(&self, a: &[Option<pg_sys::Datum>], b: &[Option<pg_sys::Datum>]) -> bool {
        (self.columns.iter().zip(a).zip(b)).all(|((column, &a), &b)| match (a, b) {
            // SAFETY: both are of the type that the index's column has.
            (Some(a), Some(b)) => unsafe { column.equal(a, b) },
            (None, None) => self.nulls_equal,
            _ => false,
        })
    }
}

impl UniqueKeys {
    unsafe fn find(relation: pg_sys::Relation, memory: pg_sys::MemoryContext) -> Self {
        // SAFETY: the relation is open, and each of its indexes while it is looked at. All that is
        // made here is in the given memory context, or below it.
        unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(memory);
            let executor = pg_sys::CreateExecutorState();
            pg_sys::MakePerTupleExprContext(executor);
            let indexes = pg_sys::RelationGetIndexList(relation);
            let mut keys = Vec::new();
            for i in 0..pg_sys::list_length(indexes) {
                let oid = pg_sys::list_nth_oid(indexes, i);
                let index = pg_sys::index_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
                keys.extend(UniqueKey::of(index, executor));
                pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
            }
            pg_sys::list_free(indexes);
            let unique = UniqueKeys {
                keys,
                executor,
                new_row: pg_sys::MakeSingleTupleTableSlot(
                    pg_sys::CreateTupleDescCopy((*relation).rd_att),
                    &raw const pg_sys::TTSOpsHeapTuple,
                ),
            };
            pg_sys::MemoryContextSwitchTo(outer);
            unique
        }
    }

    /// Whether an existing row and a new one have a key in common.
    unsafe fn any_equal(
        &self,
        existing: *mut pg_sys::TupleTableSlot,
        new: pg_sys::HeapTuple,
    ) -> bool {
        // SAFETY: both are rows of the table. Values live until the context is reset.
        unsafe {
            pg_sys::ExecForceStoreHeapTuple(new, self.new_row, false);
            let memory = (*(*self.executor).es_per_tuple_exprcontext).ecxt_per_tuple_memory;
            let outer = pg_sys::MemoryContextSwitchTo(memory);
            let equal = self.keys.iter().any(|key| {
                let new = key.of_row(self.new_row, self.executor);
                new.is_some_and(|new| {
                    let existing = key.of_row(existing, self.executor);
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

/// A table's unique keys, looked up when the first near row has been found.
pub struct Lazy {
    memory: pg_sys::MemoryContext,
    keys: OnceCell<UniqueKeys>,
}

impl Lazy {
    /// # Safety
    /// The memory context outlives the value.
    pub unsafe fn new(memory: pg_sys::MemoryContext) -> Self {
        Lazy {
            memory,
            keys: OnceCell::new(),
        }
    }
}

/// A row that is to be inserted, and how existing rows are compared with it.
pub struct SameRow<'a> {
    relation: pg_sys::Relation,
    row: &'a NewRow,
    keys: &'a Lazy,
    generated: &'a generated::Lazy,
    /// The row with its generated columns, which may be parts of keys.
    complete: OnceCell<pg_sys::HeapTuple>,
}

impl<'a> SameRow<'a> {
    /// # Safety
    /// The row is one of the relation's, which is open and the one of `keys` and `generated`.
    pub unsafe fn new(
        relation: pg_sys::Relation,
        row: &'a NewRow,
        keys: &'a Lazy,
        generated: &'a generated::Lazy,
    ) -> Self {
        SameRow {
            relation,
            row,
            keys,
            generated,
            complete: OnceCell::new(),
        }
    }

    /// Whether a unique key says that an existing row is this row.
    ///
    /// # Safety
    /// The slot holds a row of the relation.
    pub unsafe fn is(&self, existing: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the promises of the callers.
        unsafe {
            let lazy = self.keys;
            let unique = (lazy.keys).get_or_init(|| UniqueKeys::find(self.relation, lazy.memory));
            if unique.keys.is_empty() {
                return false;
            }
            let new =
                (self.complete).get_or_init(|| self.generated.complete(self.relation, self.row));
            unique.any_equal(existing, *new)
        }
    }
}
