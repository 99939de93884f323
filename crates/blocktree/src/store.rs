//! What the tree asks of the keeper of its pages.
//!
//! # Locks
//! A guard from [`PageStore::read`] is a shared lock on its page, one from [`PageStore::write`] an
//! exclusive one. Readers hold one lock at a time. Writers lock upwards, and rightwards only after
//! letting go: from a leaf to its parent, from there to its own, the meta page last. So no two can
//! wait for each other. (A vacuum that merges two neighbours locks the right one while it holds the
//! left one, but does not wait for it. A free page is locked after the meta page that leads to it;
//! whoever else holds it has come by an old link and waits for nothing.)

use crate::key::Block;
use crate::page::Page;
use std::ops::Deref;

/// Bytes to be written at a place of a page.
#[derive(Clone, Copy, Debug)]
pub struct Patch<'a> {
    /// Where on the page.
    pub offset: usize,
    /// What to write there.
    pub bytes: &'a [u8],
}

/// A page held by a lock.
pub trait PageGuard: Deref<Target = Page> {
    /// The page's place in the index.
    fn block(&self) -> Block;
}

/// The keeper of the pages. Its own failures (input and output, memory) do not come back here but
/// unwind; then no change is half done.
pub trait PageStore {
    /// A page that others may read at the same time.
    type Read<'a>: PageGuard
    where
        Self: 'a;
    /// A page that nobody else holds.
    type Write<'a>: PageGuard
    where
        Self: 'a;

    /// Locks a page for reading.
    fn read(&self, block: Block) -> Self::Read<'_>;

    /// The same for an inner page. There are few of them and they are read again and again, so
    /// that a store may have a quicker way to them.
    fn read_inner(&self, block: Block) -> Self::Read<'_> {
        self.read(block)
    }

    /// Hears of a leaf that will be read soon, which a store may have the machine fetch meanwhile.
    fn prefetch(&self, _leaf: Block) {}

    /// The same of a leaf to which an entry will be added soon.
    fn prefetch_for_write(&self, _leaf: Block) {}

    /// Unlocks a leaf whose rows are about to be used. A store may keep
    /// [`PageStore::cleanup_lock`] off the page until the next such call.
    fn unlock_keep_pin(&self, page: Self::Read<'_>) {
        drop(page);
    }

    /// Locks a page for changing.
    fn write(&self, block: Block) -> Self::Write<'_>;

    /// Locks a page for writing it anew: its next change is logged whole, so that it need not have
    /// been there before.
    fn write_new(&self, block: Block) -> Self::Write<'_>;

    /// Locks a page for taking entries away: waits until no scan stands on it.
    fn cleanup_lock(&self, block: Block) -> Self::Write<'_>;

    /// The same without waiting for anybody; `None` if somebody holds the page or stands on it.
    fn try_cleanup_lock(&self, block: Block) -> Option<Self::Write<'_>>;

    /// A new page, all zero, that nobody else can reach yet.
    fn allocate(&self) -> Self::Write<'_>;

    /// Writes a few bytes, durably logged as just those. The patches are in ascending order and do
    /// not touch; the hole between the page's two arrays is zero afterwards.
    fn write_logged(&self, page: &mut Self::Write<'_>, patches: &[Patch<'_>]);

    /// Changes pages together, durably logged as one: after a crash all changes are there or none.
    /// `P` is at most 4.
    fn change<const P: usize>(
        &self,
        pages: [&mut Self::Write<'_>; P],
        edit: impl FnOnce([&mut Page; P]),
    );

    /// Ends the operation, for want of memory, by unwinding.
    fn out_of_memory(&self) -> ! {
        panic!("out of memory")
    }

    /// Called between pages by what runs long: may unwind to cancel. Pages further down may be
    /// locked.
    fn check_interrupts(&self);

    /// Called between pages by a vacuum, which holds nothing then: may also wait, for others' sake.
    fn vacuum_delay(&self) {
        self.check_interrupts();
    }
}
