//! Errors instead of aborts when memory runs out, and the server's memory limits.
//!
//! Rust ends the process when an allocation fails that cannot report it, and the server then
//! restarts all sessions. So there are two lines of defence:
//!
//! - Memory that grows with the input is asked for by code that can report a failure
//!   (`neardup_sketch::memory`); it raises error 53200.
//! - All other allocations are of bounded size. When the system has no memory for one, it comes
//!   from a reserve that is part of the library's data (`super::allocator`), and the next call of
//!   [`check_interrupts`], the next growth or the end of the SQL function raises the error. What
//!   came from the reserve is given back while the error unwinds.
//!
//! An allocator must not unwind itself, which is why the error waits.
use neardup_sketch::memory;
use neardup_textdiff::Host;

use super::errors::UserError;
use super::{held_back, server};

/// Makes growth that fails raise error 53200. Called once, when the library is loaded.
pub fn register() {
    memory::on_failure(|| UserError::out_of_memory().raise());
}

/// Raises error 53200 if the reserve was used since the last time.
#[inline]
pub fn check() {
    if memory::take_shortage() {
        UserError::out_of_memory().raise();
    }
}

/// Runs an SQL function, which ends with error 53200 if the reserve was used. Meanwhile memory is
/// held back for the handling of errors.
#[inline(always)]
pub fn guarded<R>(function: impl FnOnce() -> R) -> R {
    if !held_back::hold_back() {
        UserError::out_of_memory().raise();
    }
    // Whatever was before ended in its own error.
    memory::take_shortage();
    let result = held_back::released_on_error(function);
    check();
    result
}

/// Ends the statement if that was asked for, or if the reserve was used. To be called in every loop
/// whose length depends on the input.
#[inline]
pub fn check_interrupts() {
    pgrx::check_for_interrupts!();
    check();
}

/// `work_mem` in bytes.
pub fn work_mem() -> usize {
    // In kB.
    server::work_mem() as usize * 1024
}

/// `maintenance_work_mem` in bytes.
pub fn maintenance_work_mem() -> usize {
    // In kB.
    server::maintenance_work_mem() as usize * 1024
}

/// The server as the program that a comparison of texts runs in.
pub struct ServerHost;

impl Host for ServerHost {
    #[inline]
    fn check(&mut self) {
        check_interrupts();
    }

    fn reserve(&mut self, bytes: usize) {
        memory::ensure_available(bytes);
    }
}
