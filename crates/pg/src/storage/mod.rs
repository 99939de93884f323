//! Access to the pages of an index in the server: pins and locks, the write-ahead log, bulk
//! writing, temporary files, and fetches of the table's rows.
//!
//! docs/dev/locking.md describes the lock protocol, docs/dev/architecture.md lists these files.
mod buffer_hints;
pub mod bulk;
pub mod heap_fetch;
mod page_guard;
mod page_reads;
pub mod pages;
pub mod temp;
mod wal;
