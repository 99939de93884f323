//! SQL functions on texts, fingerprints and indexes, one file for each family.
//!
//! docs/dev/architecture.md follows `simhash(body)` through these and other files.
//!
//! Methods of `Call` read the arguments, and safe functions of [`neardup_pg`] call the server.

mod aggregate;
mod band_keys;
mod common_features;
pub mod dictionary;
mod differences;
mod evaluate;
mod explain;
mod feature_rows;
mod feature_sets;
mod features;
mod html;
mod in_flight;
mod index_check;
mod index_info;
mod minhash;
mod minhash_fingerprint;
pub mod passages;
mod radius;
mod segments;
mod sentences;
mod settings_digest;
mod shared_keys;
mod simhash;
mod similarity;
mod text_length;
pub mod text_options;
mod tsvector;
mod tune;
mod without;
