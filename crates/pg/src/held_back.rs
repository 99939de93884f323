//! Memory held back for the server's handling of an error.
//!
//! The server allocates while an error is on its way to the client, and ends all sessions if it
//! cannot. So some address space is held back, and given back as soon as error 53200 is made, by
//! neardup or by the server itself.
//!
//! The latter needs a callback of the error context. When an allocation of the server's own fails,
//! pgrx copies the error into the memory context of the caller; if there is no memory for the copy
//! either, it jumps back to where it makes that copy, until the server's stack of errors is full,
//! which is a PANIC. The callbacks run before the copy is made.
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::server;

/// Start of the mapping; null while nothing is held back.
static MAPPING: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// Bytes of the mapping. A memory context of the server asks for blocks of up to 1 MB before it
/// gives up. Pages that nothing is written to take no memory.
const BYTES: usize = 2 << 20;

/// Holds memory back, unless some is already. Returns false if there is none.
#[inline(always)]
pub fn hold_back() -> bool {
    !MAPPING.load(Ordering::Relaxed).is_null() || map()
}

#[cold]
fn map() -> bool {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping, at an address of the system's choice, touches no other memory.
    let mapping = unsafe { libc::mmap(core::ptr::null_mut(), BYTES, access, kind, -1, 0) };
    if mapping == libc::MAP_FAILED {
        return false;
    }
    MAPPING.store(mapping, Ordering::Relaxed);
    true
}

/// Gives the memory back, for the server to handle an error with.
pub fn release() {
    let mapping = MAPPING.swap(core::ptr::null_mut(), Ordering::Relaxed);
    if !mapping.is_null() {
        // SAFETY: mapped by `map` with this size, unmapped once, and never handed out.
        unsafe { libc::munmap(mapping, BYTES) };
    }
}

/// Runs a function during which errors 53200 of the server's own release the memory as well.
#[inline(always)]
pub fn released_on_error<R>(function: impl FnOnce() -> R) -> R {
    let mut callback = pg_sys::ErrorContextCallback {
        previous: core::ptr::null_mut(),
        callback: Some(release_if_out_of_memory),
        arg: core::ptr::null_mut(),
    };
    // SAFETY: backends have one thread. The callback outlives its place on the stack, which
    // `_entry` ends.
    let _entry = unsafe {
        let previous = pg_sys::error_context_stack;
        callback.previous = previous;
        pg_sys::error_context_stack = &raw mut callback;
        StackEntry { previous }
    };
    function()
}

/// Callback's place on the server's stack of error contexts, which ends by an error as well.
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
    // The server calls this while it makes a message.
    if server::geterrcode() == PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32 {
        release();
    }
}
