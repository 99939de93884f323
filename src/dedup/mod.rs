//! Removing near-duplicates: at insert, and from a whole table at once.
//!
//! docs/dev/architecture.md has the way of a row through the trigger, and of jobs over whole
//! tables.

mod bound;
mod clusters;
mod column;
mod distance_counts;
mod estimate;
mod histogram;
mod keys;
mod limits;
mod pairs;
mod progress;
mod report;
mod row_filter;
mod row_sample;
mod sampled_pairs;
mod scope;
mod setup;
mod signatures;
mod source;
mod tid_set;
mod trigger;
mod work_limit;
