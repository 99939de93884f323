//! Errors instead of aborts when memory runs out, and the server's memory settings. When the system
//! has no memory, small requests are served from a reserve, and error 53200 is raised soon
//! afterwards.
//!
//! Rust aborts the process when an infallible allocation fails, and the server then restarts all
//! sessions. There are two defences:
//!
//! - Code that allocates memory in proportion to the input uses `neardup_sketch::memory`, which
//!   reports a failed allocation. The report raises error 53200.
//! - All other allocations are of bounded size. When the system has no memory for one, the memory
//!   comes from a reserve in the library's data (`super::allocator`). The next call of
//!   [`check_interrupts`], the next growth or the end of the SQL function raises the error.
//!   Memory from the reserve is freed while the error unwinds.
//!
//! The error is raised later because an allocator must not unwind.
use neardup_sketch::memory;
use neardup_textdiff::Host;

use super::errors::UserError;
use super::{held_back, server};

/// Makes failed allocations by `neardup_sketch::memory` raise error 53200 (out of memory). Called
/// once, when the library is loaded.
pub fn register() {
    memory::on_failure(|| UserError::out_of_memory().raise());
}

/// Raises error 53200 if an allocation was served from the reserve since the last check.
#[inline]
pub fn check() {
    if memory::take_shortage() {
        UserError::out_of_memory().raise();
    }
}

/// Runs an SQL function, or another function that the server calls. Raises error 53200 at its end
/// if an allocation has used the reserve meanwhile. While the function runs, address space is
/// reserved for the server's error handling (`super::held_back`).
#[inline(always)]
pub fn guarded<R>(function: impl FnOnce() -> R) -> R {
    if !held_back::reserve() {
        UserError::out_of_memory().raise();
    }
    // Forgets an earlier use of the reserve, which has already raised its own error.
    memory::take_shortage();
    let result = held_back::released_on_error(function);
    check();
    result
}

/// Ends the statement with an error if it was cancelled or if an allocation has used the reserve.
/// Call it in every loop whose length depends on the input.
#[inline]
pub fn check_interrupts() {
    pgrx::check_for_interrupts!();
    check();
}

/// Setting `work_mem` in bytes.
pub fn work_mem() -> usize {
    // The server's variable is in kB.
    server::work_mem() as usize * 1024
}

/// Setting `maintenance_work_mem` in bytes.
pub fn maintenance_work_mem() -> usize {
    // The server's variable is in kB.
    server::maintenance_work_mem() as usize * 1024
}

/// Interrupt and memory checks for comparisons of two texts (`neardup_textdiff`) that run in the
/// server.
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
