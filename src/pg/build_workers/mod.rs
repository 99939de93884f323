//! Worker processes that read a table for a new index together with the leader, the backend that
//! builds it.
//!
//! All of them share one scan of the table, as in a parallel build of a btree. Each worker has a
//! queue in shared memory, through which it sends messages of words to the leader:
//!
//! ```text
//! | ROWS | words of the caller's ... |     as often as needed
//! | END | rows seen | ...             |     once, when no pages are left for the worker
//! ```
//! A worker that ends in another way has raised an error, which the server passes on to the leader.
mod leader;
mod worker;

use core::ffi::CStr;

use pgrx::pg_sys;

pub use leader::{Input, Workers};
pub use worker::BuildWorker;

/// The library and the function that a worker is started with (`src/am/callbacks.rs`).
const LIBRARY: &CStr = c"neardup";
const ENTRY_POINT: &CStr = c"neardup_build_worker";

/// Bytes of each queue, a multiple of the greatest alignment.
const QUEUE_BYTES: usize = 1 << 18;
/// Parts of the shared memory, by their keys in its table of contents.
const SHARED: u64 = 1;
const SCAN: u64 = 2;
const QUEUES: u64 = 3;
const QUERY: u64 = 4;

/// First words of messages.
const ROWS: u64 = 1;
const END: u64 = 2;

/// Facts that the leader tells its workers.
#[repr(C)]
struct Shared {
    table: pg_sys::Oid,
    index: pg_sys::Oid,
    is_concurrent: bool,
    query_id: u64,
}

/// The last message of a worker: whole words, without gaps.
#[repr(C)]
struct Summary {
    /// [`END`].
    kind: u64,
    rows_seen: f64,
    /// 1 if it met a chain of updates that the index cannot follow.
    has_broken_chain: u64,
    buffers: pg_sys::BufferUsage,
    wal: pg_sys::WalUsage,
}
