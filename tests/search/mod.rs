//! Searches by the index: their results, their use by the planner, and their order.
mod arrays;
mod common_values;
pub mod forms;
mod nearest;
mod oracle;
mod orders;
mod plans;
mod prepared;
mod queries;
mod scope_types;
mod scopes;
mod similarity;
mod similarity_forms;
pub mod standing_scans;
