//! Rows as the server passes them to an index, and the scan of a table that builds one.
use core::ffi::c_void;
use core::marker::PhantomData;

use neardup_blocktree::key::Tid;
use pgrx::{pg_guard, pg_sys};

use super::locked_index::LockedIndex;
use super::rel::Rel;
use super::security_context::AsOwner;
use super::tid::tid_of;
use super::value::{Value, ValueType};

/// Values of an index's columns for one row. The index may store the last one as another type.
#[derive(Clone, Copy)]
pub struct IndexRow<'a> {
    index: Rel<'a>,
    values: &'a [pg_sys::Datum],
    nulls: &'a [bool],
}

impl<'a> IndexRow<'a> {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// Values and flags are one for each column, and live for `'a`. The operator classes of all
    /// columns but the last store their values as they are.
    #[inline]
    pub unsafe fn new(index: Rel<'a>, values: *const pg_sys::Datum, nulls: *const bool) -> Self {
        let columns = index.column_count() as usize;
        // SAFETY: the caller's promise.
        let (values, nulls) = unsafe {
            (
                core::slice::from_raw_parts(values, columns),
                core::slice::from_raw_parts(nulls, columns),
            )
        };
        IndexRow {
            index,
            values,
            nulls,
        }
    }

    /// The index.
    pub fn index(&self) -> Rel<'a> {
        self.index
    }

    /// The value in a column, counted from 0; `None` for NULL.
    #[inline]
    pub fn get(&self, column: usize) -> Option<Value<'a>> {
        let of = input_type(self.index, column);
        // SAFETY: the value is of the column's type.
        (!self.nulls[column]).then(|| unsafe { Value::typed(self.values[column], of) })
    }
}

/// The type of the values that the server passes for a column of an index, counted from 0.
#[inline]
pub fn input_type(index: Rel, column: usize) -> ValueType {
    let stored = index.attribute(column as i16 + 1);
    if column + 1 == index.column_count() as usize {
        let input = index.key_class(column).input;
        if input != stored.atttypid {
            return ValueType::of(input);
        }
    }
    ValueType::of_attribute(&stored)
}

/// Scan of a table for a new index on it.
pub struct BuildScan<'a> {
    table: Rel<'a>,
    index: Rel<'a>,
    info: *mut pg_sys::IndexInfo,
    _info: PhantomData<&'a mut pg_sys::IndexInfo>,
}

impl<'a> BuildScan<'a> {
    /// Wraps what the server passes to `ambuild`.
    ///
    /// # Safety
    /// The description is that of the index, which is one of the table, and lives for `'a`. As for
    /// [`IndexRow::new`].
    pub unsafe fn new(table: Rel<'a>, index: Rel<'a>, info: *mut pg_sys::IndexInfo) -> Self {
        BuildScan {
            table,
            index,
            info,
            _info: PhantomData,
        }
    }

    /// The index.
    pub fn index(&self) -> Rel<'a> {
        self.index
    }

    /// The strategy by which a column, counted from 0, is compared if the index is for an exclusion
    /// constraint.
    pub fn excludes_by(&self, column: usize) -> Option<u16> {
        assert!(column < self.index.index_form().key_columns);
        // SAFETY: null, or a strategy for each key column.
        unsafe {
            let strategies = (*self.info).ii_ExclusionStrats;
            (!strategies.is_null()).then(|| *strategies.add(column))
        }
    }

    /// Calls a function for each row that belongs into the index, and reports the progress. Returns
    /// the number of rows seen.
    pub fn run(&self, each: impl FnMut(IndexRow, Tid)) -> f64 {
        // SAFETY: as promised in `new`.
        unsafe { scan_table(self.table, self.index, self.info, None, each) }
    }
}

/// The rows of a table that a snapshot sees and that belong into an index. The snapshot stays
/// registered until this is dropped, or an error has ended the transaction.
pub struct VisibleRows<'a> {
    relations: &'a LockedIndex,
    snapshot: pg_sys::Snapshot,
}

impl<'a> VisibleRows<'a> {
    /// Takes a new snapshot. Raises an error if the index is younger than it: as amcheck, since
    /// rows that the index left out when it was built may be visible.
    pub fn new(relations: &'a LockedIndex) -> Self {
        // SAFETY: within a transaction; the snapshot stays registered until it is dropped.
        let snapshot = unsafe {
            let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
            relations.check_age(snapshot);
            snapshot
        };
        VisibleRows {
            relations,
            snapshot,
        }
    }

    /// Calls a function for each of the rows.
    pub fn each(&self, each: impl FnMut(IndexRow, Tid)) {
        let (table, index) = (self.relations.table(), self.relations.index());
        let _as_owner = AsOwner::of(table);
        // SAFETY: both relations are open and locked; the snapshot is registered.
        unsafe {
            // As amcheck does it: with a snapshot of its own, and no constraint to check.
            let info = pg_sys::BuildIndexInfo(index.raw());
            (*info).ii_Concurrent = true;
            (*info).ii_Unique = false;
            (*info).ii_ExclusionOps = core::ptr::null_mut();
            (*info).ii_ExclusionProcs = core::ptr::null_mut();
            (*info).ii_ExclusionStrats = core::ptr::null_mut();
            scan_table(table, index, info, Some(self.snapshot), each);
        }
    }
}

impl Drop for VisibleRows<'_> {
    fn drop(&mut self) {
        // An error unregisters it with the transaction's resources.
        if !std::thread::panicking() {
            // SAFETY: registered in `new`.
            unsafe { pg_sys::UnregisterSnapshot(self.snapshot) }
        }
    }
}

/// Scans a table for an index: with a snapshot, or else as a build does, which reports progress.
///
/// # Safety
/// The description is that of the index, which is one of the table; the snapshot is registered. As
/// for [`IndexRow::new`].
unsafe fn scan_table<F: FnMut(IndexRow, Tid)>(
    table: Rel,
    index: Rel,
    info: *mut pg_sys::IndexInfo,
    snapshot: Option<pg_sys::Snapshot>,
    mut each: F,
) -> f64 {
    let (table, index) = (table.raw(), index.raw());
    let no_keys = core::ptr::null_mut();
    let state = (&raw mut each).cast();
    // SAFETY: the caller's promise. The function outlives the scan, which ends it as well.
    unsafe {
        let scan = snapshot.map_or(core::ptr::null_mut(), |snapshot| {
            pg_sys::table_beginscan_strat(table, snapshot, 0, no_keys, true, true)
        });
        let (sync, progress) = (true, scan.is_null());
        let take = Some(take_row::<F> as _);
        pg_sys::table_index_build_scan(table, index, info, sync, progress, take, state, scan)
    }
}

/// Passes one row of the table on.
#[pg_guard]
unsafe extern "C-unwind" fn take_row<F: FnMut(IndexRow, Tid)>(
    index: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    nulls: *mut bool,
    _tuple_is_alive: bool,
    each: *mut c_void,
) {
    // SAFETY: the server passes a row of the table and the function of `scan_table`.
    unsafe {
        let row = IndexRow::new(Rel::new(index), values, nulls);
        (*each.cast::<F>())(row, tid_of(*tid));
    }
}
