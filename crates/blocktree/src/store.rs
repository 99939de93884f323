//! Page store: the interface between the tree and the buffer manager below it. Locking a page
//! returns a guard, which gives access to the page and unlocks it when dropped.
//!
//! A store reads pages ([`ReadPages`]), changes pages ([`WritePages`]) and accepts hints about
//! pages that will be needed soon ([`PrefetchPages`]). Functions require only the traits that they
//! use.
//!
//! # Locks
//! A guard from [`ReadPages::read`] is a shared lock on its page, a guard from
//! [`WritePages::write`] an exclusive lock. A reader holds one lock at a time. A writer locks pages
//! from a leaf upwards, and the meta page last. It releases a page before it locks the page's right
//! sibling. So two writers cannot wait for each other. There are three exceptions. A vacuum that
//! merges two neighbours tries to lock the right one while it holds the left one, but does not wait
//! for it. An insertion that holds a leaf of one permutation does not wait for a leaf of another
//! one. A free page is locked after the meta page that leads to it; another holder of its lock has
//! followed an outdated link and waits for nothing.

use crate::key::Block;
use crate::page::{Entries, Page, PageView, Result, corrupt};
use std::ops::{Deref, Range};

pub use crate::page::UnlockedCopy;

/// New bytes for one offset of a page.
#[derive(Clone, Copy, Debug)]
pub struct Patch<'a> {
    /// Offset of the first byte on the page.
    pub offset: usize,
    /// The new bytes.
    pub bytes: &'a [u8],
}

/// Change of one page: byte ranges to write. They are in ascending order and not adjacent to each
/// other.
#[derive(Debug)]
pub struct PageChange<'a, W> {
    /// The locked page to change.
    pub page: &'a mut W,
    /// The byte ranges and their new bytes.
    pub patches: [Patch<'a>; 3],
}

/// Maximum number of pages that one log record may change, which is the limit of PostgreSQL's
/// generic WAL.
pub const PAGES_PER_RECORD: usize = 4;

/// Guard of a locked page, which gives access to the page.
pub trait PageGuard: Deref<Target = Page> {
    /// Returns the block number of the locked page.
    fn block(&self) -> Block;
}

impl<P: PageGuard, const N: usize, E> PageView<P, N, E> {
    /// Returns the block number of the locked page.
    #[inline]
    pub fn block(&self) -> Block {
        self.page.block()
    }
}

impl<P: PageGuard, const N: usize, E: Entries> PageView<P, N, E> {
    /// Checks a locked page and returns its view. Returns an error if the page is damaged, has
    /// another kind than expected, or is not on `level`.
    pub(crate) fn open_on(page: P, level: u16) -> Result<Self> {
        let page = Self::unchecked(page);
        page.check_on(level)?;
        Ok(page)
    }

    /// Checks the page, and that it is on `level`.
    #[inline]
    pub(crate) fn check_on(&self, level: u16) -> Result<()> {
        self.check(self.block())?;
        match self.level() == level {
            true => Ok(()),
            false => corrupt(self.block(), "page on an unexpected level"),
        }
    }
}

/// Store whose pages can be read. If the store itself fails (I/O, memory), its methods unwind
/// instead of returning an error.
pub trait ReadPages {
    /// Guard of a page with a shared lock.
    type Read<'a>: PageGuard
    where
        Self: 'a;

    /// Locks a page for reading, in shared mode.
    fn read(&self, block: Block) -> Self::Read<'_>;

    /// Locks an inner page for reading. Searches read the few inner pages again and again, so a
    /// store may implement this faster than [`ReadPages::read`].
    fn read_inner(&self, block: Block) -> Self::Read<'_> {
        self.read(block)
    }

    /// Locks a leaf for reading, after the leaf was passed to a method of [`PrefetchPages`]. A
    /// store that remembers the leaf's buffer from the prefetch can lock the leaf faster.
    fn read_prefetched(&self, leaf: Block) -> Self::Read<'_> {
        self.read(leaf)
    }

    /// Unlocks a leaf whose rows the caller is about to return. A store may keep a pin on the leaf
    /// until this method is next called. The pin delays [`WritePages::cleanup_lock`] on the leaf.
    fn unlock_keep_pin(&self, page: Self::Read<'_>) {
        drop(page);
    }

    /// Returns the version of a locked leaf. Each change of the leaf gives it a version that it has
    /// never had before. `None` if the store has no versions.
    fn version(&self, _page: &Page) -> Option<u64> {
        None
    }

    /// Ends the operation by unwinding, because memory could not be allocated.
    fn out_of_memory(&self) -> ! {
        panic!("out of memory")
    }

    /// Checks for a cancel request, and unwinds if there is one. Long operations call it after each
    /// page that they read, in some cases while the page is still locked.
    fn check_interrupts(&self);
}

/// Store whose pages can be changed. A failed operation changes nothing.
pub trait WritePages: ReadPages {
    /// Guard of a page with an exclusive lock.
    type Write<'a>: PageGuard
    where
        Self: 'a;

    /// Locks a page for changes, in exclusive mode.
    fn write(&self, block: Block) -> Self::Write<'_>;

    /// Locks a page like [`WritePages::write`], but does not wait. `None` if another process has
    /// locked the page.
    fn try_write(&self, block: Block) -> Option<Self::Write<'_>>;

    /// Locks a page that will be overwritten completely. The next change is logged as a full page,
    /// so the old content does not matter.
    fn write_new(&self, block: Block) -> Self::Write<'_>;

    /// Locks a page for the removal of entries. Waits until no scan has a pin on the page.
    fn cleanup_lock(&self, block: Block) -> Self::Write<'_>;

    /// Locks a page like [`WritePages::cleanup_lock`], but does not wait. `None` if another process
    /// has locked or pinned the page.
    fn try_cleanup_lock(&self, block: Block) -> Option<Self::Write<'_>>;

    /// Adds a page to the index and returns it locked. All its bytes are zero, and no other
    /// operation can reach it yet.
    fn allocate(&self) -> Self::Write<'_>;

    /// Writes some bytes of up to [`PAGES_PER_RECORD`] pages and logs only these bytes, as one
    /// record: after a crash, all changes exist or none. The hole between the two arrays of each
    /// page is zero afterwards.
    fn write_logged<'b>(&'b self, changes: &mut [PageChange<'_, Self::Write<'b>>]);

    /// Changes up to [`PAGES_PER_RECORD`] pages by `edit` and logs the changes as one record: after
    /// a crash, all changes exist or none.
    fn change<const P: usize>(
        &self,
        pages: [&mut Self::Write<'_>; P],
        edit: impl FnOnce([&mut Page; P]),
    );

    /// Returns whether the log record of the page's next change has the same size however many
    /// bytes change. That is true if the log record contains the full page, or if there is no log.
    fn logs_whole(&self, _page: &Self::Write<'_>) -> bool {
        false
    }

    /// Checks for a cancel request, and may sleep to limit the load of a vacuum. The caller holds
    /// no lock.
    fn vacuum_delay(&self) {
        self.check_interrupts();
    }
}

/// Store that accepts hints about leaves that will be needed soon. A store may ignore any hint.
pub trait PrefetchPages {
    /// Hint that a leaf will be read soon. A store may prefetch it into the processor's cache.
    fn prefetch(&self, _leaf: Block) {}

    /// Hint that a leaf will be read next in a scan of neighbouring leaves.
    fn prefetch_next(&self, leaf: Block) {
        self.prefetch(leaf);
    }

    /// Hint that [`PrefetchPages::glance`] will soon be called for a leaf. A store may prefetch the
    /// bytes that `glance` copies.
    fn prefetch_ends(&self, _leaf: Block) {}

    /// Copies some fields of a leaf without a lock. The bytes may be outdated, or partly
    /// overwritten by a change in progress. `None` if the copy would be expensive, for example
    /// because the page is not in memory.
    fn glance(&self, _leaf: Block) -> Option<UnlockedCopy> {
        None
    }

    /// Hint that the bytes `_bytes` of a leaf will be read soon. The range may extend beyond the
    /// end of the page.
    fn prefetch_part(&self, _leaf: Block, _bytes: Range<usize>) {}

    /// Hint that an entry will soon be added to a leaf.
    fn prefetch_for_write(&self, _leaf: Block) {}

    /// Hint that a leaf will be read after some other leaves. A store may start to read it from
    /// disk.
    fn read_ahead(&self, _leaf: Block) {}
}
