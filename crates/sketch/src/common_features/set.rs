//! Set of common features, stored as hashes. A lookup first reads one bit of a filter, which
//! excludes most hashes that are not in the set. Then it searches the bucket of the sorted hashes
//! that start with the same bits.

use std::fmt;

use crate::memory::GrowVec;
use crate::options::{Accents, Digits, Normalize, TextOptions, Tokens};

/// First bytes of the stored form of a set: a name, and the format version.
const MAGIC: [u8; 4] = *b"ndF\x01";
/// Minimum number of bits in the filter for each hash of the set. At most one in sixteen hashes
/// that are not in the set passes the filter.
const FILTER_BITS: usize = 16;
/// Maximum size, in hashes, of a bucket that a lookup searches by comparing the hashes one by one.
/// In a larger bucket, the lookup uses binary search.
const SHORT: usize = 8;

/// Set of features by their hashes ([`crate::hash::feature_hash`]), prepared for many lookups.
///
/// The stored form is a header, which records how the features were made, and the hashes in
/// ascending order, 8 bytes each. All numbers are little-endian. In memory, each hash takes about
/// 20 bytes.
pub struct FeatureSet {
    /// Options with which the features were made.
    kind: FeatureKind,
    /// Hashes of the features, in ascending order.
    hashes: Vec<u64>,
    /// Filter: one bit for each value of the leading bits of a hash. The bit is 1 if the set has a
    /// hash with these leading bits. The vector holds 64 bits in each word.
    filter: Vec<u64>,
    /// Number of low bits of a hash that the filter ignores. The hash shifted right by this number
    /// is the index of its bit in the filter.
    filter_shift: u32,
    /// Index in `hashes` of the first hash of each bucket. A bucket contains the hashes with the
    /// same leading bits. The last element is the number of all hashes, where the last bucket ends.
    buckets: Vec<u32>,
    /// Number of low bits of a hash that do not choose its bucket. The hash shifted right by this
    /// number is the index of its bucket.
    bucket_shift: u32,
}

/// Text options that decide which features a text has. The other options, such as the weights, do
/// not affect a set.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct FeatureKind {
    tokens: Tokens,
    shingle: usize,
    normalize: Normalize,
    keywords: usize,
}

impl FeatureKind {
    /// Returns the options among `options` that decide which features a text has.
    pub fn from_options(options: &TextOptions) -> Self {
        // The option `html` only changes how a text is read. The option `weight` does not matter,
        // because the set has no weights.
        Self {
            tokens: options.tokens,
            shingle: options.shingle,
            normalize: options.normalize,
            keywords: options.keywords,
        }
    }

    /// Encodes the options as a number, for the stored form of a set.
    pub fn to_word(self) -> u64 {
        let accents = u8::from(self.normalize.accents == Accents::Remove);
        let digits = u8::from(self.normalize.digits == Digits::Zero);
        let [a, b, c, d] = (self.keywords as u32).to_le_bytes();
        u64::from_le_bytes([
            self.tokens.code(),
            self.shingle as u8,
            accents,
            digits,
            a,
            b,
            c,
            d,
        ])
    }

    /// Decodes the options from [`FeatureKind::to_word`]. Returns `None` if the number is invalid.
    pub fn from_word(word: u64) -> Option<Self> {
        let [code, shingle, accents, digits, a, b, c, d] = word.to_le_bytes();
        let accents = *[Accents::Keep, Accents::Remove].get(usize::from(accents))?;
        let digits = *[Digits::Keep, Digits::Zero].get(usize::from(digits))?;
        Some(Self {
            tokens: Tokens::from_code(code)?,
            shingle: usize::from(shingle),
            normalize: Normalize { accents, digits },
            keywords: u32::from_le_bytes([a, b, c, d]) as usize,
        })
    }

    /// Returns the stored form of a set of features made with these options. `hashes` are the
    /// hashes of the features, ascending and distinct.
    pub fn stored(self, hashes: impl Iterator<Item = u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.grow_by(&MAGIC);
        bytes.grow_by(&self.to_word().to_le_bytes());
        hashes.for_each(|hash| bytes.grow_by(&hash.to_le_bytes()));
        bytes
    }
}

/// Error of [`FeatureSet::from_stored`]: the bytes are not the stored form of a set of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFeatureSet;

impl fmt::Display for BadFeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the stored form of a set of features")
    }
}

impl std::error::Error for BadFeatureSet {}

impl FeatureSet {
    /// Returns the stored form of a set of features made with `options`. `hashes` are the hashes of
    /// the features, ascending and distinct.
    #[must_use]
    pub fn stored(options: &TextOptions, hashes: impl Iterator<Item = u64>) -> Vec<u8> {
        FeatureKind::from_options(options).stored(hashes)
    }

    /// Creates a set from its stored form, and prepares it for lookups.
    ///
    /// # Errors
    ///
    /// If `bytes` is not the stored form of a set.
    pub fn from_stored(bytes: &[u8]) -> Result<Self, BadFeatureSet> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(BadFeatureSet)?;
        let ([word, chunks @ ..], []) = rest.as_chunks::<8>() else {
            return Err(BadFeatureSet);
        };
        let kind = FeatureKind::from_word(u64::from_le_bytes(*word)).ok_or(BadFeatureSet)?;
        let mut hashes: Vec<u64> = Vec::new();
        hashes.grow_all(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)));
        if !hashes.is_sorted_by(|a, b| a < b) {
            return Err(BadFeatureSet);
        }
        Ok(Self::prepare(kind, hashes))
    }

    /// Creates a set with its filter and its buckets. `hashes` are ascending and distinct.
    fn prepare(kind: FeatureKind, hashes: Vec<u64>) -> Self {
        let bits = (FILTER_BITS * hashes.len()).next_power_of_two().max(64);
        let filter_shift = 64 - bits.ilog2();
        let mut filter = Vec::new();
        filter.grow_exact(bits / 64, 0_u64);
        for hash in &hashes {
            let bit = hash >> filter_shift;
            filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        let count = hashes.len().next_power_of_two().max(2);
        let bucket_shift = 64 - count.ilog2();
        let mut buckets = Vec::new();
        buckets.grow_exact(count + 1, 0_u32);
        for hash in &hashes {
            buckets[(hash >> bucket_shift) as usize + 1] += 1;
        }
        for bucket in 0..count {
            buckets[bucket + 1] += buckets[bucket];
        }
        Self {
            kind,
            hashes,
            filter,
            filter_shift,
            buckets,
            bucket_shift,
        }
    }

    /// Returns true if the features in the set were made with options that give a text the same
    /// features as `options`.
    #[must_use]
    pub fn fits(&self, options: &TextOptions) -> bool {
        self.kind == FeatureKind::from_options(options)
    }

    /// Returns the options with which the features in the set were made. Options that do not affect
    /// which features a text has are the defaults.
    #[must_use]
    pub fn options(&self) -> TextOptions {
        TextOptions {
            tokens: self.kind.tokens,
            shingle: self.kind.shingle,
            normalize: self.kind.normalize,
            keywords: self.kind.keywords,
            ..TextOptions::SET
        }
    }

    /// Returns the number of features in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns true if the set contains a feature with this hash.
    #[inline]
    #[must_use]
    pub fn contains(&self, hash: u64) -> bool {
        let bit = hash >> self.filter_shift;
        self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 1 && self.finds(hash)
    }

    /// Returns true if the set contains the hash `hash`. Searches the bucket of this hash, without
    /// the filter.
    #[inline]
    fn finds(&self, hash: u64) -> bool {
        let bucket = (hash >> self.bucket_shift) as usize;
        let [start, end] = [self.buckets[bucket], self.buckets[bucket + 1]];
        let hashes = &self.hashes[start as usize..end as usize];
        // An attacker can choose hashes that all have the same leading bits.
        if hashes.len() <= SHORT {
            hashes.contains(&hash)
        } else {
            hashes.binary_search(&hash).is_ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::NamedOption;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(hashes: &BTreeSet<u64>) -> FeatureSet {
        let stored = FeatureSet::stored(&TextOptions::SET, hashes.iter().copied());
        FeatureSet::from_stored(&stored).expect("its own form")
    }

    proptest! {
        #[test]
        fn has_what_it_was_made_of(
            hashes in prop::collection::btree_set(any::<u64>(), 0..300),
            others in prop::collection::vec(any::<u64>(), 300),
            alike in any::<bool>(),
        ) {
            let alike = |hash: &u64| if alike { hash >> 50 } else { *hash };
            let hashes: BTreeSet<u64> = hashes.iter().map(alike).collect();
            let set = set(&hashes);
            prop_assert_eq!(set.len(), hashes.len());
            let near = hashes.iter().flat_map(|hash| [*hash, hash ^ 1, hash.wrapping_add(2)]);
            for hash in near.chain(others.iter().map(alike)).chain([0, u64::MAX]) {
                prop_assert_eq!(set.contains(hash), hashes.contains(&hash));
            }
        }
    }

    #[test]
    fn stored_form_never_changes() {
        let options = TextOptions {
            tokens: Tokens::JiebaTfidf,
            shingle: 1,
            normalize: Normalize {
                accents: Accents::Remove,
                digits: Digits::Keep,
            },
            keywords: 50,
            html: true,
            ..TextOptions::SET
        };
        let stored = FeatureSet::stored(&options, [1, 0x0123_4567_89ab_cdef].into_iter());
        let expected = b"ndF\x01\x05\x01\x01\x00\x32\0\0\0\
            \x01\0\0\0\0\0\0\0\xef\xcd\xab\x89\x67\x45\x23\x01";
        assert_eq!(stored, expected);
        let set = FeatureSet::from_stored(&stored).unwrap();
        assert!(set.fits(&options) && !set.fits(&TextOptions::SET));
        for &(_, tokens) in Tokens::NAMES {
            let options = TextOptions {
                tokens,
                ..TextOptions::SET
            };
            let stored = FeatureSet::stored(&options, [].into_iter());
            assert!(FeatureSet::from_stored(&stored).unwrap().fits(&options));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = FeatureSet::stored(&TextOptions::SET, [3, 4].into_iter());
        let bad = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            assert_eq!(FeatureSet::from_stored(&bytes).err(), Some(BadFeatureSet));
        };
        bad(&|bytes| bytes.clear());
        bad(&|bytes| bytes[3] = 2);
        bad(&|bytes| bytes[4] = 6);
        bad(&|bytes| bytes[6] = 2);
        bad(&|bytes| bytes.truncate(27));
        bad(&|bytes| bytes.push(0));
        bad(&|bytes| bytes[12] = 4);
        bad(&|bytes| bytes[12] = 5);
    }
}
