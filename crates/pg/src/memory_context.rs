//! Memory contexts that this extension makes in the server.
use core::ffi::CStr;

use pgrx::pg_sys;

/// Memory context that is deleted when this value is dropped.
///
/// Its parent is the backend's top context, so the server never deletes it together with another
/// context. If an error unwinds the stack, the context is deleted during the unwinding, which the
/// server allows.
pub struct OwnContext(pg_sys::MemoryContext);

impl OwnContext {
    /// Makes a small, empty context with a name for the server's memory reports.
    pub fn new(name: &'static CStr) -> Self {
        OwnContext(small_context(Parent::Top, name))
    }

    /// Runs a function with this context as the server's current memory context. Memory that the
    /// server allocates meanwhile lives as long as `self`, or until [`Self::reset`].
    pub fn run<T>(&self, function: impl FnOnce() -> T) -> T {
        let _inside = Switched::to(self.0);
        function()
    }

    /// Frees all memory that was allocated in this context during [`Self::run`].
    pub fn reset(&mut self) {
        // SAFETY: the context is ours, and no other code uses its children.
        unsafe { pg_sys::MemoryContextReset(self.0) }
    }
}

impl Drop for OwnContext {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and is current only during `run`.
        unsafe { pg_sys::MemoryContextDelete(self.0) }
    }
}

/// Makes a memory context current until this value is dropped, even if an error unwinds.
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
        // SAFETY: the outer context was current before, and is still in use.
        unsafe { pg_sys::MemoryContextSwitchTo(self.outer) };
    }
}

/// Parent of a new memory context. Deleting the parent also deletes the new context.
pub enum Parent {
    /// The backend's top context, which is never deleted.
    Top,
    /// Context of the transaction, deleted at the transaction's end.
    Transaction,
    /// Context of the subtransaction. It is deleted when the subtransaction is rolled back, or else
    /// at the transaction's end. If it is not empty when the subtransaction commits, at least 8 kB
    /// stay allocated until the transaction ends.
    Subtransaction,
    /// Another context, which must be live.
    Context(pg_sys::MemoryContext),
}

impl Parent {
    fn context(self) -> pg_sys::MemoryContext {
        // SAFETY: the server has a single thread, so its variables can be read.
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

/// Makes a small memory context with this parent, and a name for the server's memory reports.
pub fn small_context(parent: Parent, name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the parent exists, and the name is static, as the server requires.
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

/// Moves a memory context below another parent, which then determines its lifetime.
///
/// # Safety
/// Both contexts are live, and the parent is not a descendant of the context.
pub unsafe fn set_parent(context: pg_sys::MemoryContext, parent: Parent) {
    let parent = parent.context();
    // SAFETY: the caller's promise.
    unsafe {
        if (*context).parent != parent {
            pg_sys::MemoryContextSetParent(context, parent);
        }
    }
}
