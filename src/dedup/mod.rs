//! Removing near-duplicates: at insert, and from a whole table at once.
//!
//! docs/architecture.md has the way of a row through the trigger, and of jobs over whole tables.
#![deny(unsafe_code)]

mod bound;
mod clusters;
mod column;
mod distance_counts;
mod estimate;
mod exhaustive;
mod histogram;
mod keys;
mod limits;
mod pairs;
mod progress;
mod report;
mod row_filter;
mod scope;
mod signatures;
mod source;
mod tid_set;
mod trigger;
