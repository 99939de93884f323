//! Arguments that VACUUM passes to the callbacks of an index access method.
use core::cell::RefCell;
use core::ffi::c_void;
use core::ops::RangeInclusive;

use neardup_blocktree::key::{Block, Tid};
use pgrx::pg_sys;

use super::buffer_strategy::Strategy;
use super::compat;
use super::rel::Rel;
use super::tid::item_pointer;

/// Vacuum of one index, with the statistics that the access method returns to the server.
pub struct IndexVacuum<'a> {
    /// The server's description of the vacuum (`IndexVacuumInfo`).
    pub info: &'a pg_sys::IndexVacuumInfo,
    /// The index that is vacuumed.
    pub index: Rel<'a>,
    /// Ring of buffers into which the vacuum reads pages of the index.
    pub strategy: Strategy<'a>,
    /// Statistics of the vacuum; null before their first use.
    stats: *mut pg_sys::IndexBulkDeleteResult,
}

impl IndexVacuum<'_> {
    /// Wraps the description and the statistics that the server passes.
    ///
    /// # Safety
    /// The description lives as long as the result, with its index open and locked. The statistics
    /// are null or were made by this access method.
    pub unsafe fn new(
        info: *mut pg_sys::IndexVacuumInfo,
        stats: *mut pg_sys::IndexBulkDeleteResult,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let info = &*info;
            IndexVacuum {
                info,
                index: Rel::new(info.index),
                strategy: Strategy::new(info.strategy),
                stats,
            }
        }
    }

    /// Returns whether an earlier callback of this vacuum has allocated the statistics.
    pub fn has_stats(&self) -> bool {
        !self.stats.is_null()
    }

    /// The statistics of the vacuum. Allocates them, with zero in all fields, if there are none
    /// yet.
    pub fn stats(&mut self) -> &mut pg_sys::IndexBulkDeleteResult {
        // SAFETY: null or valid statistics; all fields of new statistics are zero.
        unsafe {
            if self.stats.is_null() {
                let size = size_of::<pg_sys::IndexBulkDeleteResult>();
                self.stats = pg_sys::palloc0(size).cast();
            }
            &mut *self.stats
        }
    }

    /// Returns the statistics in the form that the server expects; null if there are none.
    pub fn into_stats(self) -> *mut pg_sys::IndexBulkDeleteResult {
        self.stats
    }
}

/// [`DeadRows`] remembers the callback's answers for the row offsets of a table page that are below
/// this number. For higher offsets, it calls the callback each time. A heap page has at most 291
/// rows.
const ROWS_PER_PAGE: usize = 320;

/// Remembered answers of the callback about the rows of one page of the table.
#[derive(Clone, Copy)]
struct PageRows {
    /// Bit for each offset of a row in the page, set if VACUUM removes the row.
    dead: [u64; ROWS_PER_PAGE / 64],
    /// The answers for offsets below this one are known.
    known: u16,
}

/// Set of the rows that VACUUM removes. A callback of the server answers whether the row at an
/// address is in the set. This type remembers the answers, because a neardup index asks about each
/// row several times: once for each permutation, which is an ordered copy of all keys. Before
/// PostgreSQL 17, each call of the callback searches a large array.
pub struct DeadRows {
    callback: pg_sys::IndexBulkDeleteCallback,
    state: *mut c_void,
    /// Remembered answers, indexed by the block number of the table page.
    pages: RefCell<Vec<PageRows>>,
    /// Maximum number of pages in `pages`. Answers about later pages are not remembered.
    max_pages: usize,
}

impl DeadRows {
    /// Wraps the callback and its state, as the server passes them to `ambulkdelete`. The
    /// remembered answers take up to `memory` bytes.
    ///
    /// # Safety
    /// `state` is valid for `callback` while the value lives.
    pub unsafe fn new(
        callback: pg_sys::IndexBulkDeleteCallback,
        state: *mut c_void,
        memory: usize,
    ) -> Self {
        DeadRows {
            callback,
            state,
            pages: RefCell::default(),
            max_pages: memory / size_of::<PageRows>(),
        }
    }

    /// Returns whether VACUUM removes the row at this address. Calls the callback once, for this
    /// address and for no other.
    pub fn ask_once(&self, tid: Tid) -> bool {
        self.ask(tid.block, tid.offset..=tid.offset) != [0; ROWS_PER_PAGE / 64]
    }

    /// Returns whether VACUUM removes the row at this address. May also call the callback for lower
    /// addresses of the same page. Does not call it if the answer is remembered.
    #[inline]
    pub fn contain(&self, tid: Tid) -> bool {
        let (mut pages, row) = (self.pages.borrow_mut(), usize::from(tid.offset));
        let page = match row < ROWS_PER_PAGE {
            true => self.page(&mut pages, tid.block as usize),
            false => None,
        };
        let Some(page) = page else {
            return self.ask_once(tid);
        };
        if page.known <= tid.offset {
            // Asks about all addresses of the page up to this one. Neighbouring addresses are next
            // to each other in the server's array, so the processor's caches already have most of
            // what the lookups read.
            let answers = self.ask(tid.block, page.known.max(1)..=tid.offset);
            for (dead, more) in page.dead.iter_mut().zip(answers) {
                *dead |= more;
            }
            page.known = tid.offset + 1;
        }
        page.dead[row / 64] >> (row % 64) & 1 == 1
    }

    /// Returns the remembered answers about the table page with block number `page`. Adds the page
    /// to `pages` if necessary. `None` if the memory does not suffice.
    #[inline]
    fn page<'p>(&self, pages: &'p mut Vec<PageRows>, page: usize) -> Option<&'p mut PageRows> {
        const UNKNOWN: PageRows = PageRows {
            dead: [0; ROWS_PER_PAGE / 64],
            known: 0,
        };
        if page >= pages.len() && page < self.max_pages {
            let wanted = (page + 1).next_power_of_two().min(self.max_pages);
            pages.try_reserve_exact(wanted - pages.len()).ok()?;
            pages.resize(page + 1, UNKNOWN);
        }
        pages.get_mut(page)
    }

    /// Calls the callback for each row of a table page whose offset is in `rows`. Returns bits that
    /// are indexed by the offset modulo [`ROWS_PER_PAGE`]. A bit is set if VACUUM removes the row.
    fn ask(&self, block: Block, rows: RangeInclusive<u16>) -> [u64; ROWS_PER_PAGE / 64] {
        let mut dead = [0; ROWS_PER_PAGE / 64];
        let Some(callback) = self.callback else {
            return dead;
        };
        // SAFETY: the state belongs to the callback.
        unsafe {
            pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| {
                for offset in rows {
                    let mut pointer = item_pointer(Tid::new(block, offset));
                    let row = usize::from(offset) % ROWS_PER_PAGE;
                    let is_dead = callback(&raw mut pointer, self.state);
                    dead[row / 64] |= u64::from(is_dead) << (row % 64);
                }
            })
        }
        dead
    }
}

/// Returns whether the server calls `ambulkdelete` only to list the row addresses in an index.
/// CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY do so in their last phase, when the index is
/// still invalid. VACUUM also calls `ambulkdelete` for invalid indexes, but to remove dead rows.
/// Then this function returns false.
pub fn is_validating(index: Rel) -> bool {
    assert!(index.is_neardup_index());
    !index.index_form().is_valid && !compat::in_vacuum()
}

/// Returns whether a vacuum may truncate the file of an index, for which it briefly takes an
/// AccessExclusiveLock. The table's settings can forbid that.
pub fn may_truncate(index: Rel) -> bool {
    assert!(index.is_neardup_index());
    // SAFETY: an open index, whose table is locked as well.
    unsafe { compat::vacuum_may_truncate(index.raw()) }
}
