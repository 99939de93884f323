//! The index's pages in the server: locks and pins, the log, and bulk writing.
//!
//! docs/dev/locking.md has the protocol of locks, docs/dev/architecture.md lists these files.
mod buffer_hints;
pub mod bulk;
pub mod heap_fetch;
mod page_guard;
mod page_reads;
pub mod pages;
pub mod temp;
mod wal;
