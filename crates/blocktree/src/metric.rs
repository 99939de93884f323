//! Metric of an index or a column: the kind of its values and of their distance. The values are
//! fingerprints (bit strings), MinHash signatures or arrays. By convention, two fingerprints or
//! signatures are near-duplicates up to a certain distance.

use crate::key::{BAND_KEY_WORDS, SET_KEY_WORDS};

/// Metric of an index or a column.
///
/// `S` is the type of the additional information about signatures. It is `()` for the metric of a
/// column, the number of hashes for a meta page, and the bands for an open index
/// ([`crate::index_metric::IndexMetric`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric<S = ()> {
    /// Hamming distance of fingerprints. Each permutation stores the fingerprint with its bits in
    /// another order ([`crate::block_layout`]).
    Hamming {
        /// Width of a fingerprint in bits.
        bits: u32,
    },
    /// Estimated Jaccard distance of MinHash signatures: the share of positions in which they
    /// differ. Each permutation stores the keys of one band ([`crate::bands`]).
    Jaccard(S),
    /// Overlap of arrays of `bigint`: searches find arrays that share an element with the query.
    /// Arrays have no distance ([`crate::sets`]).
    Overlap,
}

/// Number of positions of a signature for each position that may differ: near-duplicate signatures
/// differ in at most one position in five.
const POSITIONS_PER_MISMATCH: usize = 5;

/// Largest estimated Jaccard distance of near-duplicate signatures by convention.
pub const NEAR_DUPLICATE_RADIUS: f64 = 1.0 / POSITIONS_PER_MISMATCH as f64;

/// Smallest estimated Jaccard similarity of near-duplicate signatures by convention.
pub const NEAR_DUPLICATE_SIMILARITY: f64 = 1.0 - NEAR_DUPLICATE_RADIUS;

/// Returns the largest Hamming distance of near-duplicate fingerprints by convention, in bits.
/// `bits` is the width of the fingerprints.
///
/// The bound depends on the width only. For `minhash64` and `minhash128`, similarity 0.8
/// corresponds to 6 of 64 bits and 12 of 128 bits. 31 of 256 bits is the radius recommended for PDQ
/// image hashes (Facebook, "The TMK+PDQF video-hashing algorithm and the PDQ image-hashing
/// algorithm", 2019).
pub const fn near_duplicate_bits(bits: u32) -> u32 {
    match bits {
        64 => 6,
        128 => 12,
        256 => 31,
        _ => panic!("no fingerprint has this width"),
    }
}

/// Returns the largest number of positions in which two near-duplicate signatures differ, by
/// convention. `hashes` is the number of positions of a signature.
pub const fn near_duplicate_mismatches(hashes: usize) -> usize {
    hashes / POSITIONS_PER_MISMATCH
}

/// Bound of the searches of an index that do not state one. By convention, two values within it are
/// near-duplicates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UsualBound {
    /// Maximum Hamming distance of fingerprints, in bits.
    Radius(u32),
    /// Minimum estimated Jaccard similarity of signatures, from 0 to 1.
    Similarity(f64),
}

impl<S> Metric<S> {
    /// Converts the information in [`Metric::Jaccard`] by calling `signatures` with it. Returns
    /// `None` if `signatures` returns `None`. The other metrics have no such information and stay
    /// the same.
    pub fn try_map<T>(self, signatures: impl FnOnce(S) -> Option<T>) -> Option<Metric<T>> {
        Some(match self {
            Metric::Hamming { bits } => Metric::Hamming { bits },
            Metric::Jaccard(known) => Metric::Jaccard(signatures(known)?),
            Metric::Overlap => Metric::Overlap,
        })
    }

    /// Returns the metric of a column's type, without information about signatures.
    pub const fn without_signatures(&self) -> Metric {
        match self {
            Metric::Hamming { bits } => Metric::Hamming { bits: *bits },
            Metric::Jaccard(_) => Metric::Jaccard(()),
            Metric::Overlap => Metric::Overlap,
        }
    }

    /// Returns the number of 64-bit words that the value takes in a key. The scope's word is not
    /// counted.
    pub fn words(&self) -> usize {
        match self {
            Metric::Hamming { bits } => bits.div_ceil(u64::BITS) as usize,
            Metric::Jaccard(_) => BAND_KEY_WORDS,
            Metric::Overlap => SET_KEY_WORDS,
        }
    }

    /// Returns whether values are fingerprints.
    pub fn is_hamming(&self) -> bool {
        matches!(self, Metric::Hamming { .. })
    }

    /// Returns whether values are signatures.
    pub fn is_jaccard(&self) -> bool {
        matches!(self, Metric::Jaccard(_))
    }

    /// Returns whether two values have a distance. Arrays only overlap or do not.
    pub fn has_distances(&self) -> bool {
        !matches!(self, Metric::Overlap)
    }
}

impl UsualBound {
    /// Returns the bound as a 64-bit word for the meta page.
    pub(crate) fn to_word(self) -> u64 {
        match self {
            UsualBound::Radius(radius) => radius.into(),
            UsualBound::Similarity(similarity) => similarity.to_bits(),
        }
    }
}

impl Metric<usize> {
    /// Returns the code of the metric on the meta page.
    pub(crate) fn code(self) -> u8 {
        match self {
            Metric::Hamming { .. } => 0,
            Metric::Jaccard(_) => 1,
            Metric::Overlap => 2,
        }
    }

    /// Returns the metric for a code and a value size ([`Metric::value_size`]) from the meta page.
    /// `None` for an unknown code.
    pub(crate) fn from_code(code: u8, size: u16) -> Option<Self> {
        match code {
            0 => Some(Metric::Hamming { bits: size.into() }),
            1 => Some(Metric::Jaccard(size.into())),
            2 => Some(Metric::Overlap),
            _ => None,
        }
    }

    /// Returns the bound that is stored as `word` on the meta page. The outer `None` means that the
    /// word is not a possible bound, so the page is damaged. The inner `None` means that the metric
    /// has no bounds (arrays).
    pub(crate) fn bound_from_word(self, word: u64) -> Option<Option<UsualBound>> {
        let bound = match self {
            Metric::Hamming { bits } => {
                let radius = u32::try_from(word).ok().filter(|radius| *radius <= bits)?;
                Some(UsualBound::Radius(radius))
            }
            Metric::Jaccard(_) => {
                let similarity = f64::from_bits(word);
                let is_possible = (0.0..=1.0).contains(&similarity);
                Some(is_possible.then_some(UsualBound::Similarity(similarity))?)
            }
            Metric::Overlap => None,
        };
        Some(bound)
    }

    /// Returns the size of a value as stored on the meta page: the number of bits of a fingerprint,
    /// the number of hashes of a signature, or the number of bits of an array's element (64).
    pub fn value_size(self) -> u32 {
        match self {
            Metric::Hamming { bits } => bits,
            Metric::Jaccard(hashes) => hashes as u32,
            Metric::Overlap => u64::BITS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_agree() {
        let shares = (NEAR_DUPLICATE_RADIUS, NEAR_DUPLICATE_SIMILARITY);
        assert_eq!(shares, (0.2, 0.8));
        for hashes in 1..=4096 {
            let share = (hashes as f64 * NEAR_DUPLICATE_RADIUS) as usize;
            assert_eq!(near_duplicate_mismatches(hashes), share);
        }
    }

    #[test]
    fn codes_are_read_back() {
        for metric in [
            Metric::Hamming { bits: 128 },
            Metric::Jaccard(512),
            Metric::Overlap,
        ] {
            let read = Metric::from_code(metric.code(), metric.value_size() as u16);
            assert_eq!(read, Some(metric));
        }
        assert_eq!(Metric::from_code(3, 64), None);
    }

    #[test]
    fn a_refused_number_of_hashes_is_no_metric() {
        let even = |hashes: usize| hashes.is_multiple_of(2).then_some(());
        assert_eq!(
            Metric::Jaccard(128).try_map(even),
            Some(Metric::Jaccard(()))
        );
        assert_eq!(Metric::Jaccard(19).try_map(even), None);
        assert_eq!(Metric::Overlap.try_map(even), Some(Metric::Overlap));
    }
}
