//! How comparisons of distances reach an index, and how many rows they are expected to yield.
pub mod catalog;
mod estimate;
mod jaccard;
mod jaccard_estimate;
mod jaccard_within;
mod nodes;
mod radius;
mod rewrite;
pub mod selectivity;
mod statistics;
mod within;
