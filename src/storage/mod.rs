//! The index's pages in the server's keeping: locks and pins, the log, and bulk writing.
pub mod bulk;
pub mod pages;
mod recent;
pub mod rows;
pub mod temp;
mod wal;
