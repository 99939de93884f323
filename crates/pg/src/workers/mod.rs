//! Worker processes that do a job together with the leader, the backend that started them.
//!
//! The leader gives facts to all workers as words, and perhaps a scan of a table that all of them
//! share. Each worker has a queue in shared memory, through which it sends messages of words to
//! the leader:
//!
//! ```text
//! | ROWS | words of the caller's ... |     as often as needed
//! | END | words of the caller's | ... |    once, when the worker has done its part
//! ```
//! A worker that ends in another way has raised an error, which the server passes on to the leader.
//! Workers have the leader's transaction, snapshots, settings and user, but for temporary tables.
//! As long as there are some, nobody may write, the leader included.
mod leader;
mod worker;

use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_sys;

pub use leader::{Job, Workers};
pub use worker::{Outbox, Worker};

/// The library that has the functions which workers are started with.
const LIBRARY: &CStr = c"neardup";

/// Bytes of each queue, a multiple of the greatest alignment.
const QUEUE_BYTES: usize = 1 << 18;
/// Parts of the shared memory, by their keys in its table of contents.
const SHARED: u64 = 1;
const WORDS: u64 = 2;
const SCAN: u64 = 3;
const QUEUES: u64 = 4;
const QUERY: u64 = 5;

/// First words of messages.
const ROWS: u64 = 1;
const END: u64 = 2;

/// Number of words that a worker gives the leader at its end.
pub const RESULTS: usize = 2;

/// Facts of every job.
#[repr(C)]
struct Shared {
    query_id: u64,
    /// Number of the caller's words.
    words: usize,
    /// The next number that nobody has drawn.
    next: AtomicU64,
}

/// Numbers from 0 on, each of which one process draws.
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

/// Exports a function that takes a [`Worker`] as what workers are started with, by its symbol.
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
                // SAFETY: the guard is the outermost frame of Rust, and the server starts a worker
                // with what the leader has made.
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
