//! Version differences in index scans, their statistics and their snapshots.
use pgrx::pg_sys;

use crate::server;

/// Counts one search of an index scan in the index's statistics (`idx_scan`) and, since version 18,
/// in the output of EXPLAIN ANALYZE.
///
/// # Safety
/// The server has begun the scan, and the index is open.
pub unsafe fn count_index_search(scan: pg_sys::IndexScanDesc) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        if let Some(instrument) = (*scan).instrument.as_mut() {
            instrument.nsearches += 1;
        }
        count_index_scan((*scan).indexRelation);
    }
}

/// Adds one scan to the statistics of an index (`pgstat_count_index_scan`).
///
/// # Safety
/// The index is open.
pub unsafe fn count_index_scan(index: pg_sys::Relation) {
    // SAFETY: the caller's promise; no other reference to the statistics exists here.
    if let Some(statistics) = unsafe { super::buffers::statistics_of(index) } {
        #[cfg(feature = "pg15")]
        {
            statistics.t_counts.t_numscans += 1;
        }
        #[cfg(not(feature = "pg15"))]
        {
            statistics.counts.numscans += 1;
        }
    }
}

/// Returns whether this server has a bug in bitmap scans that need no column, as for `count(*)`.
/// Such a scan counts the bitmap's rows on all-visible pages without reading the pages. So it also
/// counts a row that VACUUM has removed after the row's address was put into the bitmap. The minor
/// releases of May 2025 fixed the bug.
pub fn bitmap_scans_trust_visibility_map() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        let version = server::GetConfigOption(c"server_version_num", false, false);
        let version: u32 = (version.as_deref())
            .and_then(|text| text.to_str().ok()?.parse().ok())
            .unwrap_or(0);
        match (version / 10_000, version % 10_000) {
            (15, minor) => minor < 13,
            (16, minor) => minor < 9,
            (17, minor) => minor < 5,
            _ => false,
        }
    })
}

/// Returns whether a snapshot sees the rows as they were at one moment (`IsMVCCSnapshot`).
pub fn is_mvcc_snapshot(snapshot: &pg_sys::SnapshotData) -> bool {
    snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC
        || snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_HISTORIC_MVCC
}

/// Returns whether a snapshot also sees uncommitted rows of other transactions (`SNAPSHOT_DIRTY`).
pub fn is_dirty_snapshot(snapshot: &pg_sys::SnapshotData) -> bool {
    snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY
}

/// Begins an index scan that fetches rows of the table. `keys` is the number of scan keys, and
/// `order_bys` is the number of ORDER BY keys.
///
/// # Safety
/// The table, the index and the snapshot stay valid, and the relations open, until the scan ends.
pub unsafe fn index_beginscan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    keys: i32,
    order_bys: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: the caller's promise. Since version 18 there is an argument for EXPLAIN's counters,
    // which may be null.
    unsafe {
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        let scan = pg_sys::index_beginscan(
            table,
            index,
            snapshot,
            core::ptr::null_mut(),
            keys,
            order_bys,
        );
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        let scan = pg_sys::index_beginscan(table, index, snapshot, keys, order_bys);
        scan
    }
}
