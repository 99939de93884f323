//! Guards of index pages: a page stays pinned and locked until its guard is dropped.
use core::marker::PhantomData;
use core::ops::Deref;

use neardup_blocktree::key::Block;
use neardup_blocktree::page::Page;
use neardup_blocktree::store::PageGuard;
use pgrx::pg_sys;

use crate::compat::{self, OldSnapshotCheck};
use crate::rel::Rel;

unsafe extern "C-unwind" {
    // Calls that are made for each page in addition to pinning it. On a pinned buffer, and with the
    // few locks that a tree operation holds, they raise no error. So they are declared here without
    // pgrx's wrapper around C functions, which sets a jump target for each call.
    fn LockBuffer(buffer: pg_sys::Buffer, mode: core::ffi::c_int);
    fn ConditionalLockBuffer(buffer: pg_sys::Buffer) -> bool;
    fn UnlockReleaseBuffer(buffer: pg_sys::Buffer);
}

/// Way in which [`Pinned::lock_as`] locks a page exclusively.
#[derive(Clone, Copy)]
pub(super) enum Exclusive {
    /// Waits until no other backend has a lock or a pin on the page.
    ForCleanup,
    /// Does not wait. Fails if the page is locked, or if another backend has a pin on it.
    ForCleanupAtOnce,
    /// Does not wait. Fails if any backend has the page locked, including this one.
    AtOnce,
}

/// Pinned buffer that holds a block of an index. If the value is dropped without releasing the pin,
/// the server releases the pin when the statement ends.
pub struct Pinned {
    buffer: pg_sys::Buffer,
    block: Block,
}

impl Pinned {
    /// Wraps a buffer that the caller has pinned.
    ///
    /// # Safety
    /// The buffer holds this block. The caller has pinned it and passes the pin to the result.
    #[inline]
    pub(super) unsafe fn new(buffer: pg_sys::Buffer, block: Block) -> Self {
        Pinned { buffer, block }
    }

    /// Number of the buffer.
    #[inline]
    pub(super) fn buffer(&self) -> pg_sys::Buffer {
        self.buffer
    }

    /// Locks the page in shared mode, for a reader with this snapshot check. Raises error 72000 if
    /// the page has changed so much since the reader's snapshot that a visible row may be missing.
    /// Only this function makes a [`ReadPage`], so no reader can omit the check.
    #[inline]
    pub(super) fn read<'a>(self, index: Rel<'_>, check: OldSnapshotCheck) -> ReadPage<'a> {
        let page = self.lock(pg_sys::BUFFER_LOCK_SHARE);
        if check.is_active() {
            // SAFETY: the index is open.
            unsafe { check.test(index.raw(), compat::page_lsn(&page)) }
        }
        ReadPage(page)
    }

    /// Locks the page exclusively, and waits for the lock.
    #[inline]
    pub(super) fn write<'a>(self) -> WritePage<'a> {
        WritePage::new(self.lock(pg_sys::BUFFER_LOCK_EXCLUSIVE))
    }

    /// Locks the page in this mode (`BUFFER_LOCK_...`).
    #[inline]
    fn lock<'a>(self, mode: u32) -> Locked<'a> {
        // SAFETY: the buffer is pinned.
        unsafe {
            LockBuffer(self.buffer, mode as i32);
            self.locked()
        }
    }

    /// Locks the page exclusively. `way` decides whether to wait, and whether another backend may
    /// have the page pinned. If `way` does not wait and the page cannot be locked at once, releases
    /// the pin and returns `None`. A cleanup lock, which allows no pins of other backends, requires
    /// that this backend has pinned the buffer exactly once.
    #[inline]
    pub(super) fn lock_as<'a>(self, way: Exclusive) -> Option<WritePage<'a>> {
        // SAFETY: the buffer is pinned.
        unsafe {
            let is_locked = match way {
                Exclusive::ForCleanup => {
                    pg_sys::LockBufferForCleanup(self.buffer);
                    true
                }
                Exclusive::ForCleanupAtOnce => pg_sys::ConditionalLockBufferForCleanup(self.buffer),
                Exclusive::AtOnce => ConditionalLockBuffer(self.buffer),
            };
            if !is_locked {
                pg_sys::ReleaseBuffer(self.buffer);
                return None;
            }
            Some(WritePage::new(self.locked()))
        }
    }

    /// Wraps a page that the caller has pinned and locked.
    ///
    /// # Safety
    /// The caller has locked the buffer, and passes the lock to the result.
    #[inline]
    pub(super) unsafe fn locked<'a>(self) -> Locked<'a> {
        Locked {
            // SAFETY: the buffer is pinned, so its page stays where it is.
            page: unsafe { pg_sys::BufferGetPage(self.buffer) }.cast(),
            pinned: self,
            _store: PhantomData,
        }
    }

    /// Releases the pin.
    #[inline]
    pub(super) fn release(self) {
        // SAFETY: the buffer is pinned.
        unsafe { pg_sys::ReleaseBuffer(self.buffer) }
    }
}

/// Pinned and locked page. Dropping it releases the lock and the pin, except while an error
/// unwinds: then the server itself releases all locks and pins of the backend.
pub(super) struct Locked<'a> {
    pinned: Pinned,
    page: *mut Page,
    _store: PhantomData<&'a ()>,
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the buffer was pinned and locked by us.
            unsafe { UnlockReleaseBuffer(self.pinned.buffer) }
        }
    }
}

impl Deref for Locked<'_> {
    type Target = Page;
    #[inline]
    fn deref(&self) -> &Page {
        // SAFETY: while `self` lives, the page is pinned and locked, so no other backend changes
        // it; this backend changes it only through `&mut self` (see `wal`).
        unsafe { &*self.page }
    }
}

/// Page under a shared lock.
pub struct ReadPage<'a>(Locked<'a>);

/// Page under an exclusive lock.
pub struct WritePage<'a> {
    locked: Locked<'a>,
    /// True if the page has never been logged. Then the log record of its first change contains the
    /// whole page.
    new: bool,
}

impl ReadPage<'_> {
    /// Releases the lock but not the pin, and returns the pinned buffer.
    #[inline]
    pub(super) fn unlock_keep_pin(self) -> Pinned {
        let (buffer, block) = (self.0.pinned.buffer, self.0.pinned.block);
        core::mem::forget(self);
        // SAFETY: the buffer is pinned and locked by us.
        unsafe {
            LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32);
            Pinned::new(buffer, block)
        }
    }
}

impl<'a> WritePage<'a> {
    /// Wraps a page that is locked exclusively and has been logged before.
    #[inline]
    pub(super) fn new(locked: Locked<'a>) -> Self {
        WritePage { locked, new: false }
    }

    /// Marks the page as never logged, so the log record of its first change contains the whole
    /// page.
    #[inline]
    pub(super) fn into_new(mut self) -> Self {
        self.new = true;
        self
    }

    /// Number of the buffer, for log records.
    #[inline]
    pub(super) fn buffer(&self) -> pg_sys::Buffer {
        self.locked.pinned.buffer
    }

    /// Returns whether the log record of the next change contains the whole page.
    #[inline]
    pub(super) fn is_new(&self) -> bool {
        self.new
    }

    /// The bytes of the page, for changes inside a critical section.
    #[inline]
    pub(super) fn page_mut(&mut self) -> &mut Page {
        // SAFETY: the lock is exclusive, and `&mut self` rules out other references in this
        // backend.
        unsafe { &mut *self.locked.page }
    }

    /// Marks the page as logged, so log records of later changes contain only the changes.
    pub(super) fn set_logged(&mut self) {
        self.new = false;
    }
}

impl Deref for ReadPage<'_> {
    type Target = Page;
    #[inline]
    fn deref(&self) -> &Page {
        &self.0
    }
}

impl Deref for WritePage<'_> {
    type Target = Page;
    #[inline]
    fn deref(&self) -> &Page {
        &self.locked
    }
}

impl PageGuard for ReadPage<'_> {
    #[inline]
    fn block(&self) -> Block {
        self.0.pinned.block
    }
}

impl PageGuard for WritePage<'_> {
    #[inline]
    fn block(&self) -> Block {
        self.locked.pinned.block
    }
}
