//! Simhash: fingerprints whose Hamming distance estimates the angle between weighted feature sets.
//!
//! A feature of weight w adds w to sum i if bit i of its hash is set, and subtracts w if it is not.
//! Bit i of the fingerprint is 1 if sum i over all features is above zero, and otherwise 0.
//! Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002; Manku, Jain,
//! Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007, section 2.
//!
//! Sums are exact for all weights (see [`crate::weight`]). So the order of the features does not
//! matter, and repeating a feature has the same effect as adding its weights.
//!
//! | module | content |
//! |---|---|
//! | `text` | simhash of a text: [`crate::Sketcher::simhash64`] |
//! | `accumulator` | sums of integer weights |
//! | `grouped` | sums of weights that follow from the number of occurrences |
//! | `popcount` | number of set bits per position, for fast sums |
//! | `features` | simhash of given features or hashes with floating-point weights |
//! | [`exact`] | exact sums of floating-point weights |
//! | [`lexeme`] | simhash of the lexemes of a `tsvector` |

mod accumulator;
pub mod exact;
mod features;
mod grouped;
pub mod lexeme;
mod popcount;
mod text;

pub(crate) use accumulator::Accumulator;
pub use features::{simhash64_features, simhash64_hashes, simhash128_features};
pub(crate) use grouped::GroupedAccumulator;
