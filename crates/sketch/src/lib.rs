//! Conversion of text into features and fingerprints, and distances between fingerprints.
//!
//! This crate does not depend on PostgreSQL. The PostgreSQL extension neardup computes its
//! fingerprints with this crate, so both compute the same fingerprints. [`Sketcher`] turns texts
//! into fingerprints in the following steps. The defaults are those of [`options`]:
//!
//! | step | module | default |
//! |---|---|---|
//! | characters | [`normalize`] | NFKC, lower case |
//! | tokens | [`tokens`] | words by UAX 29 |
//! | features | [`shingle`] | two words in a row |
//! | feature hash | [`hash`] | XXH3, 64 or 128 bits |
//! | weight of a feature | [`weight`] | square root of its number of occurrences |
//! | fingerprint | [`simhash`] | 64- or 128-bit simhash, ties to 0 |
//! | distance | [`hamming`] | number of differing bits |
//!
//! A MinHash signature ([`minhash`]) or fingerprint ([`minhash_fingerprint`]) is computed from the
//! set of the features of a text. [`passages`] finds the runs of tokens that two texts share, by
//! hashes of runs of tokens.
//!
//! # Stability
//!
//! Fingerprints are stored, so equal input must give an equal fingerprint in every version, on
//! every platform and with every set of CPU instructions. So a fingerprint depends only on integer
//! arithmetic, tables of this crate, and dependencies pinned to one exact version. It does not
//! depend on the locale or on tables of the Rust standard library. `tests/golden.rs` compares
//! fingerprints with stored values.
//!
//! In the repository, `docs/dev/architecture.md` describes how a text passes through these files.
#![deny(unsafe_code)]

mod algorithms_digest;
pub mod candidates;
mod change_bits;
mod check;
pub mod common_features;
mod feature_counts;
mod feature_diff;
mod feature_list;
mod feature_sink;
mod feature_spans;
pub mod foreign_schemes;
pub mod hamming;
pub mod hash;
pub mod html;
pub mod memory;
pub mod minhash;
pub mod minhash_fingerprint;
mod named_option;
pub mod normalize;
pub mod options;
pub mod passages;
pub mod segments;
pub mod sentences;
pub mod shingle;
#[doc(hidden)]
pub mod simd;
pub mod simhash;
mod similarity;
mod sketcher;
#[cfg(test)]
mod test_texts;
mod text_changes;
mod text_length;
mod token_buffer;
pub mod tokens;
pub mod weight;

pub use algorithms_digest::algorithms_digest;
pub use change_bits::BitsOf;
pub use feature_diff::{FeatureDiff, LocatedFeature, TopFeatures};
pub use feature_list::{Feature, FeatureList, features};
pub use feature_spans::CharSpan;
pub use hamming::hamming64;
pub use options::TextOptions;
pub use sentences::longest_sentences_hash;
pub use simhash::{simhash64_features, simhash64_hashes, simhash128_features};
pub use sketcher::Sketcher;
pub use text_changes::{Passage, TextChange, TextChanges};
pub use text_length::text_length;
pub use weight::WeightError;

/// Runs the examples of the crate's README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
