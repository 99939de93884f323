//! The SQL functions, a file per family.
mod simhash;
