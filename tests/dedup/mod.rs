//! Near-duplicates refused, marked or removed: the trigger, the constraint and the recipes.
mod by_hand;
mod confirm;
mod deliveries;
mod exclusion;
mod in_flight;
mod kept_state;
mod marks;
pub mod recipes;
mod renewals;
mod repeated_passages;
mod rules;
mod segments;
mod setup;
mod subtransactions;
mod windows;
mod windows_of_constraints;
mod writers;
