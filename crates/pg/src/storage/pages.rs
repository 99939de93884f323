//! The pages of an index in the server's buffers, as the tree wants them.
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

/// Attempts of a vacuum to lock an index that is in use, at intervals of 50 ms: as long as it
/// tries to lock a table (VACUUM_TRUNCATE_LOCK_TIMEOUT, 5 s).
const LOCK_ATTEMPTS: u32 = 100;

/// The main fork of an index.
pub struct IndexPages<'a> {
    relation: Rel<'a>,
    /// The number of its file; `None` for a temporary one, whose pages are not remembered.
    file: Option<u32>,
    /// True if changes go into the write-ahead log.
    logged: bool,
    /// The ring of buffers to read through.
    strategy: Strategy<'a>,
    /// Check of each page that is read.
    check: OldSnapshotCheck,
    /// True if to stay on the leaf whose rows are being used.
    staying: Cell<bool>,
    /// That leaf. An error that ends the statement drops the scan together with its pages, and
    /// releases their pins itself.
    stayed_on: Cell<Option<Pinned>>,
}

impl<'a> IndexPages<'a> {
    /// The pages of an open index, for a reader with this check.
    pub fn new(relation: Rel<'a>, check: OldSnapshotCheck) -> Self {
        // Numbers of temporary files are drawn apart from those of others, and a buffer's tag does
        // not tell both kinds apart.
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

    /// Sets whether the leaf whose rows are being used stays pinned, so that VACUUM leaves their
    /// addresses alone, and releases a leaf pinned earlier. Index-only scans need it, which do not
    /// look at the rows themselves.
    pub fn keep_leaf_pinned(&self, staying: bool) {
        self.staying.set(staying);
        self.move_on(None);
    }

    /// Lets go of the leaf stayed on, and stays on another.
    fn move_on(&self, leaf: Option<Pinned>) {
        if let Some(left) = self.stayed_on.replace(leaf)
            && !std::thread::panicking()
        {
            left.release();
        }
    }

    /// Blocks in the index now.
    #[inline]
    pub fn blocks(&self) -> Block {
        self.relation.blocks(pg_sys::ForkNumber::MAIN_FORKNUM)
    }

    /// Does what needs the index for itself, as soon as nobody else uses it; `None` if somebody
    /// does for all the seconds that it tries. Nobody has to wait for it until it has the lock.
    pub fn alone<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let mode = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: the relation is open. Like the server's own vacuum, which cuts off the end of a
        // table so, it lets go before its transaction ends; an error lets go as well.
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

    /// Truncates the index to `blocks` blocks. To be called from [`IndexPages::alone`].
    pub fn truncate(&self, blocks: Block) {
        // SAFETY: the relation is open, and nobody else uses it.
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

    /// Pins a page where it was last, if it still is there. The server checks that the buffer holds
    /// that very page.
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

    /// Has the machine fetch what the server keeps of a page's buffer, and the page's first bytes,
    /// if it is known where the page was last.
    #[inline]
    fn prefetch_recent(&self, block: Block, bytes: usize) {
        if let Some(buffer) = (self.file).and_then(|file| buffer_hints::buffer_of(file, block)) {
            prefetch(buffer, bytes, true);
        }
    }
}

/// Bytes from the start of a leaf that hold most keys of a newly built one.
const MOST_OF_A_LEAF: usize = 60 * 64;
/// Bytes that are read first. The machine sees where it goes on and fetches that by itself.
const START_OF_A_LEAF: usize = 10 * 64;

/// Has the machine fetch a leaf into its caches: the fields at the end, and `bytes` bytes from the
/// start. With the descriptor of a shared buffer: the page's name, its lock and its pins.
#[inline]
fn prefetch(buffer: pg_sys::Buffer, bytes: usize, with_descriptor: bool) {
    prefetch_lines(buffer, PAGE_SIZE - LINE..PAGE_SIZE, with_descriptor);
    prefetch_lines(buffer, 0..bytes.max(LINE), false);
}

/// Bytes that come from memory together.
const LINE: usize = 64;

/// Has the machine fetch some bytes of a page into its caches, and the descriptor of a shared
/// buffer.
#[inline]
fn prefetch_lines(buffer: pg_sys::Buffer, bytes: Range<usize>, with_descriptor: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: places of buffers are fixed, and shared ones count from 1; a prefetch reads
        // nothing that the program would see.
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
        // The log position of its last change. Without a log it stays what it was.
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
        // What it tells is of use where something can be prefetched.
        let file = self.file.filter(|_| cfg!(target_arch = "x86_64"))?;
        let buffer = buffer_hints::buffer_of(file, block)?;
        let (mut head, mut tail) = ([0; 8], [0; 64]);
        // SAFETY: places of buffers are fixed, and pages begin at a multiple of 8. Others may write
        // there meanwhile: each word is read at once, and any bytes are a number.
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
        // SAFETY: the relation is open; the buffer comes pinned and locked.
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
