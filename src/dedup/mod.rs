//! Removing near-duplicates: at insert, and from a whole table at once.
#![deny(unsafe_code)]

mod clusters;
mod column;
mod distance;
mod distance_counts;
mod histogram;
mod limits;
mod nodes;
mod pairs;
mod scope;
pub mod signatures;
mod source;
mod tid_set;
mod trigger;
