//! Planner support: rewrites comparisons of distances and similarities to conditions that indexes
//! support, and estimates how many rows fulfil these conditions.
//!
//! docs/dev/architecture.md describes the path of a condition from the query to the index.
pub mod catalog;
mod comparison;
pub mod conditions;
mod distance_forms;
mod estimators;
pub mod index_probe;
mod jaccard;
mod monotone;
mod order;
pub mod planned_ball;
mod point;
mod radius;
mod rewrite;
mod selectivity;
mod signature_sample;
mod statistics;
mod within;
mod within_arguments;
