//! Removing near-duplicates: at insert, and from a whole table at once.
mod clusters;
mod column;
mod distance_counts;
mod histogram;
mod nodes;
mod pairs;
mod scope;
pub mod signatures;
mod source;
mod tid_set;
mod trigger;
