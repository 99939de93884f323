//! Pages of an index that are pinned and locked, until dropped.
use core::marker::PhantomData;
use core::ops::Deref;

use neardup_blocktree::key::Block;
use neardup_blocktree::page::Page;
use neardup_blocktree::store::PageGuard;
use pgrx::pg_sys;

unsafe extern "C-unwind" {
    // The two calls that each page costs besides its pin. On a buffer that is pinned, with the few
    // locks that the tree holds, they raise no error; so they are declared here without the wrapper
    // that pgrx puts around C functions, which makes a place to return to for each call.
    fn LockBuffer(buffer: pg_sys::Buffer, mode: core::ffi::c_int);
    fn UnlockReleaseBuffer(buffer: pg_sys::Buffer);
}

/// A pinned and locked buffer. Letting go of it releases both, except while an error unwinds:
/// then the server releases all of a backend's locks and pins by itself.
struct Locked<'a> {
    buffer: pg_sys::Buffer,
    page: *mut Page,
    block: Block,
    _store: PhantomData<&'a ()>,
}

impl Locked<'_> {
    /// # Safety
    /// The buffer holds this block, and is pinned and locked by the caller, who leaves both to the
    /// result.
    unsafe fn new(buffer: pg_sys::Buffer, block: Block) -> Self {
        // SAFETY: the buffer is pinned, so its page stays where it is.
        let page = unsafe { pg_sys::BufferGetPage(buffer) }.cast::<Page>();
        Locked {
            buffer,
            page,
            block,
            _store: PhantomData,
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the buffer was pinned and locked by us.
            unsafe { UnlockReleaseBuffer(self.buffer) }
        }
    }
}

impl Deref for Locked<'_> {
    type Target = Page;
    fn deref(&self) -> &Page {
        // SAFETY: the page is pinned and locked, so that nobody else changes it, as long as `self`
        // lives; we change it only through `&mut self` (see `wal`).
        unsafe { &*self.page }
    }
}

/// A page under a shared lock.
pub struct ReadPage<'a>(Locked<'a>);

/// A page under an exclusive lock.
pub struct WritePage<'a> {
    locked: Locked<'a>,
    /// Never logged before: its first change logs it whole.
    new: bool,
}

impl ReadPage<'_> {
    /// Locks a buffer.
    ///
    /// # Safety
    /// The buffer holds this block, and is pinned by the caller, who leaves the pin to the result.
    #[inline]
    pub(super) unsafe fn lock(buffer: pg_sys::Buffer, block: Block) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
            ReadPage(Locked::new(buffer, block))
        }
    }

    /// Unlocks the buffer and returns it, still pinned.
    pub(super) fn unlock_keep_pin(self) -> pg_sys::Buffer {
        let buffer = self.0.buffer;
        core::mem::forget(self);
        // SAFETY: the buffer is pinned and locked by us.
        unsafe { LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32) };
        buffer
    }
}

impl WritePage<'_> {
    /// Locks a buffer.
    ///
    /// # Safety
    /// As for [`ReadPage::lock`].
    #[inline]
    pub(super) unsafe fn lock(buffer: pg_sys::Buffer, block: Block) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
            Self::locked(buffer, block)
        }
    }

    /// A buffer that is locked exclusively already.
    ///
    /// # Safety
    /// As for [`ReadPage::lock`]; the caller leaves the lock to the result as well.
    pub(super) unsafe fn locked(buffer: pg_sys::Buffer, block: Block) -> Self {
        WritePage {
            // SAFETY: the caller's promise.
            locked: unsafe { Locked::new(buffer, block) },
            new: false,
        }
    }

    /// The same page, to be logged whole with its first change.
    pub(super) fn into_new(mut self) -> Self {
        self.new = true;
        self
    }

    /// The buffer, for the log.
    pub(super) fn buffer(&self) -> pg_sys::Buffer {
        self.locked.buffer
    }

    /// Returns whether the page is to be logged whole.
    pub(super) fn is_new(&self) -> bool {
        self.new
    }

    /// The page itself, for changes inside a critical section.
    pub(super) fn page_mut(&mut self) -> &mut Page {
        // SAFETY: the lock is exclusive, and `&mut self` keeps out other references of our own.
        unsafe { &mut *self.locked.page }
    }

    /// From now on its changes are logged as such.
    pub(super) fn set_logged(&mut self) {
        self.new = false;
    }
}

impl Deref for ReadPage<'_> {
    type Target = Page;
    fn deref(&self) -> &Page {
        &self.0
    }
}

impl Deref for WritePage<'_> {
    type Target = Page;
    fn deref(&self) -> &Page {
        &self.locked
    }
}

impl PageGuard for ReadPage<'_> {
    fn block(&self) -> Block {
        self.0.block
    }
}

impl PageGuard for WritePage<'_> {
    fn block(&self) -> Block {
        self.locked.block
    }
}
