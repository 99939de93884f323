//! Writes the pages of a new index directly to its file, without the server's shared buffers.
use core::alloc::Layout;

use neardup_blocktree::build::BuildHost;
use neardup_blocktree::key::Block;
use neardup_blocktree::page::Page;
use neardup_blocktree::sort::TempFiles;
use pgrx::pg_sys;

use super::temp::{TempFile, TempSpace};
use crate::compat;
use crate::errors::UserError;
use crate::rel::Rel;

/// Number of pages that are logged and written together: as many as one log record can hold.
const BATCH: usize = pg_sys::XLR_MAX_BLOCK_ID as usize;

/// A batch of pages in memory, aligned for direct input and output.
#[repr(C, align(4096))]
struct Pages([Page; BATCH]);

impl Pages {
    /// Allocates a batch of zeroed pages on the heap, because the stack may not have room for it.
    fn new() -> Box<Self> {
        // SAFETY: the layout has a size, and zeroes are pages.
        unsafe {
            let pages = std::alloc::alloc_zeroed(Layout::new::<Self>()).cast::<Self>();
            if pages.is_null() {
                UserError::out_of_memory().raise();
            }
            Box::from_raw(pages)
        }
    }
}

/// Writes a new index, block by block, into a fork that is empty.
///
/// The pages are written by the storage manager and not through shared buffers. No other backend
/// can see them before the build commits, and a large index would evict other pages from the
/// buffers. Pages of a logged index are also written to the write-ahead log, for recovery and
/// standbys. [`BulkWriter::finish`] syncs these pages nevertheless, because recovery does not read
/// log records from before the last checkpoint.
pub struct BulkWriter<'a, F: FnMut(usize, usize)> {
    relation: Rel<'a>,
    fork: pg_sys::ForkNumber::Type,
    /// True if the pages are written to the write-ahead log.
    logged: bool,
    /// True if the next checkpoint need not sync the pages. False only for the main fork of an
    /// unlogged index: its pages must be on disk after a clean shutdown. Logged pages are synced by
    /// [`BulkWriter::finish`]. Unlogged pages of a permanent index are synced at the end of the
    /// transaction, and temporary indexes end with the session.
    skip_sync: bool,
    temp: TempSpace,
    /// Pages that have not been written yet.
    pages: Box<Pages>,
    /// Number of pages that have not been written yet.
    waiting: usize,
    /// Block number of the first page that has not been written yet.
    first: Block,
    /// Function to call after each permutation, which is one ordered copy of all keys. Its
    /// arguments are the number of permutations written so far and the number of all permutations.
    permutation_done: F,
}

impl<'a, F: FnMut(usize, usize)> BulkWriter<'a, F> {
    /// Starts to write a fork of an index that no other backend can see yet. Calls
    /// `permutation_done` after each permutation with the number of permutations written so far and
    /// the number of all permutations. Raises an internal error unless the fork is empty.
    pub fn new(relation: Rel<'a>, fork: pg_sys::ForkNumber::Type, permutation_done: F) -> Self {
        assert!(relation.is_neardup_index());
        // SAFETY: the index is open.
        let blocks = unsafe { pg_sys::RelationGetNumberOfBlocksInFork(relation.raw(), fork) };
        assert_eq!(blocks, 0);
        // The init fork of an unlogged index is logged: it must be there after a crash.
        let logged = relation.needs_wal() || fork == pg_sys::ForkNumber::INIT_FORKNUM;
        // A clean shutdown does not reset an unlogged index, so its pages must be on disk by then.
        let unlogged = relation.persistence() == pg_sys::RELPERSISTENCE_UNLOGGED;
        let skip_sync = logged || !unlogged;
        let pages = Pages::new();
        // Block 0 is written last. Until then the file has a page of zeroes there.
        BulkWriter {
            relation,
            fork,
            logged,
            skip_sync,
            temp: TempSpace,
            pages,
            waiting: 1,
            first: 0,
            permutation_done,
        }
    }

    /// Writes the remaining pages, and syncs the file if the pages are logged.
    pub fn finish(mut self) {
        self.flush();
        if self.logged {
            // A checkpoint may have passed since the first page was logged, and recovery begins at
            // the last checkpoint. The checkpoint did not sync these pages, because they are in no
            // buffer.
            // SAFETY: the relation is open.
            unsafe {
                pg_sys::smgrimmedsync(pg_sys::RelationGetSmgr(self.relation.raw()), self.fork)
            };
        }
    }

    /// Writes the pages that wait in the batch.
    fn flush(&mut self) {
        if self.waiting > 0 {
            self.write(self.first, self.waiting, true);
            self.first += self.waiting as Block;
            self.waiting = 0;
            pgrx::check_for_interrupts!();
        }
    }

    /// Logs and writes `count` pages of the batch to consecutive blocks from `first`. `new` is true
    /// if the blocks are beyond the end of the fork, false if they already exist.
    fn write(&mut self, first: Block, count: usize, new: bool) {
        let (relation, fork, skip_sync) = (self.relation.raw(), self.fork, self.skip_sync);
        let pages = &mut self.pages.0[..count];
        let blocks: Vec<Block> = (first..).take(count).collect();
        // SAFETY: the relation is open, and the pages are as many as the blocks.
        unsafe {
            if self.logged {
                compat::log_new_pages(relation, fork, &blocks, pages);
            }
            for (page, &block) in pages.iter_mut().zip(&blocks) {
                let page = page.as_mut_ptr();
                pg_sys::PageSetChecksumInplace(page.cast(), block);
                // Opened again for each page: a call that accepts cache invalidations may close it.
                let smgr = pg_sys::RelationGetSmgr(relation);
                match new {
                    true => pg_sys::smgrextend(smgr, fork, block, page.cast(), skip_sync),
                    false => pg_sys::smgrwrite(smgr, fork, block, page.cast(), skip_sync),
                }
            }
        }
    }
}

impl<F: FnMut(usize, usize)> BuildHost for BulkWriter<'_, F> {
    fn put(&mut self, block: Block, page: &mut Page) {
        if block == 0 {
            self.flush();
            // The first flush has written block 0 as a page of zeroes.
            self.pages.0[0] = *page;
            self.write(0, 1, false);
            return;
        }
        debug_assert_eq!(block, self.first + self.waiting as Block);
        self.pages.0[self.waiting] = *page;
        self.waiting += 1;
        if self.waiting == BATCH {
            self.flush();
        }
    }

    fn permutation_done(&mut self, done: usize, permutations: usize) {
        (self.permutation_done)(done, permutations);
    }
}

impl<F: FnMut(usize, usize)> TempFiles for BulkWriter<'_, F> {
    type File = TempFile;

    fn create(&mut self) -> TempFile {
        self.temp.create()
    }

    fn write(&mut self, file: &mut TempFile, bytes: &[u8]) {
        self.temp.write(file, bytes);
    }

    fn rewind(&mut self, file: &mut TempFile) {
        self.temp.rewind(file);
    }

    fn seek(&mut self, file: &mut TempFile, offset: u64) {
        self.temp.seek(file, offset);
    }

    fn read(&mut self, file: &mut TempFile, bytes: &mut [u8]) {
        self.temp.read(file, bytes);
    }

    fn check_interrupts(&mut self) {
        self.temp.check_interrupts();
    }

    fn out_of_memory(&mut self) -> ! {
        self.temp.out_of_memory()
    }
}
