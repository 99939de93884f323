//! The SQL functions, a file for each family.
mod inspect;
mod simhash;
mod text_options;
