//! The index's pages in the server's keeping: locks and pins, the log, and bulk writing.
//!
//! docs/locking.md has the protocol of locks, docs/architecture.md the place of these files.
mod buffer_hints;
pub mod bulk;
pub mod heap_fetch;
mod page_guard;
mod page_reads;
pub mod pages;
pub mod temp;
mod wal;
