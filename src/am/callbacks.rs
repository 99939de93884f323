//! Functions that the server calls, each of which runs below a guard.
//!
//! The guard turns panics into errors of the server, raises error 53200 if memory ran out on the
//! way, and holds memory back for the handling of errors ([`memory::guarded`]).
use core::ffi::{c_char, c_void};

use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use pgrx::pg_sys::*;

use super::{build, cost, insert, options, progress, scan, vacuum, validate};
use crate::pg::memory;

macro_rules! callbacks {
    ($(fn $name:ident($($arg:ident: $type:ty),+) $(-> $result:ty)? => $function:path;)+) => { $(
        #[allow(clippy::too_many_arguments, reason = "the server's signature")]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),+) $(-> $result)? {
            // SAFETY: the guard is the outermost frame of Rust; the function is passed on what the
            // server passes.
            unsafe { pgrx_extern_c_guard(move || memory::guarded(|| $function($($arg),+))) }
        }
    )+ };
}

callbacks! {
    fn ambuild(heap: Relation, index: Relation, info: *mut IndexInfo) -> *mut IndexBuildResult
        => build::build;
    fn ambuildempty(index: Relation) => build::build_empty;
    fn aminsert(
        index: Relation, values: *mut Datum, isnull: *mut bool, tid: ItemPointer, heap: Relation,
        unique: IndexUniqueCheck::Type, unchanged: bool, info: *mut IndexInfo
    ) -> bool => insert::insert;
    fn ambulkdelete(
        info: *mut IndexVacuumInfo, stats: *mut IndexBulkDeleteResult,
        callback: IndexBulkDeleteCallback, state: *mut c_void
    ) -> *mut IndexBulkDeleteResult => vacuum::bulk_delete;
    fn amvacuumcleanup(
        info: *mut IndexVacuumInfo, stats: *mut IndexBulkDeleteResult
    ) -> *mut IndexBulkDeleteResult => vacuum::cleanup;
    fn amcanreturn(index: Relation, column: i32) -> bool => scan::canreturn;
    fn amcostestimate(
        root: *mut PlannerInfo, path: *mut IndexPath, loops: f64, startup: *mut Cost,
        total: *mut Cost, selectivity: *mut Selectivity, correlation: *mut f64, pages: *mut f64
    ) => cost::estimate;
    fn amoptions(options: Datum, validate: bool) -> *mut bytea => options::parse;
    fn ambuildphasename(phase: int64) -> *mut c_char => progress::phase_name;
    fn amvalidate(class: Oid) -> bool => validate::validate;
    fn ambeginscan(index: Relation, keys: i32, orders: i32) -> IndexScanDesc => scan::beginscan;
    fn amrescan(
        scan: IndexScanDesc, keys: ScanKey, key_count: i32, orders: ScanKey, order_count: i32
    ) => scan::rescan;
    fn amgettuple(scan: IndexScanDesc, direction: ScanDirection::Type) -> bool => scan::gettuple;
    fn amgetbitmap(scan: IndexScanDesc, bitmap: *mut TIDBitmap) -> i64 => scan::getbitmap;
    fn amendscan(scan: IndexScanDesc) => scan::endscan;
}
