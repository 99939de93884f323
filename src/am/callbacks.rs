//! Callbacks of the access method: C functions that the server calls. Each runs under a guard,
//! wraps the server's arguments in handles, and calls the function that does the work.
//!
//! The guard turns panics into errors of the server, raises error 53200 if memory ran out, and
//! reserves memory for the handling of errors ([`memory::guarded`]).
use core::ffi::{c_char, c_void};

use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use pgrx::pg_sys::*;

use super::search::Purpose;
use super::{build, cost, insert, options, progress, scan, vacuum, validate};
use neardup_pg::build_scan::BuildScan;
use neardup_pg::compat::{OldSnapshotCheck, is_dirty_snapshot};
use neardup_pg::index_row::IndexRow;
use neardup_pg::index_vacuum::{DeadRows, IndexVacuum};
use neardup_pg::memory;
use neardup_pg::rel::Rel;
use neardup_pg::reloptions::OptionTexts;
use neardup_pg::scan_desc::{Bitmap, ScanDesc};
use neardup_pg::scan_path::ScanPath;
use neardup_pg::tid::tid_of;

macro_rules! callbacks {
    ($(
        $(#[$attribute:meta])?
        fn $name:ident($($arg:ident: $type:ty),+) $(-> $result:ty)? $body:block
    )+) => { $(
        $(#[$attribute])?
        #[allow(unsafe_code, reason = "called by the server")]
        #[allow(clippy::too_many_arguments, reason = "the server's signature")]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),+) $(-> $result)? {
            // SAFETY: the guard is the outermost frame of Rust. The server passes open relations,
            // and all other arguments as the handles require: for an index whose classes were
            // checked when it was built, and for scans that `ambeginscan` has begun and `amendscan`
            // has not ended.
            unsafe { pgrx_extern_c_guard(move || memory::guarded(|| $body)) }
        }
    )+ };
}

callbacks! {
    fn ambuild(
        table: Relation, index: Relation, info: *mut IndexInfo
    ) -> *mut IndexBuildResult {
        let scan = BuildScan::new(Rel::new(table), Rel::new(index), info);
        let (heap_tuples, index_tuples) = build::build(&scan);
        let result = palloc0(size_of::<IndexBuildResult>()).cast::<IndexBuildResult>();
        *result = IndexBuildResult { heap_tuples, index_tuples };
        result
    }
    fn ambuildempty(index: Relation) { build::build_empty(Rel::new(index)) }
    fn aminsert(
        index: Relation, values: *mut Datum, nulls: *mut bool, tid: ItemPointer, table: Relation,
        _unique: IndexUniqueCheck::Type, _unchanged: bool, _info: *mut IndexInfo
    ) -> bool {
        let row = IndexRow::new(Rel::new(index), values, nulls);
        insert::insert(&row, Rel::new(table), tid_of(*tid));
        false
    }
    fn ambulkdelete(
        info: *mut IndexVacuumInfo, stats: *mut IndexBulkDeleteResult,
        callback: IndexBulkDeleteCallback, state: *mut c_void
    ) -> *mut IndexBulkDeleteResult {
        let mut call = IndexVacuum::new(info, stats);
        let memory = memory::maintenance_work_mem() / 8;
        vacuum::bulk_delete(&mut call, &DeadRows::new(callback, state, memory));
        call.into_stats()
    }
    fn amvacuumcleanup(
        info: *mut IndexVacuumInfo, stats: *mut IndexBulkDeleteResult
    ) -> *mut IndexBulkDeleteResult {
        let mut call = IndexVacuum::new(info, stats);
        vacuum::cleanup(&mut call);
        call.into_stats()
    }
    fn amcanreturn(index: Relation, column: i32) -> bool {
        scan::canreturn(Rel::new(index), column)
    }
    fn amcostestimate(
        root: *mut PlannerInfo, path: *mut IndexPath, loops: f64, startup: *mut Cost,
        total: *mut Cost, selectivity: *mut Selectivity, correlation: *mut f64, pages: *mut f64
    ) {
        let estimate = cost::estimate(ScanPath::new(root, path), loops);
        (*startup, *total) = (estimate.startup, estimate.total);
        (*selectivity, *correlation, *pages) = (estimate.selectivity, 0.0, estimate.pages);
    }
    fn amoptions(options: Datum, validate: bool) -> *mut bytea {
        options::parse(OptionTexts::new(options), validate)
    }
    fn ambuildphasename(phase: int64) -> *mut c_char { progress::phase_name(phase) }
    fn amvalidate(class: Oid) -> bool { validate::validate(class) }
    fn ambeginscan(index: Relation, keys: i32, order_bys: i32) -> IndexScanDesc {
        ScanDesc::<scan::State>::begin(Rel::new(index), [keys, order_bys])
    }
    fn amrescan(
        scan: IndexScanDesc, keys: ScanKey, _key_count: i32, order_bys: ScanKey, _order_count: i32
    ) {
        let mut scan = ScanDesc::<scan::State>::new(scan);
        let index_only = scan.is_index_only();
        let (state, keys, snapshot) = scan.restart(keys, order_bys);
        let sees_uncommitted = snapshot.is_some_and(is_dirty_snapshot);
        let check = snapshot.map_or(OldSnapshotCheck::NONE, OldSnapshotCheck::new);
        scan::rescan(state, keys, Purpose { index_only, sees_uncommitted, check });
    }
    fn amgettuple(scan: IndexScanDesc, _direction: ScanDirection::Type) -> bool {
        scan::gettuple(&mut ScanDesc::new(scan))
    }
    fn amgetbitmap(scan: IndexScanDesc, bitmap: *mut TIDBitmap) -> i64 {
        scan::getbitmap(&mut ScanDesc::new(scan), &mut Bitmap::new(bitmap))
    }
    fn amendscan(scan: IndexScanDesc) { scan::endscan(ScanDesc::new(scan)) }
}
