//! Searches that see rows which other transactions have not committed yet.
use core::ops::ControlFlow;

use pgrx::pg_sys;

use super::metric::Metric;
use super::scan;
use super::strategies::{DISTANCE, EQUAL, WITHIN};
use crate::pg::compat;
use crate::pg::rel::{OpenRelation, Rel};
use crate::pg::slot::Slot;
use crate::pg::tid::tid_of;
use crate::pg::value::Value;
use neardup_blocktree::key::Tid;

/// A row version near the value that is searched for.
pub struct DirtyRow<'s, 'a> {
    /// The row.
    pub slot: &'s Slot<'a>,
    /// The transaction that is inserting it.
    pub inserter: Option<pg_sys::TransactionId>,
    /// The transaction that is updating or deleting it.
    pub deleter: Option<pg_sys::TransactionId>,
    /// The token of a speculative insertion, or 0.
    pub token: u32,
}

/// Searches an index of a table, of this metric, for the rows within a distance of a value in a
/// scope, and calls a function for each that is live for a dirty snapshot: from the nearest on, if
/// the metric has that order. `vanished` is called with the address of each version that nobody
/// will see any more who comes later, but that somebody who is there now may still see.
pub fn near_rows(
    table: Rel,
    index: pg_sys::Oid,
    (metric, radius): (&Metric, u32),
    scope: &[Value],
    center: Value,
    mut vanished: impl FnMut(Tid),
    mut each: impl FnMut(DirtyRow) -> ControlFlow<()>,
) {
    let index = OpenRelation::index(index, pg_sys::RowExclusiveLock);
    let (mut keys, mut order) = scan_keys(index.rel(), metric, radius, scope, center);
    assert_eq!(index.rel().index_form().table, table.oid());
    let mut snapshot = pg_sys::SnapshotData {
        snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
        ..Default::default()
    };
    let known = |xid: pg_sys::TransactionId| (xid != pg_sys::InvalidTransactionId).then_some(xid);
    let (key_count, order_count) = (keys.len() as i32, order.len() as i32);
    // SAFETY: the snapshot needs nothing set but its type, and lives as long as the scan, which
    // ends here, or with an error; the keys are of the types of the index's columns.
    unsafe {
        // Nearly always there is nothing, for which no scan has to be begun.
        if !scan::finds_any(index.rel(), &keys) {
            return;
        }
        let slot = Slot::new(table);
        let scan = compat::index_beginscan(
            table.raw(),
            index.rel().raw(),
            &raw mut snapshot,
            key_count,
            order_count,
        );
        let (first_key, first_order) = (keys.as_mut_ptr(), order.as_mut_ptr());
        pg_sys::index_rescan(scan, first_key, key_count, first_order, order_count);
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        loop {
            let another_version = (*scan).xs_heap_continue;
            if !another_version && pg_sys::index_getnext_tid(scan, forward).is_null() {
                break;
            }
            let address = tid_of((*scan).xs_heaptid);
            if !pg_sys::index_fetch_heap(scan, slot.raw()) {
                // The server would take the entry away for a version that is dead to all.
                if !another_version && !(*scan).kill_prior_tuple {
                    vanished(address);
                }
                continue;
            }
            // The fetch sets these fields of a dirty snapshot.
            let seen = &raw const snapshot;
            let row = DirtyRow {
                slot: &slot,
                inserter: known((*seen).xmin),
                deleter: known((*seen).xmax),
                token: (*seen).speculativeToken,
            };
            if each(row).is_break() {
                break;
            }
        }
        pg_sys::index_endscan(scan);
    }
}

/// The scan keys: equality for each scope column, a ball, and the order by distance if there is
/// one.
fn scan_keys(
    index: Rel,
    metric: &Metric,
    radius: u32,
    scope: &[Value],
    center: Value,
) -> (Vec<pg_sys::ScanKeyData>, Vec<pg_sys::ScanKeyData>) {
    let last = index.column_count();
    assert_eq!(scope.len(), last as usize - 1);
    assert_eq!(center.type_oid(), index.attribute(last).atttypid);
    let key = |column: i16, strategy: u16, argument| pg_sys::ScanKeyData {
        sk_attno: column,
        sk_strategy: strategy,
        sk_argument: argument,
        ..Default::default()
    };
    let mut keys: Vec<_> = (1..)
        .zip(scope)
        .map(|(column, value)| {
            assert_eq!(value.type_oid(), index.attribute(column).atttypid);
            key(column, EQUAL, value.datum())
        })
        .collect();
    keys.push(key(last, WITHIN, metric.ball(center, radius)));
    let order = match metric.comes_in_order() {
        true => vec![key(last, DISTANCE, center.datum())],
        false => Vec::new(),
    };
    (keys, order)
}
