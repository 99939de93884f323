//! The index access method `neardup`.
pub mod bands;
pub mod build;
mod conditions;
pub mod cost;
pub mod handler;
pub mod insert;
pub mod keys;
pub mod options;
pub mod scan;
mod search;
pub mod state;
pub mod vacuum;
pub mod validate;
mod visit;
