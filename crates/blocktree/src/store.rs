//! Page store: the interface between the tree and the buffer manager below it.
//!
//! A store reads pages ([`ReadPages`]), changes them ([`WritePages`]) and takes hints about the
//! pages that will be needed ([`PrefetchPages`]). Functions ask for what they use.
//!
//! # Locks
//! A guard from [`ReadPages::read`] is a shared lock on its page, one from [`WritePages::write`] an
//! exclusive one. Readers hold one lock at a time. Writers lock upwards, and rightwards only after
//! letting go: from a leaf to its parent, from there to its own, the meta page last. So no two can
//! wait for each other. (A vacuum that merges two neighbours locks the right one while it holds the
//! left one, but does not wait for it. Nor does who adds a row to several permutations wait for a
//! leaf while he holds another. A free page is locked after the meta page that leads to it; another
//! holder has followed an outdated link and waits for nothing.)

use crate::key::Block;
use crate::page::{Entries, Page, PageView, Result, corrupt};
use std::ops::{Deref, Range};

pub use crate::page::Glance;

/// Bytes to be written at an offset of a page.
#[derive(Clone, Copy, Debug)]
pub struct Patch<'a> {
    /// Offset on the page.
    pub offset: usize,
    /// The new bytes.
    pub bytes: &'a [u8],
}

/// Byte ranges to write to one page, in ascending order, not adjacent.
#[derive(Debug)]
pub struct PageChange<'a, W> {
    /// The page.
    pub page: &'a mut W,
    /// The changes.
    pub patches: [Patch<'a>; 3],
}

/// Number of pages that one log record may change: as many as generic WAL allows.
pub const PAGES_PER_RECORD: usize = 4;

/// Guard of a locked page.
pub trait PageGuard: Deref<Target = Page> {
    /// The page's block number.
    fn block(&self) -> Block;
}

impl<P: PageGuard, const N: usize, E> PageView<P, N, E> {
    /// The block number of a locked page.
    #[inline]
    pub fn block(&self) -> Block {
        self.page.block()
    }
}

impl<P: PageGuard, const N: usize, E: Entries> PageView<P, N, E> {
    /// The view of a locked page that must be on a level.
    pub(crate) fn open_on(page: P, level: u16) -> Result<Self> {
        let page = Self::unchecked(page);
        page.check_on(level)?;
        Ok(page)
    }

    /// Checks that the page belongs on a level.
    #[inline]
    pub(crate) fn check_on(&self, level: u16) -> Result<()> {
        self.check(self.block())?;
        match self.level() == level {
            true => Ok(()),
            false => corrupt(self.block(), "page on an unexpected level"),
        }
    }
}

/// Store whose pages can be read. Its own failures (input and output, memory) are not returned but
/// unwind.
pub trait ReadPages {
    /// A page that others may read at the same time.
    type Read<'a>: PageGuard
    where
        Self: 'a;

    /// Locks a page for reading.
    fn read(&self, block: Block) -> Self::Read<'_>;

    /// Locks an inner page for reading. Searches read the few inner pages again and again, so a
    /// store may have a faster way to them.
    fn read_inner(&self, block: Block) -> Self::Read<'_> {
        self.read(block)
    }

    /// Locks a leaf for reading after a hint of [`PrefetchPages`] about this leaf.
    fn read_prefetched(&self, leaf: Block) -> Self::Read<'_> {
        self.read(leaf)
    }

    /// Unlocks a leaf whose rows are about to be used. A store may keep a pin, which delays
    /// [`WritePages::cleanup_lock`], until the next such call.
    fn unlock_keep_pin(&self, page: Self::Read<'_>) {
        drop(page);
    }

    /// Version of a locked page. Each change of a leaf gives the leaf a version that it has never
    /// had. `None` if changes leave no trace.
    fn version(&self, _page: &Page) -> Option<u64> {
        None
    }

    /// Ends the operation, out of memory, by unwinding.
    fn out_of_memory(&self) -> ! {
        panic!("out of memory")
    }

    /// Checks for a cancel request, by unwinding. Long operations call it between pages, while
    /// pages further down may be locked.
    fn check_interrupts(&self);
}

/// Store whose pages can be changed. A failure leaves no change half done.
pub trait WritePages: ReadPages {
    /// A page that no other operation holds.
    type Write<'a>: PageGuard
    where
        Self: 'a;

    /// Locks a page for a change.
    fn write(&self, block: Block) -> Self::Write<'_>;

    /// [`WritePages::write`] without waiting; `None` if the page is locked.
    fn try_write(&self, block: Block) -> Option<Self::Write<'_>>;

    /// Locks a page to overwrite it. The log stores the next change as a full page, so the old
    /// content does not matter.
    fn write_new(&self, block: Block) -> Self::Write<'_>;

    /// Locks a page for the removal of entries: waits until no scan has a pin on it.
    fn cleanup_lock(&self, block: Block) -> Self::Write<'_>;

    /// [`WritePages::cleanup_lock`] without waiting; `None` if the page is locked or pinned.
    fn try_cleanup_lock(&self, block: Block) -> Option<Self::Write<'_>>;

    /// Returns a new page, all zero, that no other operation can reach yet.
    fn allocate(&self) -> Self::Write<'_>;

    /// Writes a few bytes of up to [`PAGES_PER_RECORD`] pages and logs just these bytes as one
    /// record: after a crash all are there or none. The hole between the two arrays of each page is
    /// zero afterwards.
    fn write_logged<'b>(&'b self, changes: &mut [PageChange<'_, Self::Write<'b>>]);

    /// Changes pages together and logs the changes as one record: after a crash all are there or
    /// none. `P` is at most [`PAGES_PER_RECORD`].
    fn change<const P: usize>(
        &self,
        pages: [&mut Self::Write<'_>; P],
        edit: impl FnOnce([&mut Page; P]),
    );

    /// Returns whether the size of the log record of the next change does not depend on how much of
    /// the page changes: the record has the full page, or there is no log.
    fn logs_whole(&self, _page: &Self::Write<'_>) -> bool {
        false
    }

    /// Checks for a cancel request and may sleep, to limit the load of a vacuum. Callers hold no
    /// lock.
    fn vacuum_delay(&self) {
        self.check_interrupts();
    }
}

/// Store that takes hints about pages that will be needed. A store may ignore each of them.
pub trait PrefetchPages {
    /// Hint that a leaf will be read soon: a store may prefetch it into the processor's cache.
    fn prefetch(&self, _leaf: Block) {}

    /// Hint that a leaf will be read next in a scan of neighbouring leaves.
    fn prefetch_next(&self, leaf: Block) {
        self.prefetch(leaf);
    }

    /// Hint that [`PrefetchPages::glance`] will be called for a leaf soon.
    fn prefetch_ends(&self, _leaf: Block) {}

    /// Copies fields of a leaf without a lock, if that costs little. The bytes may be outdated or
    /// torn.
    fn glance(&self, _leaf: Block) -> Option<Glance> {
        None
    }

    /// Hint that some bytes of a leaf will be read soon. They may lie beyond its end.
    fn prefetch_part(&self, _leaf: Block, _bytes: Range<usize>) {}

    /// Hint that an entry will be added to a leaf soon.
    fn prefetch_for_write(&self, _leaf: Block) {}

    /// Hint that a leaf will be read after some others: a store may read it from disk.
    fn read_ahead(&self, _leaf: Block) {}
}
