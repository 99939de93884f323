//! `ambulkdelete` and `amvacuumcleanup`.
use core::ffi::c_void;

use neardup_blocktree::key::Tid;
use pgrx::{pg_guard, pg_sys};

use super::keys::with_words;
use super::options::BuildOptions;
use super::state::{Index, words_of};
use crate::storage::pages::IndexPages;

/// Takes away the entries of the rows that the callback calls dead.
#[pg_guard]
pub unsafe extern "C-unwind" fn bulk_delete(
    info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
    callback: pg_sys::IndexBulkDeleteCallback,
    callback_state: *mut c_void,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: the server passes an open index and a callback with its state.
    unsafe {
        let relation = (*info).index;
        let pages = IndexPages::for_vacuum(relation, (*info).strategy);
        let is_dead = |tid: Tid| {
            let mut pointer = pg_sys::ItemPointerData::default();
            pgrx::itemptr::item_pointer_set_all(&mut pointer, tid.block, tid.offset);
            callback.is_some_and(|callback| {
                pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| {
                    callback(&raw mut pointer, callback_state)
                })
            })
        };
        let fill = BuildOptions::of(relation).fill;
        let (found, blocks, free) = with_words!(words_of(relation), N => {
            let index = Index::<N>::with_pages(relation, pages);
            let found = index.tree().vacuum(index.design.null_table(), fill, is_dead);
            (index.sound(found), index.pages.blocks(), index.tree().free_pages())
        });
        let stats = or_new(stats);
        (*stats).num_pages = blocks;
        (*stats).num_index_tuples = found.rows as f64;
        (*stats).estimated_count = false;
        // Rows, not entries: each row stood in all tables.
        (*stats).tuples_removed += found.removed_rows as f64;
        (*stats).pages_newly_deleted += found.freed_pages as pg_sys::BlockNumber;
        (*stats).pages_deleted = free as pg_sys::BlockNumber;
        (*stats).pages_free = free as pg_sys::BlockNumber;
        stats
    }
}

/// The last step of a vacuum: statistics, if `bulk_delete` had nothing to do.
#[pg_guard]
pub unsafe extern "C-unwind" fn cleanup(
    info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: the server passes an open index.
    unsafe {
        if (*info).analyze_only || !stats.is_null() {
            return stats;
        }
        let stats = or_new(stats);
        (*stats).num_pages = IndexPages::new((*info).index).blocks();
        (*stats).num_index_tuples = (*info).num_heap_tuples;
        (*stats).estimated_count = true;
        stats
    }
}

unsafe fn or_new(stats: *mut pg_sys::IndexBulkDeleteResult) -> *mut pg_sys::IndexBulkDeleteResult {
    if !stats.is_null() {
        return stats;
    }
    // SAFETY: a fresh result is all zero.
    unsafe { pg_sys::palloc0(size_of::<pg_sys::IndexBulkDeleteResult>()).cast() }
}
