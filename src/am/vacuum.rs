//! `ambulkdelete` and `amvacuumcleanup`: remove the index entries of dead rows, update statistics,
//! and truncate the index.
use pgrx::pg_sys;

use super::index::{Index, words_of};
use super::keys::with_words;
use super::options::BuildOptions;
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::index_vacuum::{DeadRows, IndexVacuum, is_validating, may_truncate};
use neardup_pg::storage::pages::IndexPages;

/// Minimum number of unused pages in an index. With fewer, VACUUM does not truncate the index.
const LEAST_PAGES: u64 = 8;
/// VACUUM truncates an index only if at least one in this many pages is unused.
const MIN_UNUSED_ONE_IN: u64 = 8;

/// Removes the index entries of the rows in `dead` (`ambulkdelete`), and stores the numbers of
/// removed and remaining rows in `call`.
pub fn bulk_delete(call: &mut IndexVacuum, dead: &DeadRows) {
    let index = call.index;
    let pages = IndexPages::with_strategy(index, OldSnapshotCheck::NONE, call.strategy);
    if is_validating(index) {
        // CREATE INDEX CONCURRENTLY passes a callback that lists the addresses for which it is
        // called. A row has several entries, but must be listed only once: `each_row` reads one
        // entry of each row, and `ask_once` asks about no other row.
        with_words!(words_of(index), N => {
            let index = Index::<N>::with_pages(pages);
            let each = |tid| {
                dead.ask_once(tid);
            };
            index.or_corrupt(index.tree().each_row(index.block_layout.null_permutation(), each));
        });
        call.stats();
        return;
    }
    let fill = BuildOptions::from_index(index).fill;
    let (found, blocks) = with_words!(words_of(index), N => {
        let index = Index::<N>::with_pages(pages);
        let is_dead = |tid| dead.contain(tid);
        let found = index.tree().vacuum(index.block_layout.null_permutation(), fill, is_dead);
        (index.or_corrupt(found), index.pages.blocks())
    });
    let stats = call.stats();
    stats.num_pages = blocks;
    stats.num_index_tuples = found.rows as f64;
    stats.estimated_count = false;
    // Counts rows and not entries: a row has several entries.
    stats.tuples_removed += found.removed_rows as f64;
    stats.pages_newly_deleted += found.freed_pages as pg_sys::BlockNumber;
}

/// Updates the index's statistics and truncates the index at the end of VACUUM (`amvacuumcleanup`).
pub fn cleanup(call: &mut IndexVacuum) {
    if call.info.analyze_only {
        return;
    }
    let index = call.index;
    if !call.has_stats() {
        // VACUUM has not called `bulk_delete`: there are no dead rows, or too few.
        let rows = call.info.num_heap_tuples;
        let stats = call.stats();
        stats.num_pages = IndexPages::new(index, OldSnapshotCheck::NONE).blocks();
        stats.num_index_tuples = rows;
        stats.estimated_count = true;
        return;
    }
    let pages = IndexPages::with_strategy(index, OldSnapshotCheck::NONE, call.strategy);
    let (blocks, used) = with_words!(words_of(index), N => {
        let mut index = Index::<N>::with_pages(pages);
        truncate(&mut index);
        let used = index.tree().used_pages();
        (index.pages.blocks(), index.or_corrupt(used))
    });
    let stats = call.stats();
    stats.num_pages = blocks;
    stats.pages_free = blocks.saturating_sub(used as pg_sys::BlockNumber);
    stats.pages_deleted = stats.pages_free;
}

/// Number of moved pages between two checks for sessions that wait for the index.
const PAGES_PER_CHECK: usize = 32;

/// Moves pages from the end of the index into unused pages, and truncates the index. Does nothing
/// if too few pages are unused. Needs a lock that excludes other sessions, so it works only while
/// no other session uses the index. If a session waits for the index, releases the lock and tries
/// again.
fn truncate<const N: usize>(index: &mut Index<N>) {
    if !may_truncate(index.relation()) {
        return;
    }
    let pays = |index: &Index<N>| {
        let used = index.or_corrupt(index.tree().used_pages());
        let blocks = u64::from(index.pages.blocks());
        let unused = blocks.saturating_sub(used);
        unused >= LEAST_PAGES && unused >= blocks / MIN_UNUSED_ONE_IN
    };
    let mut holes = Vec::new();
    while pays(index) {
        let round = index.pages.with_exclusive_lock(|| {
            let (tree, blocks) = (index.tree(), index.pages.blocks());
            let mut moved = 0;
            let compacted = index.or_corrupt(tree.compact(blocks, || {
                moved += 1;
                moved % PAGES_PER_CHECK != 0 || !index.pages.is_waited_for()
            }));
            if compacted.end < blocks {
                index.pages.truncate(compacted.end);
            }
            (tree.root(), compacted)
        });
        let Some((root, compacted)) = round else {
            break;
        };
        index.remember_root(root);
        holes = compacted.holes;
        if compacted.is_complete {
            break;
        }
    }
    // This call writes each unused page in `holes`. It comes last, when the lock is released and no
    // session waits for the index.
    index.tree().add_free_pages(&holes);
}
