//! The SQL functions, a file for each family.
mod arrays;
mod containment;
mod explain;
mod info;
mod inspect;
mod minhash;
mod simhash;
mod text_options;
mod tune;
