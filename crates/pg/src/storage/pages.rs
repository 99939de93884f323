//! Pages of an index in the server's shared buffers, as the page store that the tree reads and
//! writes (`neardup_blocktree::store`). A reader checks each page for rows that its snapshot sees
//! but that may have been removed ([`OldSnapshotCheck`]).
use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use neardup_blocktree::key::Block;
use neardup_blocktree::page::{PAGE_SIZE, Page};
use neardup_blocktree::store::{PageChange, PrefetchPages, ReadPages, UnlockedCopy, WritePages};
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

/// Maximum number of attempts of VACUUM to lock an index that it wants to truncate. There is one
/// attempt every 50 ms, so VACUUM tries for 5 s, as long as it tries to lock a table
/// (`VACUUM_TRUNCATE_LOCK_TIMEOUT`). If all attempts fail, VACUUM does not truncate the index.
const LOCK_ATTEMPTS: u32 = 100;

/// Page store over the main fork of one index.
pub struct IndexPages<'a> {
    relation: Rel<'a>,
    /// File number of the index, for the hints of `buffer_hints`; `None` for a temporary index,
    /// which has no hints.
    file: Option<u32>,
    /// True if changes of the index are written to the write-ahead log.
    logged: bool,
    /// Buffers into which pages are read: a small ring of them, or all shared buffers.
    strategy: Strategy<'a>,
    /// Check that is applied to each page that is read. It raises an error if the page may have
    /// lost rows that the reader's snapshot sees.
    check: OldSnapshotCheck,
    /// True if a leaf stays pinned while the rows of its entries are in use
    /// ([`IndexPages::keep_leaf_pinned`]).
    staying: Cell<bool>,
    /// Leaf that is kept pinned, if there is one; see `staying`. After an error, this value is
    /// dropped without releasing the pin, because the server does so when the statement ends.
    stayed_on: Cell<Option<Pinned>>,
}

impl<'a> IndexPages<'a> {
    /// Opens the pages of an index. Each page that is read is checked with `check`, which belongs
    /// to the reader's snapshot.
    pub fn new(relation: Rel<'a>, check: OldSnapshotCheck) -> Self {
        // Temporary files are numbered separately from other files, so the numbers are not unique.
        // A hint's tag does not distinguish the two kinds of files.
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

    /// Does the same as [`IndexPages::new`], but reads the pages into the buffers that `strategy`
    /// chooses, such as a small ring.
    pub fn with_strategy(
        relation: Rel<'a>,
        check: OldSnapshotCheck,
        strategy: Strategy<'a>,
    ) -> Self {
        IndexPages {
            strategy,
            ..IndexPages::new(relation, check)
        }
    }

    /// Replaces the check of the pages that are read, because the next reader has another snapshot.
    pub fn set_check(&mut self, check: OldSnapshotCheck) {
        self.check = check;
    }

    /// The index relation.
    #[inline]
    pub fn relation(&self) -> Rel<'a> {
        self.relation
    }

    /// Sets whether leaves stay pinned after they are unlocked. If `staying` is true, the leaf that
    /// was read last stays pinned while the rows of its entries are in use, until the next leaf
    /// replaces it. The pin keeps VACUUM from removing these rows. Index-only scans need the pin,
    /// because they do not read the rows themselves. Each call of this function first releases the
    /// leaf that is pinned at the moment.
    pub fn keep_leaf_pinned(&self, staying: bool) {
        self.staying.set(staying);
        self.replace_pinned_leaf(None);
    }

    /// Releases the leaf that was kept pinned, and keeps `leaf` pinned instead.
    fn replace_pinned_leaf(&self, leaf: Option<Pinned>) {
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

    /// Runs `work` under an exclusive lock on the index, and returns its result. Returns `None` if
    /// other sessions use the index at each of `LOCK_ATTEMPTS` attempts. The attempts do not
    /// queue for the lock, so they delay no other session.
    pub fn with_exclusive_lock<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
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

    /// Returns whether another session waits for the exclusive lock that
    /// [`IndexPages::with_exclusive_lock`] holds.
    pub fn is_waited_for(&self) -> bool {
        let mode = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: the relation is open, and locked in this mode.
        unsafe { pg_sys::LockHasWaitersRelation(self.relation.raw(), mode) }
    }

    /// Truncates the index to `blocks` blocks. Call it only in the `work` of
    /// [`IndexPages::with_exclusive_lock`].
    pub fn truncate(&self, blocks: Block) {
        // SAFETY: the relation is open, and no other session uses it.
        unsafe { pg_sys::RelationTruncate(self.relation.raw(), blocks) }
    }

    /// Pins a page, and reads it into a buffer if necessary.
    fn pin(&self, block: Block) -> Pinned {
        let (fork, mode) = (
            pg_sys::ForkNumber::MAIN_FORKNUM,
            pg_sys::ReadBufferMode::RBM_NORMAL,
        );
        let (relation, strategy) = (self.relation.raw(), self.strategy.raw());
        // SAFETY: the relation is open; a block that does not exist is an error of the server.
        // The counter is this backend's own.
        page_reads::timed(|| unsafe {
            let before = pg_sys::pgBufferUsage.shared_blks_read;
            let buffer = pg_sys::ReadBufferExtended(relation, fork, block, mode, strategy);
            let was_read = pg_sys::pgBufferUsage.shared_blks_read != before;
            (Pinned::new(buffer, block), was_read)
        })
    }

    /// Pins a page in the buffer where this backend last found it, if the server confirms that the
    /// buffer still holds the page. Otherwise the server looks the page up, as in
    /// [`IndexPages::pin`].
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

    /// Prefetches the first `bytes` bytes and the last cache line of a page, and the descriptor of
    /// its buffer, into the processor's cache. Without a hint for the page's buffer, looks up the
    /// buffer first. If the page is not in a buffer, only asks the system to read it from its file.
    /// Does nothing for a temporary index.
    #[inline]
    fn prefetch_recent(&self, block: Block, bytes: usize) {
        let Some(file) = self.file else { return };
        let known = buffer_hints::buffer_of(file, block);
        if let Some(buffer) = known.or_else(|| self.look_up(file, block)) {
            prefetch(buffer, bytes, true);
        }
    }

    /// Looks up the buffer of a page in the server's buffer table, and stores a hint for it. If the
    /// page is not in a buffer, asks the operating system to read it from the file, and returns
    /// `None`. A new session has no hints. Without this lookup, its first searches would prefetch
    /// nothing and wait for one leaf after the other.
    #[cold]
    fn look_up(&self, file: u32, block: Block) -> Option<pg_sys::Buffer> {
        let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
        // SAFETY: the relation is open.
        let found = unsafe { pg_sys::PrefetchBuffer(self.relation.raw(), fork, block) };
        (found.recent_buffer > 0).then(|| {
            buffer_hints::store(file, block, found.recent_buffer);
            found.recent_buffer
        })
    }
}

/// Number of bytes that are prefetched at the start of a leaf that will be read soon. In a newly
/// built leaf they contain most of the keys.
const MOST_OF_A_LEAF: usize = 60 * 64;
/// Number of bytes that are prefetched at the start of a leaf that is read in sequence. The
/// processor detects the sequential access and fetches the rest itself.
const START_OF_A_LEAF: usize = 10 * 64;

/// Prefetches parts of a leaf into the processor's cache: `bytes` bytes from its start, and the
/// cache line with the fields at its end. If `with_descriptor` is true, also the descriptor of the
/// buffer, which has the page's identity, lock and pins.
#[inline]
fn prefetch(buffer: pg_sys::Buffer, bytes: usize, with_descriptor: bool) {
    prefetch_lines(buffer, PAGE_SIZE - LINE..PAGE_SIZE, with_descriptor);
    prefetch_lines(buffer, 0..bytes.max(LINE), false);
}

/// Size of a cache line, in bytes.
const LINE: usize = 64;

/// Prefetches a byte range of a page and, if `with_descriptor` is true, the descriptor of its
/// shared buffer into the processor's cache. Does nothing on processors other than x86-64.
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
            self.replace_pinned_leaf(Some(page.unlock_keep_pin()));
        }
    }

    #[inline]
    fn version(&self, page: &Page) -> Option<u64> {
        // Log position of the page's last change. Unlogged changes do not advance it, so it does
        // not identify a version of a page that is not logged.
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
    fn glance(&self, block: Block) -> Option<UnlockedCopy> {
        // The caller uses the copied words only to prefetch pages, so they are useless where
        // prefetching does nothing.
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
            words(UnlockedCopy::HEAD, &mut head);
            words(UnlockedCopy::TAIL, &mut tail);
        }
        Some(UnlockedCopy { head, tail })
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
        !self.logged || wal::logs_whole_page(page)
    }

    fn vacuum_delay(&self) {
        // The caller holds no lock, as the trait's method requires.
        compat::vacuum_delay_point();
    }
}
