//! The index access method `neardup`.
//!
//! docs/architecture.md has the way of a search, an insert and a build through these files, and
//! docs/locking.md the protocol of locks.
pub mod bands;
pub mod build;
mod callbacks;
pub mod cost;
pub mod dirty_scan;
mod fingerprint_search;
pub mod handler;
pub mod index;
mod index_cache;
pub mod insert;
pub mod inspection;
pub mod keys;
pub mod metric;
pub mod options;
mod progress;
pub mod scan;
mod scan_keys;
mod search;
pub mod strategies;
pub mod vacuum;
pub mod validate;
