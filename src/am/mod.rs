//! The index access method `neardup`.
pub mod bands;
pub mod build;
pub mod cost;
pub mod handler;
pub mod index;
mod index_cache;
pub mod insert;
pub mod keys;
pub mod options;
pub mod scan;
mod scan_keys;
mod search;
pub mod vacuum;
pub mod validate;
