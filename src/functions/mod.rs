//! The SQL functions, a file for each family.
mod aggregate;
mod arrays;
mod containment;
pub mod dictionary;
mod explain;
mod features;
mod html;
mod in_flight;
mod info;
mod inspect;
mod minhash;
mod onebit;
mod sentences;
mod simhash;
mod text_options;
mod tsvector;
mod tune;
