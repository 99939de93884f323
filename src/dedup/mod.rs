//! Removing near-duplicates: at insert, and from a whole table at once.
//!
//! docs/dev/architecture.md describes how a row passes through the trigger, and how jobs over
//! whole tables work.

mod bottom_k_sample;
mod bound;
mod clusters;
mod column;
mod compared;
mod confirm;
mod distance_counts;
mod estimate;
mod histogram;
mod key_type;
mod keys;
mod limits;
mod pairs;
mod progress;
mod repeated_passages;
mod report;
mod row_filter;
mod row_sample;
mod row_times;
mod sampled_pairs;
mod scope;
mod setup;
mod signatures;
mod source;
mod tid_set;
mod time_sweep;
mod trigger;
mod window;
mod work_limit;
