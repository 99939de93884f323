//! Memory contexts of one's own.
use core::ffi::CStr;

use pgrx::pg_sys;

/// A memory context that is deleted when the value is dropped.
///
/// It hangs below the backend's topmost context, so that nobody else deletes it, whatever happens
/// to the context that is current when it is made; and it is deleted while an error unwinds as
/// well, which the server allows.
pub struct OwnContext(pg_sys::MemoryContext);

impl OwnContext {
    /// Makes a context for little.
    pub fn new(name: &'static CStr) -> Self {
        OwnContext(small_context(Parent::Top, name))
    }

    /// Runs a function with this as the current context. What the function allocates lives as long
    /// as `self`.
    pub fn run<T>(&self, function: impl FnOnce() -> T) -> T {
        let _inside = Switched::to(self.0);
        function()
    }

    /// Frees what [`Self::run`] has allocated.
    pub fn reset(&mut self) {
        // SAFETY: the context is ours, and has no children that others use.
        unsafe { pg_sys::MemoryContextReset(self.0) }
    }
}

impl Drop for OwnContext {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and nobody has it as the current one: see `run`.
        unsafe { pg_sys::MemoryContextDelete(self.0) }
    }
}

/// Makes a context the current one until dropped, also by an error.
struct Switched {
    outer: pg_sys::MemoryContext,
}

impl Switched {
    fn to(context: pg_sys::MemoryContext) -> Self {
        // SAFETY: the caller's context lives.
        let outer = unsafe { pg_sys::MemoryContextSwitchTo(context) };
        Switched { outer }
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        // SAFETY: it was the current one outside, where it still is in use.
        unsafe { pg_sys::MemoryContextSwitchTo(self.outer) };
    }
}

/// Context below which another one is, and with which that is deleted at the latest.
pub enum Parent {
    /// Never deleted.
    Top,
    /// Deleted when the transaction ends.
    Transaction,
    /// Deleted when the transaction ends, or when the subtransaction is rolled back. If anything is
    /// left here when the subtransaction commits, the server keeps its memory, 8 kB, until the
    /// transaction ends.
    Subtransaction,
    /// Another one, which lives.
    Context(pg_sys::MemoryContext),
}

impl Parent {
    fn context(self) -> pg_sys::MemoryContext {
        // SAFETY: variables of a server that has a single thread.
        unsafe {
            match self {
                Parent::Top => pg_sys::TopMemoryContext,
                Parent::Transaction => pg_sys::TopTransactionContext,
                Parent::Subtransaction => pg_sys::CurTransactionContext,
                Parent::Context(context) => context,
            }
        }
    }
}

/// A memory context for little.
pub fn small_context(parent: Parent, name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the contexts exist, and the name lives for ever, as the server asks for.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            parent.context(),
            name.as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_SMALL_MAXSIZE as usize,
        )
    }
}

/// Moves a context below another parent.
///
/// # Safety
/// Both live, and the parent is not below the context.
pub unsafe fn set_parent(context: pg_sys::MemoryContext, parent: Parent) {
    let parent = parent.context();
    // SAFETY: the caller's promise.
    unsafe {
        if (*context).parent != parent {
            pg_sys::MemoryContextSetParent(context, parent);
        }
    }
}
