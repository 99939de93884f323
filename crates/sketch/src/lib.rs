//! Text to features to fingerprints, and the distances between them.
//!
//! Nothing here knows PostgreSQL. The way of a text, with what [`options`] choose unless told
//! otherwise:
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
//! # Stability
//!
//! Fingerprints are stored, so equal input must give an equal fingerprint in every version, on
//! every platform and for every choice of CPU instructions. Everything that a fingerprint depends
//! on is therefore integer arithmetic, tables of this crate, or a dependency pinned to one exact
//! version; nothing depends on the locale or on the tables of the Rust standard library.
//! `tests/golden.rs` holds the values.
#![deny(unsafe_code)]

mod compare;
mod containment;
mod counts;
pub mod exact;
mod extract;
mod feature_list;
pub mod hamming;
pub mod hash;
pub mod html;
pub mod lexeme;
pub mod memory;
pub mod minhash;
pub mod normalize;
pub mod onebit;
pub mod options;
pub mod scheme;
pub mod sentences;
mod sha1;
pub mod shingle;
pub mod simhash;
mod sums;
mod text;
pub mod tokens;
pub mod weight;

pub use compare::{Comparison, Heaviest, jaccard_similarity};
pub use containment::containment;
pub use extract::{each_feature64, each_feature128};
pub use feature_list::{Feature, FeatureList, features};
pub use hamming::hamming64;
pub use onebit::{minhash64_text, minhash128_text};
pub use options::TextOptions;
pub use sentences::longest_sentences_hash;
pub use simhash::{
    simhash64_feature_slices, simhash64_features, simhash64_hashes, simhash128_features,
    simhash128_hashes,
};
pub use text::{simhash64_text, simhash128_text};
pub use weight::FeatureError;
