//! Worker processes that do parts of a job for the leader, the backend that starts them. Index
//! builds and searches for all pairs use them.
//!
//! The leader passes data to all workers as 64-bit words and, for some jobs, a table scan that all
//! processes share. Each worker sends messages of words to the leader through its own queue in
//! shared memory:
//!
//! ```text
//! | ROWS | words of Outbox::put ... |            as often as needed
//! | END | results of Worker::finish | ... |      once, when the worker has done its part
//! ```
//! A worker that ends without the message END has raised an error, which the server passes on to
//! the leader. Workers have the leader's transaction, snapshots, settings and user, but not its
//! temporary tables. While workers exist, neither they nor the leader may write to the database.
mod leader;
mod worker;

use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_sys;

pub use leader::{Job, Workers};
pub use worker::{Outbox, Worker};

/// Name of the shared library that contains the start functions of the workers.
const LIBRARY: &CStr = c"neardup";

/// Size in bytes of each worker's queue, a multiple of the greatest alignment. While its queue is
/// full, a worker waits.
const QUEUE_BYTES: usize = 1 << 18;
/// Key of [`Shared`] in the shared memory's table of contents.
const SHARED: u64 = 1;
/// Key of [`Job::words`] in the table of contents.
const WORDS: u64 = 2;
/// Key of the shared table scan in the table of contents.
const SCAN: u64 = 3;
/// Key of the queues, one for each worker, in the table of contents.
const QUEUES: u64 = 4;
/// Key of the text of the client's statement in the table of contents.
const QUERY: u64 = 5;

/// First word of a message with words of [`Outbox::put`].
const ROWS: u64 = 1;
/// First word of a worker's last message, a [`Summary`].
const END: u64 = 2;

/// Number of result words that each worker returns to the leader when it ends.
pub const RESULTS: usize = 2;

/// Data that every job has in shared memory.
#[repr(C)]
struct Shared {
    /// Id of the client's statement, for pg_stat_activity.
    query_id: u64,
    /// Number of words that the leader passes to the workers.
    words: usize,
    /// Number that the next call of [`SharedCounter::next`] returns.
    next: AtomicU64,
}

/// Counter that the leader and its workers share, from 0. Each number is returned to one process
/// only. Jobs use the numbers to divide their work.
struct SharedCounter(NonNull<Shared>);

impl SharedCounter {
    /// Wraps the counter in shared memory.
    ///
    /// # Safety
    /// The shared memory is filled, and stays mapped as long as this value is used.
    unsafe fn new(shared: NonNull<Shared>) -> Self {
        SharedCounter(shared)
    }

    /// Returns the next number.
    fn next(&self) -> u64 {
        // SAFETY: as promised in `new`.
        unsafe { self.0.as_ref() }
            .next
            .fetch_add(1, Ordering::Relaxed)
    }
}

/// Last message of a worker. It has no padding, so it can be sent as whole words.
#[repr(C)]
struct Summary {
    /// First word of the message: [`END`].
    kind: u64,
    /// Results that the worker passed to [`Worker::finish`].
    results: [u64; RESULTS],
    /// Buffer usage of the worker, for EXPLAIN.
    buffers: pg_sys::BufferUsage,
    /// Write-ahead log usage of the worker, for EXPLAIN.
    wal: pg_sys::WalUsage,
}

/// Exports a worker's start function under a symbol name, which [`Job`] needs as its `entry_point`.
/// The function has one argument, the [`Worker`]. The server finds it by the symbol when it starts
/// a worker.
#[macro_export]
macro_rules! export_worker {
    ($symbol:expr => $function:expr) => {
        #[allow(unsafe_code, reason = "an exported symbol")]
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn worker_main(
                segment: *mut ::pgrx::pg_sys::dsm_segment,
                toc: *mut ::pgrx::pg_sys::shm_toc,
            ) {
                // SAFETY: the guard is the outermost Rust frame, and the server passes the worker
                // the segment that the leader created.
                unsafe {
                    ::pgrx::pg_sys::submodules::panic::pgrx_extern_c_guard(move || {
                        $crate::memory::guarded(|| {
                            $function($crate::workers::Worker::new(segment, toc))
                        })
                    })
                }
            }
        };
    };
}
pub use export_worker;
