//! Worker processes that share a job with the leader, the backend that started them.
//!
//! The leader passes facts to all workers as words and, for some jobs, a table scan that all of
//! them share. Each worker sends messages of words to the leader through its own queue in shared
//! memory:
//!
//! ```text
//! | ROWS | words of the caller's ... |     as often as needed
//! | END | words of the caller's | ... |    once, when the worker has done its part
//! ```
//! A worker that ends in another way has raised an error, which the server passes on to the
//! leader. Workers have the leader's transaction, snapshots, settings and user, but not its
//! temporary tables. While workers exist, neither they nor the leader may write.
mod leader;
mod worker;

use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_sys;

pub use leader::{Job, Workers};
pub use worker::{Outbox, Worker};

/// The library that contains the start functions of the workers.
const LIBRARY: &CStr = c"neardup";

/// Bytes of each queue, a multiple of the greatest alignment.
const QUEUE_BYTES: usize = 1 << 18;
/// Keys of the parts of the shared memory in its table of contents.
const SHARED: u64 = 1;
const WORDS: u64 = 2;
const SCAN: u64 = 3;
const QUEUES: u64 = 4;
const QUERY: u64 = 5;

/// First words of messages.
const ROWS: u64 = 1;
const END: u64 = 2;

/// Number of words that a worker returns to the leader when it ends.
pub const RESULTS: usize = 2;

/// Facts of every job.
#[repr(C)]
struct Shared {
    query_id: u64,
    /// Number of the caller's words.
    words: usize,
    /// The next number to draw.
    next: AtomicU64,
}

/// A shared counter from 0 on. Only one process draws each number.
struct Numbers(NonNull<Shared>);

impl Numbers {
    /// # Safety
    /// The shared memory is filled, and mapped as long as this is used.
    unsafe fn new(shared: NonNull<Shared>) -> Self {
        Numbers(shared)
    }

    fn next(&self) -> u64 {
        // SAFETY: as promised in `new`.
        unsafe { self.0.as_ref() }
            .next
            .fetch_add(1, Ordering::Relaxed)
    }
}

/// The last message of a worker: whole words, without gaps.
#[repr(C)]
struct Summary {
    /// [`END`].
    kind: u64,
    results: [u64; RESULTS],
    buffers: pg_sys::BufferUsage,
    wal: pg_sys::WalUsage,
}

/// Exports a function that takes a [`Worker`] as a start function of workers, under a symbol.
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
