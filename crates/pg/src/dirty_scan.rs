//! Index scans with a dirty snapshot, which also sees uncommitted rows of other transactions.
use core::ops::ControlFlow;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::compat;
use super::rel::Rel;
use super::scan_key::OwnScanKeys;
use super::slot::Slot;
use super::tid::tid_of;

/// Row version that a dirty snapshot sees, with the other transactions that are changing it.
pub struct DirtyRow<'s, 'a> {
    /// Slot that holds the row version.
    pub slot: &'s Slot<'a>,
    /// Another transaction that has inserted the row version and is still running; `None` if there
    /// is none.
    pub inserter: Option<pg_sys::TransactionId>,
    /// Another transaction that has updated or deleted the row version and is still running; `None`
    /// if there is none.
    pub deleter: Option<pg_sys::TransactionId>,
    /// Token of the speculative insertion (INSERT ... ON CONFLICT) that has written the row
    /// version; 0 for other insertions.
    pub token: u32,
}

/// Scans an index of `table` with a dirty snapshot. `keys` has the index and the conditions of the
/// scan, and `orders` has its ORDER BY operators.
///
/// Calls `each` for each row version that the snapshot sees; the scan ends early when `each`
/// returns `Break`. Calls `vanished` with the address of each row version that this snapshot does
/// not see any more, but that an older snapshot may still see.
pub fn scan(
    table: Rel,
    keys: &mut OwnScanKeys,
    orders: &mut OwnScanKeys,
    mut vanished: impl FnMut(Tid),
    mut each: impl FnMut(DirtyRow) -> ControlFlow<()>,
) {
    let index = keys.get().index();
    assert_eq!(index.index_form().table, table.oid());
    let mut snapshot = pg_sys::SnapshotData {
        snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
        ..Default::default()
    };
    let slot = Slot::new(table);
    let (table, index) = (table.raw(), index.raw());
    let (keys, orders) = (keys.as_mut_slice(), orders.as_mut_slice());
    let (key_count, order_count) = (keys.len() as i32, orders.len() as i32);
    // SAFETY: the only field that the snapshot needs is its type. The snapshot outlives the scan,
    // which ends below or with an error.
    let scan = unsafe {
        let seen = &raw mut snapshot;
        let scan = compat::index_beginscan(table, index, seen, key_count, order_count);
        let (first_key, first_order) = (keys.as_mut_ptr(), orders.as_mut_ptr());
        pg_sys::index_rescan(scan, first_key, key_count, first_order, order_count);
        scan
    };
    let known = |xid: pg_sys::TransactionId| (xid != pg_sys::InvalidTransactionId).then_some(xid);
    // SAFETY: the scan has begun.
    while let Some(version) = unsafe { next_version(scan, &slot) } {
        let row = match version {
            Version::Live => {
                // SAFETY: the fetch has set these fields of the dirty snapshot.
                let seen = unsafe { &*(*scan).xs_snapshot };
                DirtyRow {
                    slot: &slot,
                    inserter: known(seen.xmin),
                    deleter: known(seen.xmax),
                    token: seen.speculativeToken,
                }
            }
            Version::Vanished(address) => {
                vanished(address);
                continue;
            }
            Version::Dead => continue,
        };
        if each(row).is_break() {
            break;
        }
    }
    // SAFETY: the scan has begun and not ended.
    unsafe { pg_sys::index_endscan(scan) };
}

/// Result of fetching a row version for an index entry.
enum Version {
    /// The snapshot sees the row version, which is in the slot.
    Live,
    /// The row version at this address is dead for the dirty snapshot, but not for all snapshots.
    Vanished(Tid),
    /// The index entry has no row version to report: its versions are dead for all snapshots, or
    /// its live version was reported before.
    Dead,
}

/// Fetches the next row version that an index entry of the scan points to; `None` at the end of the
/// scan.
///
/// # Safety
/// The scan has begun, and the slot is for rows of its table.
unsafe fn next_version(scan: pg_sys::IndexScanDesc, slot: &Slot) -> Option<Version> {
    let forward = pg_sys::ScanDirection::ForwardScanDirection;
    // SAFETY: the caller's promise.
    unsafe {
        let another_version = (*scan).xs_heap_continue;
        if !another_version && pg_sys::index_getnext_tid(scan, forward).is_null() {
            return None;
        }
        let address = tid_of((*scan).xs_heaptid);
        if pg_sys::index_fetch_heap(scan, slot.raw()) {
            return Some(Version::Live);
        }
        // The server sets `kill_prior_tuple` if the version is dead for all snapshots.
        let is_dead = another_version || (*scan).kill_prior_tuple;
        Some(match is_dead {
            true => Version::Dead,
            false => Version::Vanished(address),
        })
    }
}
