//! Scans of a table for an index on it: for a build, or for a check of one that exists.
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

/// Scan of a table for a new index on it.
pub struct BuildScan<'a> {
    table: Rel<'a>,
    index: Rel<'a>,
    info: *mut pg_sys::IndexInfo,
    _info: PhantomData<&'a mut pg_sys::IndexInfo>,
}

/// Rows that a scan reads.
pub(super) enum RowSource<'a> {
    /// The whole table, as a build by one process reads it, with reports of the progress.
    Build,
    /// Those that a snapshot sees.
    Snapshot(&'a RegisteredSnapshot),
    /// Those that other processes leave of a scan that they share.
    Shared(SharedScan),
}

/// A scan of a table by several processes, in shared memory.
#[derive(Clone, Copy)]
pub(super) struct SharedScan {
    raw: pg_sys::ParallelTableScanDesc,
    reports_progress: bool,
}

impl SharedScan {
    /// Wraps what the server shares.
    ///
    /// # Safety
    /// The scan is ready to be joined, and stays so while this is used, only for the table that it
    /// was made for.
    pub unsafe fn new(raw: pg_sys::ParallelTableScanDesc, reports_progress: bool) -> Self {
        SharedScan {
            raw,
            reports_progress,
        }
    }
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

    /// The table.
    pub fn table(&self) -> Rel<'a> {
        self.table
    }

    /// The index.
    pub fn index(&self) -> Rel<'a> {
        self.index
    }

    /// The server's description of the index.
    pub(super) fn info(&self) -> &pg_sys::IndexInfo {
        // SAFETY: as promised in `new`.
        unsafe { &*self.info }
    }

    /// Notes that another process has met a chain of updates that the index cannot follow.
    pub(super) fn note_broken_chain(&self) {
        // SAFETY: as promised in `new`.
        unsafe { (*self.info).ii_BrokenHotChain = true }
    }

    /// The strategy by which a column, counted from 0, is compared if the index is for an exclusion
    /// constraint.
    pub fn excludes_by(&self, column: usize) -> Option<u16> {
        assert!(column < self.index.index_form().key_columns);
        // SAFETY: null, or a strategy for each key column.
        unsafe {
            let strategies = self.info().ii_ExclusionStrats;
            (!strategies.is_null()).then(|| *strategies.add(column))
        }
    }

    /// Calls a function for each row that belongs into the index, and reports the progress. Returns
    /// the number of rows seen.
    pub fn run(&self, each: impl FnMut(IndexRow, Tid)) -> f64 {
        self.scan(RowSource::Build, each)
    }

    /// Calls a function for each of some rows that belong into the index. Returns the number of
    /// rows seen.
    pub(super) fn scan<F: FnMut(IndexRow, Tid)>(&self, source: RowSource, mut each: F) -> f64 {
        let (table, index) = (self.table.raw(), self.index.raw());
        let no_keys = core::ptr::null_mut();
        let state = (&raw mut each).cast();
        // SAFETY: as promised in `new`; the snapshot is registered, and the shared scan as promised
        // when it was wrapped. The function outlives the scan, which is ended as well.
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

/// The rows of a table that a snapshot sees and that belong into an index.
pub struct VisibleRows<'a> {
    relations: &'a LockedIndex,
    snapshot: RegisteredSnapshot,
}

impl<'a> VisibleRows<'a> {
    /// Takes a new snapshot. Raises an error if the index is younger than it: as amcheck, since
    /// rows that the index left out when it was built may be visible.
    pub fn new(relations: &'a LockedIndex) -> Self {
        let snapshot = RegisteredSnapshot::of_transaction();
        relations.check_age(snapshot.xmin());
        VisibleRows {
            relations,
            snapshot,
        }
    }

    /// The check of pages for a reader that must find all of the rows.
    pub fn old_snapshot_check(&self) -> OldSnapshotCheck {
        self.snapshot.old_snapshot_check()
    }

    /// Calls a function for each of the rows.
    pub fn each(&self, each: impl FnMut(IndexRow, Tid)) {
        let (table, index) = (self.relations.table(), self.relations.index());
        let _as_owner = AsOwner::of(table);
        // SAFETY: both relations are open and locked.
        let scan = unsafe {
            // As amcheck does it: with a snapshot of its own, and no constraint to check.
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
    // SAFETY: the server passes a row of the table and the function of `BuildScan::scan`.
    unsafe {
        let row = IndexRow::new(Rel::new(index), values, nulls);
        (*each.cast::<F>())(row, tid_of(*tid));
    }
}
