//! Address space reserved for the server's error handling, which needs memory even after memory has
//! run out.
//!
//! The server allocates memory while it reports an error, and ends all sessions if it cannot. So
//! neardup reserves some address space, and releases it as soon as neardup or the server raises
//! error 53200.
//!
//! An error context callback handles errors that the server raises. When an allocation by the
//! server fails, pgrx copies the error into the caller's memory context. If there is no memory for
//! the copy, pgrx jumps back to the start of the copy until the server's error stack is full, which
//! is a PANIC. The callbacks run before the copy is made.
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::server;

/// Start of the reserved mapping; null while no address space is reserved.
static MAPPING: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// Size of the reserved mapping in bytes. It must exceed 1 MB, because a memory context of the
/// server requests blocks of up to 1 MB before it gives up. Pages that are never written take no
/// memory.
const BYTES: usize = 2 << 20;

/// Reserves the address space if it is not reserved yet. Returns whether it is reserved now.
#[inline(always)]
pub fn reserve() -> bool {
    !MAPPING.load(Ordering::Relaxed).is_null() || map()
}

#[cold]
fn map() -> bool {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping at an address that the system chooses affects no other memory.
    let mapping = unsafe { libc::mmap(core::ptr::null_mut(), BYTES, access, kind, -1, 0) };
    if mapping == libc::MAP_FAILED {
        return false;
    }
    MAPPING.store(mapping, Ordering::Relaxed);
    true
}

/// Releases the reserved address space, so that the server can use it to handle an error.
pub fn release() {
    let mapping = MAPPING.swap(core::ptr::null_mut(), Ordering::Relaxed);
    if !mapping.is_null() {
        // SAFETY: mapped by `map` with this size, unmapped once, and never handed out.
        unsafe { libc::munmap(mapping, BYTES) };
    }
}

/// Runs a function and returns its result. If the server raises error 53200 while the function
/// runs, releases the reserved address space.
#[inline(always)]
pub fn released_on_error<R>(function: impl FnOnce() -> R) -> R {
    let mut callback = pg_sys::ErrorContextCallback {
        previous: core::ptr::null_mut(),
        callback: Some(release_if_out_of_memory),
        arg: core::ptr::null_mut(),
    };
    // SAFETY: backends have one thread. The callback outlives its entry in the stack, which
    // `_entry` removes.
    let _entry = unsafe {
        let previous = pg_sys::error_context_stack;
        callback.previous = previous;
        pg_sys::error_context_stack = &raw mut callback;
        StackEntry { previous }
    };
    function()
}

/// Entry of [`released_on_error`] in the server's error context stack. Dropping this value, also
/// because of an error, removes the entry.
struct StackEntry {
    previous: *mut pg_sys::ErrorContextCallback,
}

impl Drop for StackEntry {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: backends have one thread.
        unsafe { pg_sys::error_context_stack = self.previous };
    }
}

unsafe extern "C-unwind" fn release_if_out_of_memory(_: *mut c_void) {
    // The server calls this function while it builds an error report.
    if server::geterrcode() == PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32 {
        release();
    }
}
