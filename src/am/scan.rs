//! Scans, as the server drives them: `ambeginscan`, `amrescan`, `amgettuple`, `amgetbitmap`,
//! `amendscan`, `amcanreturn`.
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::index::{Index, words_of};
use super::keys::{Layout, with_words};
use super::search::Search;
use super::{bands, fingerprint_search};
use crate::pg::compat;
use crate::pg::memory_context::small_context;
use crate::pg::rel::Rel;
use crate::pg::tid::item_pointer;

/// State of a scan, to which its descriptor points.
struct State {
    /// The context that this lives in, and goes with.
    context: pg_sys::MemoryContext,
    search: Box<dyn Search>,
    /// Rows found and not yet given.
    tids: Vec<Tid>,
    given: usize,
    recheck: bool,
}

impl State {
    /// Returns whether there are rows to give, after looking for more if need be.
    fn fill(&mut self) -> bool {
        while self.given == self.tids.len() {
            self.tids.clear();
            self.given = 0;
            if !self.search.step(&mut self.tids) {
                return false;
            }
            pgrx::check_for_interrupts!();
        }
        true
    }

    /// Makes the index tuple of the row that is being given: the fingerprint, and NULL for columns
    /// that the index does not keep and nobody has asked for.
    unsafe fn give_tuple(&mut self, scan: &mut pg_sys::IndexScanDescData) {
        // SAFETY: the descriptor is that of the index, with as many columns; the tuple before was
        // made here, in this scan's context.
        unsafe {
            let columns = (*scan.xs_itupdesc).natts as usize;
            let mut values = vec![pg_sys::Datum::from(0); columns];
            let mut nulls = vec![true; columns];
            if let Some(value) = self.search.value(self.given) {
                values[columns - 1] = value;
                nulls[columns - 1] = false;
            }
            if !scan.xs_itup.is_null() {
                pg_sys::pfree(scan.xs_itup.cast());
            }
            let outer = pg_sys::MemoryContextSwitchTo(self.context);
            scan.xs_itup =
                pg_sys::index_form_tuple(scan.xs_itupdesc, values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::MemoryContextSwitchTo(outer);
        }
    }
}

/// `amcanreturn`: whether an index-only scan can give a column, counted from 1. Fingerprints it
/// can; of a scope only a hash is kept, of a ball only the centre, and of a signature only hashes.
///
/// A query that needs no column (`count(*)` without a condition, or with one that the predicate of
/// a partial index implies) is planned as an index-only scan whatever this returns: every kind of
/// search keeps the leaf of its rows pinned then.
///
/// Not during recovery: a standby's replay does not wait for scans that stay on a leaf. There
/// `amcostestimate` turns index-only scans that need no column into plain ones.
pub unsafe fn canreturn(index: pg_sys::Relation, column: i32) -> bool {
    // SAFETY: the server passes an open index.
    unsafe {
        let layout = Layout::of(Rel::new(index));
        column as usize == layout.scope_columns + 1
            && !layout.balls
            && !layout.signatures
            && !pg_sys::RecoveryInProgress()
    }
}

/// `ambeginscan`.
pub unsafe fn beginscan(
    relation: pg_sys::Relation,
    keys: i32,
    order_bys: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: the server passes an open index, which stays open until `amendscan`. The state is
    // dropped with the memory context, that is also when an error ends the scan.
    unsafe {
        let scan = pg_sys::RelationGetIndexScan(relation, keys, order_bys);
        let search = open(Rel::new(relation));
        // A context of its own: constraints begin and end a scan for each row of a statement.
        let context = small_context(c"neardup scan");
        let state = State {
            context,
            search,
            tids: Vec::new(),
            given: 0,
            recheck: false,
        };
        let state = pgrx::PgMemoryContexts::For(context).leak_and_drop_on_delete(state);
        (*scan).opaque = state.cast();
        (*scan).xs_itupdesc = (*relation).rd_att;
        scan
    }
}

/// A search in an open index, which is to be begun by [`Search::rescan`].
fn open<'a>(index: Rel<'a>) -> Box<dyn Search + 'a> {
    with_words!(words_of(index), N => {
        let index = Index::<N>::open_cached(index);
        match index.layout.signatures {
            true => bands::search::open(index),
            false => fingerprint_search::open(index),
        }
    })
}

/// `amrescan`.
pub unsafe fn rescan(
    scan: pg_sys::IndexScanDesc,
    keys: pg_sys::ScanKey,
    _key_count: i32,
    order_bys: pg_sys::ScanKey,
    _order_by_count: i32,
) {
    // SAFETY: the server passes a scan that `beginscan` made, with as many keys as it was begun
    // with, or null for those of last time.
    unsafe {
        let scan = &mut *scan;
        let keys = copy_keys(keys, scan.keyData, scan.numberOfKeys);
        let order_bys = copy_keys(order_bys, scan.orderByData, scan.numberOfOrderBys);
        let state = &mut *scan.opaque.cast::<State>();
        state.tids.clear();
        state.given = 0;
        // The executor takes the visibility map's word for rows of an index-only scan. The map is
        // right about an entry only as long as VACUUM cannot have removed it: while its leaf is
        // pinned.
        state.search.pages().keep_leaf_pinned(scan.xs_want_itup);
        state.recheck = state.search.rescan(keys, order_bys, scan.xs_want_itup);
        compat::count_index_scan(scan);
    }
}

/// Copies scan keys to where the scan keeps them, unless they are null, and returns those.
unsafe fn copy_keys<'a>(
    from: pg_sys::ScanKey,
    to: pg_sys::ScanKey,
    count: i32,
) -> &'a [pg_sys::ScanKeyData] {
    if count <= 0 {
        return &[];
    }
    // SAFETY: the caller passes two arrays of that length, the first of which may be null.
    unsafe {
        if !from.is_null() {
            core::ptr::copy(from, to, count as usize);
        }
        core::slice::from_raw_parts(to, count as usize)
    }
}

/// `amgettuple`: the next row.
pub unsafe fn gettuple(
    scan: pg_sys::IndexScanDesc,
    _direction: pg_sys::ScanDirection::Type,
) -> bool {
    // SAFETY: the server passes a scan that `beginscan` made.
    unsafe {
        let scan = &mut *scan;
        let state = &mut *scan.opaque.cast::<State>();
        if !state.fill() {
            return false;
        }
        let tid = state.tids[state.given];
        if scan.xs_want_itup {
            state.give_tuple(scan);
        }
        state.given += 1;
        scan.xs_heaptid = item_pointer(tid);
        // The index has measured the distance itself. Under a snapshot without MVCC the row may
        // have been replaced since.
        scan.xs_recheck = state.recheck || !compat::is_mvcc_snapshot(scan.xs_snapshot);
        scan.xs_recheckorderby = false;
        true
    }
}

/// `amgetbitmap`: all rows.
pub unsafe fn getbitmap(scan: pg_sys::IndexScanDesc, bitmap: *mut pg_sys::TIDBitmap) -> i64 {
    // SAFETY: the server passes a scan that `beginscan` made, and a bitmap.
    unsafe {
        let state = &mut *(*scan).opaque.cast::<State>();
        // Rows that are to be rechecked are always looked up in the table.
        let recheck = state.recheck || compat::bitmap_scans_trust_visibility_map();
        let mut pointers: Vec<pg_sys::ItemPointerData> = Vec::new();
        let mut count = 0;
        while state.fill() {
            pointers.clear();
            pointers.extend(
                state.tids[state.given..]
                    .iter()
                    .map(|&tid| item_pointer(tid)),
            );
            state.given = state.tids.len();
            let (start, length) = (pointers.as_mut_ptr(), pointers.len());
            pg_sys::tbm_add_tuples(bitmap, start, length as i32, recheck);
            count += length as i64;
        }
        count
    }
}

/// `amendscan`.
pub unsafe fn endscan(scan: pg_sys::IndexScanDesc) {
    // SAFETY: the server passes a scan that `beginscan` made, and calls for it no more.
    unsafe {
        let state = (*scan).opaque.cast::<State>();
        (*scan).opaque = core::ptr::null_mut();
        (*state).search.pages().keep_leaf_pinned(false);
        pg_sys::MemoryContextDelete((*state).context);
    }
}
