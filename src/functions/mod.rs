//! The SQL functions, a file for each family.
mod info;
mod inspect;
mod simhash;
