//! The index access method `neardup`.
pub mod bands;
pub mod build;
pub mod cost;
mod fingerprint_search;
pub mod handler;
pub mod index;
mod index_cache;
pub mod insert;
pub mod inspection;
pub mod keys;
pub mod options;
mod progress;
pub mod scan;
mod scan_keys;
mod search;
pub mod strategies;
pub mod vacuum;
pub mod validate;
