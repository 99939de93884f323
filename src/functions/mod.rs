//! The SQL functions, a file for each family.
mod aggregate;
mod arrays;
mod b_bit_minhash;
mod containment;
pub mod dictionary;
mod explain;
mod features;
mod html;
mod in_flight;
mod info;
mod inspect;
mod minhash;
mod sentences;
mod simhash;
mod sketcher;
mod text_options;
mod tsvector;
mod tune;
