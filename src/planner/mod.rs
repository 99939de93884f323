//! How comparisons of distances reach an index, and how many rows they are expected to yield.
pub mod catalog;
mod comparison;
pub mod conditions;
mod estimate;
mod forms;
mod jaccard;
mod nodes;
pub mod planned_ball;
mod radius;
mod rewrite;
mod selectivity;
mod signature_sample;
mod statistics;
mod support;
mod within;
