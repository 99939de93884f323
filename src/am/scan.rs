//! Callbacks of index scans: `amrescan`, `amgettuple`, `amgetbitmap`, `amendscan` and
//! `amcanreturn`.
use std::rc::Rc;

use neardup_blocktree::key::Tid;
use neardup_blocktree::metric::Metric;
use pgrx::pg_sys;

use super::hamming_search::HammingSearch;
use super::index::{Index, state_cache_of, words_of};
use super::keys::{Layout, with_words};
use super::minhash::search::BandSearch;
use super::scan_keys::ScanKeys;
use super::search::{IndexSearch, Purpose, Search};
use super::sets::search::SetSearch;
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::rel::Rel;
use neardup_pg::scan_desc::{Bitmap, ScanDesc, ScanState, StateCache, without_scan};
use neardup_pg::scan_key::{self, OwnScanKeys};
use neardup_pg::tid::item_pointer;
use neardup_pg::{backend, compat};

/// State of an index scan, to which the server's scan descriptor points.
pub struct State {
    index: Rel<'static>,
    /// Layout of the index's keys.
    layout: Layout,
    /// Search that finds the rows of the scan.
    search: Box<dyn Search>,
    /// Addresses of the rows that the last step of the search has found.
    tids: Vec<Tid>,
    /// Number of addresses at the beginning of `tids` that have been returned to the server.
    given: usize,
    /// True if the server must check the conditions again for each row.
    recheck: bool,
}

impl ScanState for State {
    fn state_cache(index: Rel) -> Rc<StateCache> {
        state_cache_of(index)
    }

    /// Makes the state of a scan. [`rescan`] must start its search.
    fn new(index: Rel<'static>) -> Self {
        with_words!(words_of(index), N => {
            let opened = Index::<N>::open_cached(index);
            State {
                index,
                layout: opened.layout,
                search: open(opened),
                tids: Vec::new(),
                given: 0,
                recheck: false,
            }
        })
    }

    fn resume(&mut self, index: Rel<'static>) {
        assert_eq!(self.index.raw(), index.raw());
        self.search.resume();
    }
}

impl State {
    /// Searches for more rows if all rows found so far have been returned. Returns false if there
    /// are no more rows.
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
}

/// Returns whether an index has any entry that fulfils the conditions in `keys`. Entries of
/// uncommitted and dead rows count too. Does not start a scan in the server, which saves time.
pub fn finds_any(keys: &OwnScanKeys) -> bool {
    let purpose = Purpose {
        index_only: false,
        sees_uncommitted: true,
        check: OldSnapshotCheck::NONE,
    };
    let keys = keys.get();
    let index = keys.index();
    without_scan(index, |state: &mut State| {
        rescan(state, [keys, OwnScanKeys::new(index).get()], purpose);
        let found = state.fill();
        state.search.end();
        // If rows are found, the caller starts a scan, which the server counts itself.
        if !found {
            index.count_index_scan();
        }
        found
    })
}

/// Makes a search of an index, of the kind for the metric of the index.
fn open<'a, const N: usize>(index: Index<'a, N>) -> Box<dyn Search + 'a> {
    match index.metric.clone() {
        Metric::Hamming { .. } => {
            let rows = index.rows();
            Box::new(IndexSearch::new(index, HammingSearch::new(rows)))
        }
        Metric::Jaccard(bands) => Box::new(IndexSearch::new(index, BandSearch::new(bands))),
        Metric::Overlap => Box::new(IndexSearch::new(index, SetSearch::new())),
    }
}

/// Returns whether an index-only scan can return the index column with this number, counted from 1
/// (`amcanreturn`). It can return fingerprints. For a scope or a signature the index stores only
/// hashes, for a ball only the centre, and an array's elements are spread over the index.
///
/// A query that needs no column (`count(*)` without a condition, or with one that the predicate of
/// a partial index implies) is planned as an index-only scan, whatever this function returns. Every
/// kind of search then keeps the leaf of its rows pinned, so that VACUUM does not remove these rows
/// meanwhile.
///
/// Returns false during recovery. A standby that replays VACUUM does not wait for a pinned leaf, so
/// an index-only scan could return rows that have been removed. For the same reason,
/// `amcostestimate` turns index-only scans that need no column into plain scans on a standby.
pub fn canreturn(index: Rel, column: i32) -> bool {
    let layout = Layout::from_index(index);
    column as usize == layout.scope_columns + 1 && layout.stores_values() && !backend::in_recovery()
}

/// Starts or restarts a scan (`amrescan`). `lists` has the conditions and the ORDER BY operators.
/// `purpose` has properties of the scan, such as whether it reads the table.
pub fn rescan(state: &mut State, lists: [scan_key::ScanKeys; 2], purpose: Purpose) {
    state.tids.clear();
    state.given = 0;
    let layout = state.layout;
    let [keys, order_bys] = lists.map(|keys| ScanKeys::new(layout, keys));
    state.recheck = state.search.rescan(keys, order_bys, purpose);
}

/// Returns the next row of a scan to the server (`amgettuple`). Returns false after the last row.
pub fn gettuple(scan: &mut ScanDesc<State>) -> bool {
    let index_only = scan.is_index_only();
    let state = scan.state();
    if !state.fill() {
        return false;
    }
    let (row, recheck) = (state.given, state.recheck);
    let tid = state.tids[row];
    state.given += 1;
    if index_only {
        let column = state.layout.scope_columns;
        scan.set_index_tuple(column, |state| state.search.value(row));
    }
    scan.set_row(tid, recheck);
    true
}

/// Adds all rows of a scan to a bitmap (`amgetbitmap`). Returns the number of rows.
pub fn getbitmap(scan: &mut ScanDesc<State>, bitmap: &mut Bitmap) -> i64 {
    let state = scan.state();
    // A bitmap removes repeated rows, so the search need not.
    state.search.allow_repeats();
    // A recheck makes the server read the table for each row. Without one, servers before the minor
    // releases of May 2025 trust the visibility map, although VACUUM may have removed the row
    // since.
    let recheck = state.recheck || compat::bitmap_scans_trust_visibility_map();
    let mut pointers: Vec<pg_sys::ItemPointerData> = Vec::new();
    let mut count = 0;
    while state.fill() {
        pointers.clear();
        let rows = state.tids[state.given..].iter();
        pointers.extend(rows.map(|&tid| item_pointer(tid)));
        state.given = state.tids.len();
        bitmap.add(&mut pointers, recheck);
        count += pointers.len() as i64;
    }
    count
}

/// Ends a scan (`amendscan`).
pub fn endscan(scan: ScanDesc<State>) {
    scan.end(|state| state.search.end());
}
