//! How comparisons of distances reach an index, and how many rows they are expected to yield.
pub mod catalog;
pub mod conditions;
mod estimate;
mod forms;
mod jaccard;
pub mod jaccard_estimate;
mod jaccard_within;
mod nodes;
mod radius;
mod rewrite;
pub mod selectivity;
mod signature_sample;
mod statistics;
mod within;
