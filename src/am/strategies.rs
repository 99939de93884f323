//! Strategy numbers of the operator classes, and the conventional radius of `~=`.
use crate::types::distance::Threshold;
use crate::types::{Fingerprint64, Fingerprint128, Fingerprint256};

/// The highest strategy number.
pub const STRATEGIES: u16 = 5;
/// `fp <@ ball`.
pub const WITHIN: u16 = 1;
/// `a ~= b`: within [`near_radius`] or, for balls, within each other's.
pub const NEAR: u16 = 2;
/// `a = b`.
pub const EQUAL: u16 = 3;
/// `ORDER BY a <#> b`: the distance as an integer.
pub const DISTANCE: u16 = 4;
/// `a && b`: sets that have an element in common.
pub const OVERLAP: u16 = 5;

/// The conventional threshold of `~=` for fingerprints of `words` 64-bit words, in bits.
pub const fn near_radius(words: usize) -> u32 {
    match words {
        1 => Fingerprint64::NEAR_DUPLICATE,
        2 => Fingerprint128::NEAR_DUPLICATE,
        _ => Fingerprint256::NEAR_DUPLICATE,
    }
}
