//! The SQL functions, a file for each family.
mod explain;
mod info;
mod inspect;
mod simhash;
mod text_options;
