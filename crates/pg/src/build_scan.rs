//! Table scans that compute the values of an index's columns for each row. They build an index, or
//! check an existing one.
use core::ffi::c_void;
use core::marker::PhantomData;

use neardup_blocktree::key::Tid;
use pgrx::{pg_guard, pg_sys};

use super::compat::OldSnapshotCheck;
use super::index_row::IndexRow;
use super::locked_index::LockedIndex;
use super::rel::Rel;
use super::security_context::AsOwner;
use super::snapshot::RegisteredSnapshot;
use super::tid::tid_of;

/// Scan of a table that computes the values of one index's columns for each row. The index is being
/// built, or is being checked against the table.
pub struct BuildScan<'a> {
    table: Rel<'a>,
    index: Rel<'a>,
    info: *mut pg_sys::IndexInfo,
    _info: PhantomData<&'a mut pg_sys::IndexInfo>,
}

/// Rows of the table that a [`BuildScan`] reads.
pub(super) enum RowSource<'a> {
    /// All rows of the table, as in a build by one process. The scan reports its progress.
    Build,
    /// Rows that this snapshot sees.
    Snapshot(&'a RegisteredSnapshot),
    /// Rows in this process's part of a scan that several processes share.
    Shared(SharedScan),
}

/// Parallel table scan of the server, in shared memory. Each process that joins it reads some of
/// the table's blocks.
#[derive(Clone, Copy)]
pub(super) struct SharedScan {
    raw: pg_sys::ParallelTableScanDesc,
    /// True in the leader, the process that reports the progress of the build.
    reports_progress: bool,
}

impl SharedScan {
    /// Wraps a parallel scan of the server. `reports_progress` is true in the leader.
    ///
    /// # Safety
    /// `raw` is initialized, outlives the result, and is used only for the table that it was made
    /// for.
    pub unsafe fn new(raw: pg_sys::ParallelTableScanDesc, reports_progress: bool) -> Self {
        SharedScan {
            raw,
            reports_progress,
        }
    }
}

impl<'a> BuildScan<'a> {
    /// Wraps the table, the index and its description (`IndexInfo`), as the server passes them to
    /// `ambuild`.
    ///
    /// # Safety
    /// `info` describes the index and lives for `'a`. The index is on the table. The conditions of
    /// [`IndexRow::new`] hold for each row.
    pub unsafe fn new(table: Rel<'a>, index: Rel<'a>, info: *mut pg_sys::IndexInfo) -> Self {
        BuildScan {
            table,
            index,
            info,
            _info: PhantomData,
        }
    }

    /// The table that the scan reads.
    pub fn table(&self) -> Rel<'a> {
        self.table
    }

    /// The index for whose columns the scan computes values.
    pub fn index(&self) -> Rel<'a> {
        self.index
    }

    /// The server's description (`IndexInfo`) of the index.
    pub(super) fn info(&self) -> &pg_sys::IndexInfo {
        // SAFETY: as promised in `new`.
        unsafe { &*self.info }
    }

    /// Records in the `IndexInfo` that another process of the build has found a broken HOT chain.
    /// The server then keeps transactions with older snapshots from using the index.
    pub(super) fn note_broken_chain(&self) {
        // SAFETY: as promised in `new`.
        unsafe { (*self.info).ii_BrokenHotChain = true }
    }

    /// Strategy number of the operator by which an exclusion constraint compares the index column
    /// `column`, counted from 0. `None` if the index does not belong to an exclusion constraint.
    pub fn excludes_by(&self, column: usize) -> Option<u16> {
        assert!(column < self.index.index_form().key_columns);
        // SAFETY: the array is null or has a strategy for each key column.
        unsafe {
            let strategies = self.info().ii_ExclusionStrats;
            (!strategies.is_null()).then(|| *strategies.add(column))
        }
    }

    /// Scans the whole table, and reports the progress. Calls `each` for each row that belongs in
    /// the index, with the row's index values and its address. Returns the number of rows that the
    /// scan has read.
    pub fn run(&self, each: impl FnMut(IndexRow, Tid)) -> f64 {
        self.scan(RowSource::Build, each)
    }

    /// Scans the rows of `source`. Calls `each` for each row that belongs in the index, with the
    /// row's index values and its address. Returns the number of rows that the scan has read.
    pub(super) fn scan<F: FnMut(IndexRow, Tid)>(&self, source: RowSource, mut each: F) -> f64 {
        let (table, index) = (self.table.raw(), self.index.raw());
        let no_keys = core::ptr::null_mut();
        let state = (&raw mut each).cast();
        // SAFETY: as promised in `new` and in `SharedScan::new`; the snapshot is registered. The
        // function outlives the scan, which the server ends.
        unsafe {
            let (scan, progress) = match source {
                RowSource::Build => (core::ptr::null_mut(), true),
                RowSource::Snapshot(snapshot) => {
                    let snapshot = snapshot.raw();
                    let scan =
                        pg_sys::table_beginscan_strat(table, snapshot, 0, no_keys, true, true);
                    (scan, false)
                }
                RowSource::Shared(shared) => {
                    let scan = pg_sys::table_beginscan_parallel(table, shared.raw);
                    (scan, shared.reports_progress)
                }
            };
            let take = Some(take_row::<F> as _);
            let (info, sync) = (self.info, true);
            pg_sys::table_index_build_scan(table, index, info, sync, progress, take, state, scan)
        }
    }
}

/// Rows of a table that a snapshot sees and that belong in an index, for checking the index against
/// its table.
pub struct VisibleRows<'a> {
    relations: &'a LockedIndex,
    snapshot: RegisteredSnapshot,
}

impl<'a> VisibleRows<'a> {
    /// Prepares a scan of the rows that the transaction's snapshot sees. Raises error 40001, as
    /// amcheck does, if the snapshot may see rows that the build of the index has skipped.
    pub fn new(relations: &'a LockedIndex) -> Self {
        let snapshot = RegisteredSnapshot::from_transaction();
        relations.check_age(snapshot.xmin());
        VisibleRows {
            relations,
            snapshot,
        }
    }

    /// Returns a check that the caller must make of each index page that it reads. The check raises
    /// an error if the page may have lost entries of rows that the snapshot sees, which the setting
    /// `old_snapshot_threshold` permits.
    pub fn old_snapshot_check(&self) -> OldSnapshotCheck {
        self.snapshot.old_snapshot_check()
    }

    /// Scans the table with the rights of its owner. Calls `each` for each row that the snapshot
    /// sees and that belongs in the index, with the row's index values and its address.
    pub fn each(&self, each: impl FnMut(IndexRow, Tid)) {
        let (table, index) = (self.relations.table(), self.relations.index());
        let _as_owner = AsOwner::new(table);
        // SAFETY: both relations are open and locked.
        let scan = unsafe {
            // As in amcheck: `ii_Concurrent` makes the scan use our own snapshot. The other fields
            // make it check no constraints.
            let info = index.index_info();
            (*info).ii_Concurrent = true;
            (*info).ii_Unique = false;
            (*info).ii_ExclusionOps = core::ptr::null_mut();
            (*info).ii_ExclusionProcs = core::ptr::null_mut();
            (*info).ii_ExclusionStrats = core::ptr::null_mut();
            BuildScan::new(table, index, info)
        };
        scan.scan(RowSource::Snapshot(&self.snapshot), each);
    }
}

/// Callback of the server: passes one row of the table to the function `each` of
/// [`BuildScan::scan`].
#[pg_guard]
unsafe extern "C-unwind" fn take_row<F: FnMut(IndexRow, Tid)>(
    index: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    nulls: *mut bool,
    _tuple_is_alive: bool,
    each: *mut c_void,
) {
    // SAFETY: the server passes a row of the table and the function of `BuildScan::scan`.
    unsafe {
        let row = IndexRow::new(Rel::new(index), values, nulls);
        (*each.cast::<F>())(row, tid_of(*tid));
    }
}
