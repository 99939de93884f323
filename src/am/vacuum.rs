//! `ambulkdelete` and `amvacuumcleanup`.
use core::ffi::c_void;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::index::{Index, words_of};
use super::keys::with_words;
use super::options::BuildOptions;
use crate::pg::compat;
use crate::pg::rel::Rel;
use crate::pg::tid::item_pointer;
use crate::storage::pages::IndexPages;

/// It pays to cut off so many pages, if they are at least one of so many.
const LEAST_PAGES: u64 = 8;
const LEAST_SHARE: u64 = 8;

/// Takes away the entries of the rows that the callback calls dead.
pub unsafe fn bulk_delete(
    info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
    callback: pg_sys::IndexBulkDeleteCallback,
    callback_state: *mut c_void,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: the server passes an open index and a callback with its state.
    unsafe {
        let index = Rel::new((*info).index);
        let pages = IndexPages::for_vacuum(index, (*info).strategy);
        let is_dead = |tid: Tid| {
            let mut pointer = item_pointer(tid);
            callback.is_some_and(|callback| {
                pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| {
                    callback(&raw mut pointer, callback_state)
                })
            })
        };
        if compat::is_validating(index.raw()) {
            // The callback collects rows, of which one would stand in each table.
            with_words!(words_of(index), N => {
                let index = Index::<N>::with_pages(pages);
                let each = |tid| {
                    is_dead(tid);
                };
                index.or_corrupt(index.tree().each_row(index.design.null_table(), each));
            });
            return or_new(stats);
        }
        let fill = BuildOptions::of(index.raw()).fill;
        let (found, blocks) = with_words!(words_of(index), N => {
            let index = Index::<N>::with_pages(pages);
            let found = index.tree().vacuum(index.design.null_table(), fill, is_dead);
            (index.or_corrupt(found), index.pages.blocks())
        });
        let stats = or_new(stats);
        (*stats).num_pages = blocks;
        (*stats).num_index_tuples = found.rows as f64;
        (*stats).estimated_count = false;
        // Rows, not entries: each row stood in all tables.
        (*stats).tuples_removed += found.removed_rows as f64;
        (*stats).pages_newly_deleted += found.freed_pages as pg_sys::BlockNumber;
        stats
    }
}

/// The last step of a vacuum: statistics, and giving back what is not used.
pub unsafe fn cleanup(
    info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: the server passes an open index.
    unsafe {
        if (*info).analyze_only {
            return stats;
        }
        if stats.is_null() {
            // `bulk_delete` had nothing to do.
            let stats = or_new(stats);
            (*stats).num_pages = IndexPages::new(Rel::new((*info).index)).blocks();
            (*stats).num_index_tuples = (*info).num_heap_tuples;
            (*stats).estimated_count = true;
            return stats;
        }
        let index = Rel::new((*info).index);
        let pages = IndexPages::for_vacuum(index, (*info).strategy);
        let (blocks, used) = with_words!(words_of(index), N => {
            let mut index = Index::<N>::with_pages(pages);
            truncate(&mut index);
            let used = index.tree().used_pages();
            (index.pages.blocks(), index.or_corrupt(used))
        });
        (*stats).num_pages = blocks;
        (*stats).pages_free = blocks.saturating_sub(used as pg_sys::BlockNumber);
        (*stats).pages_deleted = (*stats).pages_free;
        stats
    }
}

/// Pages between two looks for somebody who waits.
const PAGES_PER_CHECK: usize = 32;

/// Moves pages into unused ones and cuts off the end of the index, as vacuum does with tables: if
/// that pays, and if nobody else uses the index or begins to wait for it. It gives way to sessions
/// that wait, and tries again.
unsafe fn truncate<const N: usize>(index: &mut Index<N>) {
    let relation = index.relation().raw();
    // SAFETY: the relation is open and its table locked by the vacuum.
    if unsafe { !compat::vacuum_may_truncate(relation) } {
        return;
    }
    let pays = |index: &Index<N>| {
        let used = index.or_corrupt(index.tree().used_pages());
        let blocks = u64::from(index.pages.blocks());
        let unused = blocks.saturating_sub(used);
        unused >= LEAST_PAGES && unused >= blocks / LEAST_SHARE
    };
    let mut holes = Vec::new();
    while pays(index) {
        let round = index.pages.alone(|| {
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
    // Nobody waits for this, which writes each of these pages.
    index.tree().add_free_pages(&holes);
}

unsafe fn or_new(stats: *mut pg_sys::IndexBulkDeleteResult) -> *mut pg_sys::IndexBulkDeleteResult {
    if !stats.is_null() {
        return stats;
    }
    // SAFETY: a fresh result is all zero.
    unsafe { pg_sys::palloc0(size_of::<pg_sys::IndexBulkDeleteResult>()).cast() }
}
