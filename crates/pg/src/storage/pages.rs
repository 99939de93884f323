//! The pages of an index in the server's buffers, behind the tree's storage traits.
use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use neardup_blocktree::key::Block;
use neardup_blocktree::page::{PAGE_SIZE, Page};
use neardup_blocktree::store::{Glance, PageChange, PrefetchPages, ReadPages, WritePages};
use pgrx::pg_sys;

use super::page_guard::{Exclusive, Pinned, ReadPage, WritePage};
use super::{buffer_hints, page_reads, wal};
use crate::buffer_strategy::Strategy;
use crate::compat::{self, OldSnapshotCheck};
use crate::errors::UserError;
use crate::rel::Rel;

const _: () = assert!(
    pg_sys::BLCKSZ as usize == PAGE_SIZE,
    "neardup needs pages of 8 kB"
);

/// Attempts of a vacuum to lock an index that is in use, at intervals of 50 ms. Together they last
/// as long as its attempts to lock a table (VACUUM_TRUNCATE_LOCK_TIMEOUT, 5 s).
const LOCK_ATTEMPTS: u32 = 100;

/// The main fork of an index.
pub struct IndexPages<'a> {
    relation: Rel<'a>,
    /// The index's file number; `None` for a temporary index, whose pages are not remembered.
    file: Option<u32>,
    /// True if changes are logged in the write-ahead log.
    logged: bool,
    /// The ring of buffers to read through.
    strategy: Strategy<'a>,
    /// Check of each page that is read.
    check: OldSnapshotCheck,
    /// True if the leaf whose rows are in use stays pinned.
    staying: Cell<bool>,
    /// The leaf that stays pinned. An error that ends the statement drops the scan together with
    /// its pages, and the server releases their pins.
    stayed_on: Cell<Option<Pinned>>,
}

impl<'a> IndexPages<'a> {
    /// The pages of an open index, for a reader with this check.
    pub fn new(relation: Rel<'a>, check: OldSnapshotCheck) -> Self {
        // Temporary files are numbered separately from other files, and a buffer's tag does not
        // distinguish the two kinds.
        let is_temporary = relation.persistence() == pg_sys::RELPERSISTENCE_TEMP;
        IndexPages {
            relation,
            file: (!is_temporary).then(|| relation.file_number()),
            logged: relation.needs_wal(),
            strategy: Strategy::ALL,
            check,
            staying: Cell::new(false),
            stayed_on: Cell::new(None),
        }
    }

    /// The pages of an open index, read through a ring of buffers.
    pub fn through(relation: Rel<'a>, check: OldSnapshotCheck, strategy: Strategy<'a>) -> Self {
        IndexPages {
            strategy,
            ..IndexPages::new(relation, check)
        }
    }

    /// Sets the check of each page that is read from now on.
    pub fn set_check(&mut self, check: OldSnapshotCheck) {
        self.check = check;
    }

    /// The index.
    #[inline]
    pub fn relation(&self) -> Rel<'a> {
        self.relation
    }

    /// Sets whether the leaf whose rows are in use stays pinned, which keeps VACUUM from removing
    /// their addresses, and releases a leaf pinned earlier. Index-only scans need the pin because
    /// they do not read the rows themselves.
    pub fn keep_leaf_pinned(&self, staying: bool) {
        self.staying.set(staying);
        self.move_on(None);
    }

    /// Releases the leaf that stayed pinned, and keeps another one instead.
    fn move_on(&self, leaf: Option<Pinned>) {
        if let Some(left) = self.stayed_on.replace(leaf)
            && !std::thread::panicking()
        {
            left.release();
        }
    }

    /// The current number of blocks in the index.
    #[inline]
    pub fn blocks(&self) -> Block {
        self.relation.blocks(pg_sys::ForkNumber::MAIN_FORKNUM)
    }

    /// Runs `work` under an exclusive lock on the index. Returns `None` if other sessions use the
    /// index during all attempts. No session waits for this lock before it is granted.
    pub fn alone<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let mode = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: the relation is open. The lock is released before the transaction ends, as by
        // the server's own vacuum when it truncates a table; an error releases it as well.
        unsafe {
            let mut attempts = 0;
            while !pg_sys::ConditionalLockRelation(self.relation.raw(), mode) {
                attempts += 1;
                if attempts > LOCK_ATTEMPTS {
                    return None;
                }
                compat::vacuum_truncate_nap();
            }
            let result = work();
            pg_sys::UnlockRelation(self.relation.raw(), mode);
            Some(result)
        }
    }

    /// Returns whether another session waits for the lock of [`IndexPages::alone`].
    pub fn is_waited_for(&self) -> bool {
        let mode = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: the relation is open, and locked in this mode.
        unsafe { pg_sys::LockHasWaitersRelation(self.relation.raw(), mode) }
    }

    /// Truncates the index to `blocks` blocks. Callers call it from [`IndexPages::alone`].
    pub fn truncate(&self, blocks: Block) {
        // SAFETY: the relation is open, and no other session uses it.
        unsafe { pg_sys::RelationTruncate(self.relation.raw(), blocks) }
    }

    fn pin(&self, block: Block) -> Pinned {
        let (fork, mode) = (
            pg_sys::ForkNumber::MAIN_FORKNUM,
            pg_sys::ReadBufferMode::RBM_NORMAL,
        );
        let (relation, strategy) = (self.relation.raw(), self.strategy.raw());
        // SAFETY: the relation is open; a block that does not exist is an error of the server.
        // The counter is this backend's own.
        page_reads::noted(|| unsafe {
            let before = pg_sys::pgBufferUsage.shared_blks_read;
            let buffer = pg_sys::ReadBufferExtended(relation, fork, block, mode, strategy);
            let was_read = pg_sys::pgBufferUsage.shared_blks_read != before;
            (Pinned::new(buffer, block), was_read)
        })
    }

    /// Pins a page in the buffer where it was found last, if it is still there. The server checks
    /// that the buffer holds that page. Otherwise looks the page up.
    fn pin_recent(&self, block: Block) -> Pinned {
        let Some(file) = self.file.filter(|_| !self.strategy.is_ring()) else {
            return self.pin(block);
        };
        if let Some(buffer) = buffer_hints::buffer_of(file, block)
            && !buffer_hints::bypass()
        {
            // SAFETY: the relation is open.
            unsafe {
                if compat::read_recent_buffer(self.relation.raw(), block, buffer) {
                    return Pinned::new(buffer, block);
                }
            }
        }
        let pinned = self.pin(block);
        buffer_hints::store(file, block, pinned.buffer());
        pinned
    }

    /// Prefetches a page's buffer descriptor, its last line and its first `bytes` bytes, if a
    /// buffer is remembered for the page.
    #[inline]
    fn prefetch_recent(&self, block: Block, bytes: usize) {
        if let Some(buffer) = (self.file).and_then(|file| buffer_hints::buffer_of(file, block)) {
            prefetch(buffer, bytes, true);
        }
    }
}

/// Bytes from the start of a newly built leaf that contain most of its keys.
const MOST_OF_A_LEAF: usize = 60 * 64;
/// Bytes that are read first. The processor detects the sequential read and fetches the rest.
const START_OF_A_LEAF: usize = 10 * 64;

/// Prefetches parts of a leaf: the fields at the end, and `bytes` bytes from the start. Optionally
/// also the descriptor of a shared buffer, with the page's name, lock and pins.
#[inline]
fn prefetch(buffer: pg_sys::Buffer, bytes: usize, with_descriptor: bool) {
    prefetch_lines(buffer, PAGE_SIZE - LINE..PAGE_SIZE, with_descriptor);
    prefetch_lines(buffer, 0..bytes.max(LINE), false);
}

/// Size of a cache line, in bytes.
const LINE: usize = 64;

/// Prefetches some bytes of a page and, optionally, the descriptor of a shared buffer.
#[inline]
fn prefetch_lines(buffer: pg_sys::Buffer, bytes: Range<usize>, with_descriptor: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the addresses of buffers are fixed, and shared buffers count from 1. A prefetch
        // has no effect that the program could see.
        unsafe {
            if with_descriptor {
                let descriptor = pg_sys::BufferDescriptors.add(buffer as usize - 1);
                _mm_prefetch::<_MM_HINT_T0>(descriptor.cast());
            }
            let page = pg_sys::BufferGetPage(buffer).cast::<i8>();
            for line in bytes.start / LINE..bytes.end.min(PAGE_SIZE).div_ceil(LINE) {
                _mm_prefetch::<_MM_HINT_T0>(page.add(line * LINE));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (buffer, bytes, with_descriptor);
}

impl ReadPages for IndexPages<'_> {
    type Read<'b>
        = ReadPage<'b>
    where
        Self: 'b;

    #[inline]
    fn read(&self, block: Block) -> ReadPage<'_> {
        let pinned = self.pin_recent(block);
        prefetch(pinned.buffer(), START_OF_A_LEAF, false);
        pinned.read(self.relation, self.check)
    }

    #[inline]
    fn read_inner(&self, block: Block) -> ReadPage<'_> {
        self.pin_recent(block).read(self.relation, self.check)
    }

    #[inline]
    fn read_prefetched(&self, block: Block) -> ReadPage<'_> {
        self.pin_recent(block).read(self.relation, self.check)
    }

    fn unlock_keep_pin(&self, page: ReadPage<'_>) {
        if self.staying.get() {
            self.move_on(Some(page.unlock_keep_pin()));
        }
    }

    #[inline]
    fn version(&self, page: &Page) -> Option<u64> {
        // The log position of the last change. Unlogged changes do not advance it.
        (self.logged).then(|| compat::page_lsn(page))
    }

    fn out_of_memory(&self) -> ! {
        UserError::out_of_memory().raise()
    }

    #[inline]
    fn check_interrupts(&self) {
        pgrx::check_for_interrupts!();
    }
}

impl PrefetchPages for IndexPages<'_> {
    #[inline]
    fn prefetch(&self, block: Block) {
        self.prefetch_recent(block, MOST_OF_A_LEAF);
    }

    #[inline]
    fn prefetch_next(&self, block: Block) {
        self.prefetch_recent(block, START_OF_A_LEAF);
    }

    #[inline]
    fn prefetch_ends(&self, block: Block) {
        self.prefetch_recent(block, 0);
    }

    #[inline]
    fn glance(&self, block: Block) -> Option<Glance> {
        // A glance is only useful where prefetching is available.
        let file = self.file.filter(|_| cfg!(target_arch = "x86_64"))?;
        let buffer = buffer_hints::buffer_of(file, block)?;
        let (mut head, mut tail) = ([0; 8], [0; 64]);
        // SAFETY: the addresses of buffers are fixed, and pages are aligned to 8 bytes. Others may
        // write there meanwhile, so each word is read atomically; any bytes are a valid number.
        unsafe {
            let page = pg_sys::BufferGetPage(buffer).cast::<u64>();
            let words = |offset: usize, bytes: &mut [u8]| {
                for (word, bytes) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                    let word = AtomicU64::from_ptr(page.add(offset / 8 + word));
                    *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
                }
            };
            words(Glance::HEAD, &mut head);
            words(Glance::TAIL, &mut tail);
        }
        Some(Glance { head, tail })
    }

    #[inline]
    fn prefetch_part(&self, block: Block, bytes: Range<usize>) {
        if let Some(buffer) = (self.file).and_then(|file| buffer_hints::buffer_of(file, block)) {
            prefetch_lines(buffer, bytes, false);
        }
    }

    #[inline]
    fn prefetch_for_write(&self, block: Block) {
        self.prefetch_recent(block, 0);
    }

    #[inline]
    fn read_ahead(&self, block: Block) {
        if page_reads::come_from_disk() {
            let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
            // SAFETY: the relation is open.
            unsafe { pg_sys::PrefetchBuffer(self.relation.raw(), fork, block) };
        }
    }
}

impl WritePages for IndexPages<'_> {
    type Write<'b>
        = WritePage<'b>
    where
        Self: 'b;

    #[inline]
    fn write(&self, block: Block) -> WritePage<'_> {
        self.pin_recent(block).write()
    }

    #[inline]
    fn try_write(&self, block: Block) -> Option<WritePage<'_>> {
        self.pin_recent(block).lock_as(Exclusive::AtOnce)
    }

    fn write_new(&self, block: Block) -> WritePage<'_> {
        self.write(block).into_new()
    }

    fn cleanup_lock(&self, block: Block) -> WritePage<'_> {
        let locked = self.pin(block).lock_as(Exclusive::ForCleanup);
        locked.expect("waits for the lock")
    }

    fn try_cleanup_lock(&self, block: Block) -> Option<WritePage<'_>> {
        self.pin(block).lock_as(Exclusive::ForCleanupAtOnce)
    }

    fn allocate(&self) -> WritePage<'_> {
        // SAFETY: the relation is open; the returned buffer is pinned and locked.
        unsafe {
            let buffer = compat::extend_relation(self.relation.raw());
            let pinned = Pinned::new(buffer, pg_sys::BufferGetBlockNumber(buffer));
            WritePage::new(pinned.locked()).into_new()
        }
    }

    fn write_logged<'b>(&'b self, changes: &mut [PageChange<'_, WritePage<'b>>]) {
        wal::write_logged(changes, self.logged);
    }

    fn change<const P: usize>(
        &self,
        pages: [&mut WritePage<'_>; P],
        edit: impl FnOnce([&mut Page; P]),
    ) {
        wal::change(self.relation.raw(), pages, edit);
    }

    fn logs_whole(&self, page: &WritePage<'_>) -> bool {
        !self.logged || wal::takes_whole(page)
    }

    fn vacuum_delay(&self) {
        // Nothing is held here, as `WritePages::vacuum_delay` says.
        compat::vacuum_delay_point();
    }
}
