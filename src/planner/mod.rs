//! Rewriting of comparisons of distances into conditions that an index knows, and estimates of the
//! rows that they yield.
//!
//! docs/dev/architecture.md has the way of a condition to the index.
pub mod catalog;
mod comparison;
pub mod conditions;
mod estimators;
mod forms;
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
