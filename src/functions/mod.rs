//! The SQL functions, a file for each family.
pub mod inspect;
