//! Near-duplicates refused, marked or removed: the trigger, the constraint and the recipes.
mod deliveries;
mod exclusion;
mod in_flight;
mod marks;
pub mod recipes;
mod renewals;
mod rules;
mod segments;
mod subtransactions;
mod writers;
