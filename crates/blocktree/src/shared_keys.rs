//! Keys of 64 bits that near-duplicates share, for engines that only join by equality.
//!
//! The principle is that of the index's permutations ([`crate::block_layout`], [`crate::bands`]):
//! one key for each choice of blocks or for each band, so that two values within the radius have at
//! least one in common. Keys are stored, on many machines, so they depend on the value and the
//! parameters alone, never on the number of rows, and the golden vectors in `tests/golden_keys.tsv`
//! hold them forever. The number of the permutation and the parameters stand inside the key: keys
//! of two permutations never meet, and keys of other parameters are recognized instead of silently
//! missing pairs.
//!
//! ```text
//! fingerprints: | permutation 6 | width 2 | radius 5 | blocks - 1: 6 | hash 45 |
//! signatures:   | band 8 | bands - 1: 8 | hash 48 |
//! ```

use crate::bands::{Bands, BandsError};
use crate::block_layout::{BlockLayout, BlockLayoutError};
use crate::key::{Key, difference, mix};

/// Leading bits that keys of the default number of blocks have at least, where there is such a
/// number: a key is then shared with one of 65,536 unrelated values.
pub const DEFAULT_BITS: u32 = 16;

/// The most blocks: a key has 6 bits for their number.
pub const MAX_BLOCKS: u32 = 64;

/// A key that was made with other parameters than those it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignKey;

/// The keys of fingerprints of `64 * N` bits, `N` being 1, 2 or 4.
///
/// ```
/// use neardup_blocktree::shared_keys::BlockKeys;
///
/// let keys = BlockKeys::<1>::new(3, None)?;
/// let (a, b) = ([0x0123_4567_89ab_cdef], [0x0123_4567_89ab_cdef ^ 1 << 60 ^ 1 << 30 ^ 1]);
/// let shared: Vec<i64> = keys.keys(&a).filter(|key| keys.keys(&b).any(|k| k == *key)).collect();
/// assert!(!shared.is_empty());
///
/// // The pair is reported by the first of them only.
/// let meets = |key: &i64| keys.meet(*key, &a, &b) == Ok(true);
/// assert_eq!(keys.keys(&a).filter(meets).count(), 1);
/// # Ok::<(), neardup_blocktree::block_layout::BlockLayoutError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockKeys<const N: usize> {
    radius: u32,
    blocks: u32,
    /// The bits of a fingerprint that each permutation's key is made of.
    masks: Vec<Key<N>>,
    /// Bit offsets of width, radius and blocks in a key.
    parameters: u64,
}

impl<const N: usize> BlockKeys<N> {
    const HASH_BITS: u32 = 45;
    const PERMUTATION_SHIFT: u32 = 58;
    const PARAMETERS: u64 = (1 << Self::PERMUTATION_SHIFT) - (1 << Self::HASH_BITS);

    /// The keys for a radius and a number of blocks, or the default one.
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

    /// The number of blocks unless one is given: the fewest whose keys have [`DEFAULT_BITS`] bits
    /// or more; if there are none, those with the most bits. It follows from the width and the
    /// radius alone. Fewer blocks make fewer keys to store and to look up, more blocks make keys
    /// that fewer unrelated values share.
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

    /// Maximum distance at which two values are guaranteed to share a key.
    pub fn radius(&self) -> u32 {
        self.radius
    }

    /// The number of blocks.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Number of the keys of each value.
    pub fn count(&self) -> usize {
        self.masks.len()
    }

    /// The keys of a fingerprint, the first permutation's first. No two are equal.
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

    /// Returns whether two fingerprints are within the radius and the key is that of the first
    /// permutation whose bits they share. Of all keys of either, this is true of exactly one.
    ///
    /// # Errors
    /// [`ForeignKey`] if they are within the radius and the key was made with other parameters.
    #[inline]
    pub fn meet(&self, key: i64, a: &Key<N>, b: &Key<N>) -> Result<bool, ForeignKey> {
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

/// The keys of signatures of a length.
///
/// ```
/// use neardup_blocktree::shared_keys::BandKeys;
///
/// // Signatures of 128 values that differ in 25 or fewer.
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
    /// Bit offset of the number of bands in a key.
    parameters: u64,
}

impl BandKeys {
    const HASH_BITS: u32 = 48;
    const BAND_SHIFT: u32 = 56;
    const PARAMETERS: u64 = (1 << Self::BAND_SHIFT) - (1 << Self::HASH_BITS);

    /// The keys of signatures of `hashes` values that differ in at most `mismatches`, with a number
    /// of bands or the default one, [`Bands::default_count`].
    ///
    /// # Errors
    /// [`BandsError::BandsOutOfRange`] unless there are more bands than mismatches.
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

    /// The most positions in which two signatures differ that are sure to share a key.
    pub fn mismatches(&self) -> usize {
        self.mismatches
    }

    /// Number of the keys of each signature.
    pub fn count(&self) -> usize {
        self.bands.count()
    }

    /// The keys of a signature of some kind, the first band's first. No two are equal. Signatures
    /// that cannot be compared are of different kinds.
    pub fn keys(&self, signature: &[u32], kind: u64) -> impl Iterator<Item = i64> {
        (0..self.count()).map(move |band| self.key(band, signature, kind))
    }

    #[inline]
    fn key(&self, band: usize, signature: &[u32], kind: u64) -> i64 {
        let hash = self.bands.wide_hash(band, signature, kind) >> (64 - Self::HASH_BITS);
        ((band as u64) << Self::BAND_SHIFT | self.parameters | hash) as i64
    }

    /// Returns whether the key is that of the first band whose values two signatures of one kind
    /// share. Of all keys of either, this is true of exactly one, if they share a band at all. The
    /// caller counts their mismatches.
    ///
    /// # Errors
    /// [`ForeignKey`] if the key was made with other parameters.
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

    /// Asserts that two values within the radius meet in exactly one key of each, and that others
    /// meet in none.
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
            prop_assert_eq!(keys.meet(*key, &a, &b), Ok(expected));
            prop_assert_eq!(keys.meet(*key, &b, &a), Ok(expected));
        }
        let mut distinct = of_a.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), of_a.len());
        Ok(())
    }

    /// Two values that differ in these bits, with keys of any radius and number of blocks.
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
            // Few flips for a small width, so that half of the pairs are within the radius.
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
            prop_assert!(differing > mismatches || !shared.is_empty());
            for key in of_a.iter().chain(&of_b) {
                let expected = shared.first() == Some(key);
                prop_assert_eq!(keys.is_first_shared(*key, &a, &b, 5), Ok(expected));
                prop_assert_eq!(keys.is_first_shared(*key, &b, &a, 5), Ok(expected));
            }
            // Those of another kind meet nowhere.
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
                    assert_eq!(b.meet(key, &value, &value), expected);
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
