//! Shared keys: 64-bit keys that near-duplicates have in common, for joins by equality in engines
//! without this index. A fingerprint is cut into blocks (groups of bits), and has one key for each
//! permutation of its blocks. A MinHash signature has one key for each band (group of positions).
//! The SQL functions `neardup_keys` and `minhash_keys` return the keys.
//!
//! The principle is that of the index's permutations ([`crate::block_layout`], [`crate::bands`]): a
//! value has one key for each choice of blocks or for each band, so that two values within the
//! radius have at least one key in common. Keys are stored on many machines. So they depend only on
//! the value and the parameters, not on the number of rows, and must never change: the golden
//! vectors in `tests/golden_keys.tsv` check that. A key contains the number of its permutation or
//! band, so keys of two permutations are never equal. It also contains the parameters, so that keys
//! made with other parameters cause an error instead of silently missing pairs. Numbers of bits in
//! a key:
//!
//! ```text
//! fingerprints: | permutation 6 | width 2 | radius 5 | blocks - 1: 6 | hash 45 |
//! signatures:   | band 8 | bands - 1: 8 | hash 48 |
//! ```

use crate::bands::{Bands, BandsError};
use crate::block_layout::{BlockLayout, BlockLayoutError};
use crate::key::{Key, difference, mix};

/// The default number of blocks is chosen so that each key is made from at least this number of
/// fingerprint bits. With 16 bits, about one in 65,536 unrelated values has the same key as a given
/// value. For large radii, no number of blocks reaches this minimum.
pub const DEFAULT_BITS: u32 = 16;

/// Maximum number of blocks, because a shared key has 6 bits for the number of blocks.
pub const MAX_BLOCKS: u32 = 64;

/// Error of a comparison: the shared key was made with other parameters (such as radius or number
/// of blocks) than the comparison uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignKey;

/// Makes and compares the shared keys of fingerprints of `64 * N` bits. `N` is 1, 2 or 4.
///
/// ```
/// use neardup_blocktree::shared_keys::BlockKeys;
///
/// let keys = BlockKeys::<1>::new(3, None)?;
/// let (a, b) = ([0x0123_4567_89ab_cdef], [0x0123_4567_89ab_cdef ^ 1 << 60 ^ 1 << 30 ^ 1]);
/// let shared: Vec<i64> = keys.keys(&a).filter(|key| keys.keys(&b).any(|k| k == *key)).collect();
/// assert!(!shared.is_empty());
///
/// // Only the first of the shared keys reports the pair.
/// let meets = |key: &i64| keys.is_first_shared(*key, &a, &b) == Ok(true);
/// assert_eq!(keys.keys(&a).filter(meets).count(), 1);
/// # Ok::<(), neardup_blocktree::block_layout::BlockLayoutError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockKeys<const N: usize> {
    radius: u32,
    blocks: u32,
    /// For each permutation, the mask of the fingerprint's bits from which the key is made.
    masks: Vec<Key<N>>,
    /// Width, radius and number of blocks, at their bit positions in a key.
    parameters: u64,
}

impl<const N: usize> BlockKeys<N> {
    /// Size in bits of the hash in a key. The hash is computed from fingerprint bits, and is in the
    /// lowest bits of the key.
    const HASH_BITS: u32 = 45;
    /// Bit position of the permutation's number in a key: the number of bits below it.
    const PERMUTATION_SHIFT: u32 = 58;
    /// Mask of the bits of a key that contain the width, the radius and the number of blocks. So
    /// keys with different parameters are never equal.
    const PARAMETERS: u64 = (1 << Self::PERMUTATION_SHIFT) - (1 << Self::HASH_BITS);

    /// Creates the parameters for the keys of fingerprints. Two fingerprints within `radius` bits
    /// share at least one key. `blocks` is the number of blocks, or `None` for
    /// [`BlockKeys::default_blocks`].
    ///
    /// # Errors
    /// [`BlockLayoutError`] if the radius or the number of blocks is out of range.
    pub fn new(radius: u32, blocks: Option<u32>) -> Result<Self, BlockLayoutError> {
        let blocks = blocks.unwrap_or_else(|| Self::default_blocks(radius));
        if blocks > MAX_BLOCKS {
            return Err(BlockLayoutError::BlocksOutOfRange);
        }
        let layout = BlockLayout::<N>::new(radius, blocks)?;
        let masks = (layout.permutations().iter().enumerate())
            .map(|(i, permutation)| permutation.leading_mask(layout.leading_bits(i)))
            .collect();
        let parameters =
            u64::from(N.ilog2()) << 11 | u64::from(radius) << 6 | u64::from(blocks - 1);
        Ok(BlockKeys {
            radius,
            blocks,
            masks,
            parameters: parameters << Self::HASH_BITS,
        })
    }

    /// Returns the default number of blocks for a radius in bits: the lowest number with which each
    /// key contains at least [`DEFAULT_BITS`] bits of the fingerprint. If no number of blocks is
    /// sufficient, returns the one with which keys contain the most bits. The result depends only
    /// on the width and the radius. With fewer blocks, a value has fewer keys to store and to look
    /// up. With more blocks, fewer unrelated values share a key.
    pub fn default_blocks(radius: u32) -> u32 {
        let layouts = (radius + 1..=MAX_BLOCKS)
            .map_while(|blocks| BlockLayout::<N>::new(radius, blocks).ok())
            .map(|layout| {
                let bits = layout.fewest_leading_bits();
                (layout.blocks().len() as u32, bits.min(DEFAULT_BITS))
            });
        layouts
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
            .map_or(radius + 1, |(blocks, _)| blocks)
    }

    /// Returns the guaranteed radius: two fingerprints whose distance is at most this number of
    /// bits share a key.
    pub fn radius(&self) -> u32 {
        self.radius
    }

    /// Returns the number of blocks of a fingerprint.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Returns the number of keys of each fingerprint.
    pub fn count(&self) -> usize {
        self.masks.len()
    }

    /// Returns the keys of a fingerprint, in the order of permutations. No two of them are equal.
    pub fn keys(&self, fingerprint: &Key<N>) -> impl Iterator<Item = i64> {
        (0..self.count()).map(|permutation| self.key(permutation, fingerprint))
    }

    #[inline]
    fn key(&self, permutation: usize, fingerprint: &Key<N>) -> i64 {
        let words = fingerprint.iter().zip(&self.masks[permutation]);
        let hash = words.fold(0, |hash, (word, mask)| mix(hash ^ (word & mask)));
        let hash = hash >> (64 - Self::HASH_BITS);
        ((permutation as u64) << Self::PERMUTATION_SHIFT | self.parameters | hash) as i64
    }

    /// Returns whether a join by keys must report the pair of `a` and `b` at the key `key`. Two
    /// fingerprints may share several keys, but the join must report them once. So the result is
    /// true only for their first shared key: the key of the first permutation whose leading bits
    /// are equal in both. The result is false for all keys if the distance of the fingerprints
    /// exceeds the radius.
    ///
    /// # Errors
    /// [`ForeignKey`] if `a` and `b` are within the radius and `key` was made with other
    /// parameters.
    #[inline]
    pub fn is_first_shared(&self, key: i64, a: &Key<N>, b: &Key<N>) -> Result<bool, ForeignKey> {
        let (difference, distance) = difference(a, b, 0);
        if distance > self.radius {
            return Ok(false);
        }
        let permutation = (key as u64 >> Self::PERMUTATION_SHIFT) as usize;
        if key as u64 & Self::PARAMETERS != self.parameters || permutation >= self.count() {
            return Err(ForeignKey);
        }
        let is_shared =
            |mask: &Key<N>| (difference.iter().zip(mask)).all(|(word, mask)| word & mask == 0);
        let first = self.masks.iter().position(is_shared);
        Ok(first == Some(permutation) && self.key(permutation, a) == key)
    }
}

/// Makes and compares the shared keys of MinHash signatures. A band has some positions of a
/// signature.
///
/// A mismatch is a position at which two signatures have different values. A position is in one
/// band, so a mismatch changes at most one key. So two signatures with at most `m` mismatches share
/// at least `b - m` of their `b` keys, where `b` is the number of bands. With the default number of
/// bands for 128 values and similarity 0.8, that is 5 of 30 keys. A join that counts the shared
/// keys of a pair can reject pairs with fewer shared keys before it reads the signatures.
///
/// ```
/// use neardup_blocktree::shared_keys::BandKeys;
///
/// // Signatures of 128 values that differ in at most 25 of them.
/// let keys = BandKeys::new(128, 25, None)?;
/// let a: Vec<u32> = (0..128).collect();
/// let mut b = a.clone();
/// b[..25].iter_mut().for_each(|value| *value += 1_000);
/// let kind = 7;
/// let shared = |key: &i64| keys.keys(&b, kind).any(|k| k == *key);
/// assert!(keys.keys(&a, kind).any(|key| shared(&key)));
/// # Ok::<(), neardup_blocktree::bands::BandsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BandKeys {
    bands: Bands,
    mismatches: usize,
    /// Number of bands minus 1, at its bit position in a key.
    parameters: u64,
}

impl BandKeys {
    /// Size in bits of the hash in a key. The hash is computed from the values of a band, and is in
    /// the lowest bits of the key.
    pub(crate) const HASH_BITS: u32 = 48;
    /// Bit position of the band's number in a key: the number of bits below it.
    pub(crate) const BAND_SHIFT: u32 = 56;
    /// Mask of the number of bands in a key.
    const PARAMETERS: u64 = (1 << Self::BAND_SHIFT) - (1 << Self::HASH_BITS);

    /// Creates the parameters for the keys of signatures of `hashes` values. Two signatures with at
    /// most `mismatches` different values share at least one key. `bands` is the number of bands,
    /// or `None` for [`Bands::default_count`].
    ///
    /// # Errors
    /// [`BandsError::BandsOutOfRange`] unless there are more bands than mismatches. [`BandsError`]
    /// also if [`Bands::new`] rejects the number of bands.
    pub fn new(hashes: usize, mismatches: usize, bands: Option<usize>) -> Result<Self, BandsError> {
        let count = bands.unwrap_or_else(|| Bands::default_count(hashes, mismatches));
        if count <= mismatches {
            return Err(BandsError::BandsOutOfRange);
        }
        Ok(BandKeys {
            bands: Bands::new(hashes, count, 0)?,
            mismatches,
            parameters: (count as u64 - 1) << Self::HASH_BITS,
        })
    }

    /// Returns the greatest number of mismatches (different values) at which two signatures are
    /// guaranteed to share a key.
    pub fn mismatches(&self) -> usize {
        self.mismatches
    }

    /// Returns the number of keys of each signature.
    pub fn count(&self) -> usize {
        self.bands.count()
    }

    /// Returns the keys of a signature, in the order of bands. No two of them are equal. `kind`
    /// identifies the options with which the signature was made. Signatures of different kinds
    /// cannot be compared, and share no key except by a collision of hashes.
    pub fn keys(&self, signature: &[u32], kind: u64) -> impl Iterator<Item = i64> {
        (0..self.count()).map(move |band| self.key(band, signature, kind))
    }

    #[inline]
    fn key(&self, band: usize, signature: &[u32], kind: u64) -> i64 {
        let hash = self.bands.wide_hash(band, signature, kind) >> (64 - Self::HASH_BITS);
        ((band as u64) << Self::BAND_SHIFT | self.parameters | hash) as i64
    }

    /// Returns whether a join by keys must report the pair of `a` and `b` at the key `key`. Both
    /// signatures have the kind `kind`. They may share several keys, but the join must report them
    /// once. So the result is true only for their first shared key: the key of the first band in
    /// which all values of `a` and `b` are equal.
    ///
    /// Unlike [`BlockKeys::is_first_shared`], this function does not check the distance. The caller
    /// must reject pairs with more than [`BandKeys::mismatches()`] mismatches.
    ///
    /// # Errors
    /// [`ForeignKey`] if `key` was made with other parameters.
    pub fn is_first_shared(
        &self,
        key: i64,
        a: &[u32],
        b: &[u32],
        kind: u64,
    ) -> Result<bool, ForeignKey> {
        let band = (key as u64 >> Self::BAND_SHIFT) as usize;
        if key as u64 & Self::PARAMETERS != self.parameters || band >= self.count() {
            return Err(ForeignKey);
        }
        let is_shared = |&band: &usize| self.bands.values(band, a) == self.bands.values(band, b);
        let first = (0..=band).find(is_shared);
        Ok(first == Some(band) && self.key(band, a, kind) == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Asserts that [`BlockKeys::is_first_shared`] is true for exactly one key if two fingerprints
    /// are within the radius, and for no key otherwise.
    fn meet_once<const N: usize>(
        keys: &BlockKeys<N>,
        a: Key<N>,
        b: Key<N>,
    ) -> Result<(), TestCaseError> {
        let (of_a, of_b): (Vec<i64>, Vec<i64>) = (keys.keys(&a).collect(), keys.keys(&b).collect());
        let shared: Vec<i64> = (of_a.iter().copied())
            .filter(|key| of_b.contains(key))
            .collect();
        let near = difference(&a, &b, 0).1 <= keys.radius();
        prop_assert!(!near || !shared.is_empty());
        for key in of_a.iter().chain(&of_b) {
            let expected = near && shared.first() == Some(key);
            prop_assert_eq!(keys.is_first_shared(*key, &a, &b), Ok(expected));
            prop_assert_eq!(keys.is_first_shared(*key, &b, &a), Ok(expected));
        }
        let mut distinct = of_a.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), of_a.len());
        Ok(())
    }

    /// Calls [`meet_once`] for a fingerprint and the same fingerprint with the bits `flips`
    /// flipped. `more` is the number of blocks beyond `radius + 1`, or `None` for the default.
    fn any_keys_meet_once<const N: usize>(
        a: Key<N>,
        flips: &[usize],
        radius: u32,
        more: Option<u32>,
    ) -> Result<(), TestCaseError> {
        let blocks = more.map(|more| radius + 1 + more);
        let Ok(keys) = BlockKeys::<N>::new(radius, blocks) else {
            return Ok(());
        };
        let mut b = a;
        for flip in flips {
            b[flip / 64 % N] ^= 1 << (flip % 64);
        }
        meet_once(&keys, a, b)
    }

    /// Generates two signatures, a number of mismatches, and a number of bands.
    fn signatures() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, usize, Option<usize>)> {
        (16_usize..300).prop_flat_map(|hashes| {
            let values = prop::collection::vec(any::<u32>(), hashes..=hashes);
            let changes = prop::collection::vec((0..hashes, any::<u32>()), 0..hashes);
            let bands = prop::option::of(1..=hashes.min(256));
            (values, changes, 0..hashes, bands).prop_map(|(a, changes, mismatches, bands)| {
                let mut b = a.clone();
                changes.into_iter().for_each(|(at, value)| b[at] = value);
                (a, b, mismatches, bands)
            })
        })
    }

    proptest! {
        #[test]
        fn near_fingerprints_share_a_key_and_meet_once(
            a: [u64; 4], flips in prop::collection::vec(0..256_usize, 0..36), radius in 0..32_u32,
            more in prop::option::of(0..6_u32),
        ) {
            // Flips fewer bits of narrow fingerprints, so that half of the pairs are within the
            // radius.
            let flips = |words: usize| &flips[..flips.len() * words / 4];
            any_keys_meet_once::<1>([a[0]], flips(1), radius % 9, more)?;
            any_keys_meet_once::<2>([a[0], a[1]], flips(2), radius % 17, more)?;
            any_keys_meet_once::<4>(a, flips(4), radius, more)?;
        }

        #[test]
        fn near_signatures_share_a_key_and_meet_once((a, b, mismatches, count) in signatures()) {
            let Ok(keys) = BandKeys::new(a.len(), mismatches, count) else {
                prop_assert!(count.is_none_or(|count| count <= mismatches) );
                return Ok(());
            };
            let of = |signature: &[u32]| keys.keys(signature, 5).collect::<Vec<i64>>();
            let (of_a, of_b) = (of(&a), of(&b));
            let shared: Vec<i64> =
                of_a.iter().copied().filter(|key| of_b.contains(key)).collect();
            let differing = a.iter().zip(&b).filter(|(a, b)| a != b).count();
            // The bound by which the statements of docs/distributed.md reject pairs.
            prop_assert!(differing > mismatches || shared.len() >= keys.count() - mismatches);
            prop_assert!(keys.count() > mismatches);
            for key in of_a.iter().chain(&of_b) {
                let expected = shared.first() == Some(key);
                prop_assert_eq!(keys.is_first_shared(*key, &a, &b, 5), Ok(expected));
                prop_assert_eq!(keys.is_first_shared(*key, &b, &a, 5), Ok(expected));
            }
            // Signatures of different kinds share no key.
            prop_assert!(!keys.keys(&a, 6).any(|key| of_a.contains(&key)));
        }
    }

    #[test]
    fn keys_of_other_parameters_are_recognized() {
        fn recognized<const N: usize>() -> Vec<i64> {
            let all: Vec<BlockKeys<N>> = (0..32)
                .flat_map(|radius| (1..=64).map(move |blocks| (radius, blocks)))
                .filter_map(|(radius, blocks)| BlockKeys::new(radius, Some(blocks)).ok())
                .collect();
            assert!(all.len() > 100);
            let value = [7; N];
            for (i, a) in all.iter().enumerate() {
                let key = a.keys(&value).last().unwrap();
                for (j, b) in all.iter().enumerate() {
                    let expected = if i == j {
                        Ok(a.count() == 1)
                    } else {
                        Err(ForeignKey)
                    };
                    assert_eq!(b.is_first_shared(key, &value, &value), expected);
                }
            }
            let keys = all.iter().flat_map(|keys| keys.keys(&value));
            keys.collect()
        }
        let widths = [recognized::<1>(), recognized::<2>(), recognized::<4>()];
        let mut keys = widths.concat();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
        let (of, with) = (
            |bands| BandKeys::new(128, 25, Some(bands)).unwrap(),
            [3; 128],
        );
        let key = of(30).keys(&with, 1).next().unwrap();
        assert_eq!(
            of(31).is_first_shared(key, &with, &with, 1),
            Err(ForeignKey)
        );
        assert_eq!(of(30).is_first_shared(key, &with, &with, 1), Ok(true));
        assert_eq!(of(30).is_first_shared(key, &with, &with, 2), Ok(false));
    }

    #[test]
    fn default_blocks_follow_from_width_and_radius() {
        fn defaults<const N: usize>(most: u32) -> Vec<(u32, usize)> {
            (0..=most)
                .map(|radius| BlockKeys::<N>::new(radius, None).unwrap())
                .map(|keys| (keys.blocks(), keys.count()))
                .collect()
        }
        assert_eq!(
            defaults::<1>(8),
            [
                (1, 1),
                (2, 2),
                (3, 3),
                (4, 4),
                (6, 15),
                (7, 21),
                (8, 28),
                (9, 36),
                (10, 45)
            ]
        );
        assert_eq!(defaults::<2>(16)[6..8], [(7, 7), (8, 8)]);
        assert_eq!(defaults::<4>(31)[15], (16, 16));
        assert_eq!(defaults::<4>(31)[31], (32, 32));
        for keys in (0..=31).map(|radius| BlockKeys::<4>::new(radius, None).unwrap()) {
            assert!(keys.count() <= crate::block_layout::MAX_PERMUTATIONS);
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let of = |radius, blocks| BlockKeys::<1>::new(radius, Some(blocks)).map(|_| ());
        assert_eq!(of(3, 3), Err(BlockLayoutError::BlocksOutOfRange));
        assert_eq!(of(0, 65), Err(BlockLayoutError::BlocksOutOfRange));
        assert_eq!(of(3, 9), Err(BlockLayoutError::TooManyPermutations(84)));
        assert_eq!(of(9, 10), Err(BlockLayoutError::RadiusTooLarge(8)));
        let of = |mismatches, bands| BandKeys::new(128, mismatches, bands).map(|_| ());
        assert_eq!(of(25, Some(25)), Err(BandsError::BandsOutOfRange));
        assert_eq!(of(25, Some(26)), Ok(()));
        assert_eq!(of(25, Some(129)), Err(BandsError::TooManyRows));
        assert_eq!(of(128, None), Err(BandsError::BandsOutOfRange));
    }
}
