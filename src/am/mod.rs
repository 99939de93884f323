//! The index access method `neardup`.
//!
//! docs/dev/architecture.md follows a search, an insert and a build through these files.
//! docs/dev/locking.md describes the locks.
pub mod altered_options;
mod build;
mod callbacks;
pub mod cost;
pub mod dirty_scan;
mod hamming_search;
mod handler;
pub mod index;
mod index_cache;
mod insert;
pub mod inspection;
pub mod keys;
pub mod layout_change;
pub mod makers;
pub mod metric;
pub mod minhash;
pub mod options;
pub mod probe;
mod progress;
mod scan;
mod scan_keys;
mod search;
mod sets;
pub mod strategies;
pub mod suggestion;
pub mod usual_bound;
mod vacuum;
mod validate;
