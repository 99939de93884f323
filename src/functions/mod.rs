//! The SQL functions, a file for each family.
mod aggregate;
mod explain;
mod info;
mod inspect;
mod onebit;
mod simhash;
mod text_options;
mod tsvector;
