//! Approximate shared keys: 64-bit keys for joins by equality in engines without this index. Two
//! near-duplicates have a key in common with a known probability. A value has one key for each
//! band. A band is a choice of some positions of a signature, or of some bits of a fingerprint, and
//! the key has a hash of their values. The positions or bits of a band are called its rows. The SQL
//! function `neardup_band_keys` returns the keys.
//!
//! [`crate::shared_keys`] guarantees a common key. At a low similarity this guarantee takes many
//! short keys, and many unrelated values share a short key. Here the caller chooses the number of
//! keys (bands) and the number of positions or bits in each key (rows). So keys can be as long as
//! the number of values demands (locality-sensitive hashing: Indyk and Motwani, 1998; Broder,
//! 1997).
//!
//! Band `i` does not depend on the number of bands, so the keys for a smaller number of bands are
//! the first keys for a greater number. Keys are stored on many machines, so they must never
//! change: the golden vectors in `tests/golden_band_keys.tsv` check that. Numbers of bits in a key:
//!
//! ```text
//! fingerprints: | band 6 | 3: 2 | width 2 | rows - 1: 8 | hash 46 |
//! signatures:   | band 8 | rows - 1: 8 | hash 48 |
//! ```
//!
//! No key of [`crate::shared_keys::BlockKeys`] has a 3 after the first 6 bits.

use std::fmt;

use crate::bands::{Bands, BandsError, MAX_BAND_WIDTH, MAX_BANDS};
use crate::key::{Key, mix};
use crate::shared_keys::BandKeys;

/// Maximum number of bands of a fingerprint. A key has 6 bits for the number of its band.
pub const MAX_FINGERPRINT_BANDS: usize = 64;

/// Reason why a number of bands, or of rows in each band, is rejected. Each variant has the largest
/// number that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandKeysError {
    /// The number of bands must be between 1 and this number.
    BandsOutOfRange(usize),
    /// The number of rows must be between 1 and this number.
    RowsOutOfRange(usize),
}

impl fmt::Display for BandKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BandsOutOfRange(most) => {
                write!(f, "The number of bands must be from 1 to {most}.")
            }
            Self::RowsOutOfRange(most) => {
                write!(f, "The number of rows must be from 1 to {most}.")
            }
        }
    }
}

/// Makes approximate keys of MinHash signatures: one key for each band of `rows` positions.
///
/// ```
/// use neardup_blocktree::approximate_keys::SignatureBandKeys;
///
/// // 16 keys of 8 positions each: 94.7 % of the pairs of similarity 0.8 share one.
/// let keys = SignatureBandKeys::new(128, 16, 8)?;
/// assert_eq!((keys.recall(0.8) * 1000.0).round(), 947.0);
/// let signature: Vec<u32> = (0..128).collect();
/// assert_eq!(keys.keys(&signature, 7).count(), 16);
/// # Ok::<(), neardup_blocktree::approximate_keys::BandKeysError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SignatureBandKeys {
    bands: Bands,
    /// Part that all keys have in common: the number of rows minus 1, at its bit position in a key.
    parameters: u64,
}

impl SignatureBandKeys {
    /// Prepares keys of signatures with `hashes` positions. There are `bands` bands of `rows`
    /// positions each. Band `i` begins at position `i * rows`, like the band of an index with the
    /// options `bands` and `rows`.
    ///
    /// # Errors
    /// [`BandKeysError`] if a number is 0, if there are more than [`MAX_BANDS`] bands or
    /// [`MAX_BAND_WIDTH`] rows, or if all bands together need more positions than there are.
    pub fn new(hashes: usize, bands: usize, rows: usize) -> Result<Self, BandKeysError> {
        let max_bands = MAX_BANDS.min(hashes);
        let bands_error = BandKeysError::BandsOutOfRange(max_bands);
        if !(1..=max_bands).contains(&bands) {
            return Err(bands_error);
        }
        let rows_error = BandKeysError::RowsOutOfRange(MAX_BAND_WIDTH.min(hashes / bands));
        if !(1..=MAX_BAND_WIDTH).contains(&rows) {
            return Err(rows_error);
        }
        let bands = Bands::new(hashes, bands, rows).map_err(|error| match error {
            BandsError::BandsOutOfRange => bands_error,
            BandsError::TooManyRows => rows_error,
        })?;
        Ok(SignatureBandKeys {
            bands,
            parameters: (rows as u64 - 1) << BandKeys::HASH_BITS,
        })
    }

    /// Returns the keys of a signature, in the order of bands. `kind` identifies the options that
    /// made the signature, as for [`BandKeys::keys`]. The hash in a key begins with the bits of
    /// [`Bands::hash`], by which an index finds signatures. So if two signatures share a key,
    /// searches of an index with the same bands compare them too.
    pub fn keys(&self, signature: &[u32], kind: u64) -> impl Iterator<Item = i64> {
        (0..self.bands.count()).map(move |band| {
            let hash = self.bands.wide_hash(band, signature, kind) >> (64 - BandKeys::HASH_BITS);
            ((band as u64) << BandKeys::BAND_SHIFT | self.parameters | hash) as i64
        })
    }

    /// Returns the share of the pairs of signatures with this Jaccard similarity `s` that share a
    /// key: `1 - (1 - s^rows)^bands`.
    pub fn recall(&self, similarity: f64) -> f64 {
        self.bands.recall(similarity)
    }
}

/// Makes approximate keys of fingerprints of `64 * N` bits: one key for each band of `rows` bits.
/// `N` is 1, 2 or 4.
///
/// Bands share no bits as long as the fingerprint has enough bits. The first bands are consecutive
/// bits, from the most significant bit on, like the blocks of an index. When fewer than `rows` bits
/// are left, all bits are shuffled, always in the same way, and the next bands are cut from this
/// new order.
///
/// ```
/// use neardup_blocktree::approximate_keys::FingerprintBandKeys;
///
/// // 24 keys of 20 bits each. 91 % of the pairs at distance 6 share a key.
/// let keys = FingerprintBandKeys::<1>::new(24, 20)?;
/// assert_eq!((keys.recall(6) * 100.0).round(), 91.0);
/// assert_eq!(keys.keys(&[0x0123_4567_89ab_cdef]).count(), 24);
/// # Ok::<(), neardup_blocktree::approximate_keys::BandKeysError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FingerprintBandKeys<const N: usize> {
    rows: usize,
    /// For each band, the mask of the fingerprint's bits from which the key is made.
    masks: Vec<Key<N>>,
    /// Part that all keys have in common: the number 3, the width of a fingerprint and the number
    /// of rows, at their bit positions in a key. The number 3 distinguishes these keys from the
    /// keys of [`crate::shared_keys::BlockKeys`].
    parameters: u64,
}

impl<const N: usize> FingerprintBandKeys<N> {
    /// Number of bits of a fingerprint.
    const WIDTH: usize = 64 * N;
    /// Number of bits of the hash, which are the lowest bits of a key.
    const HASH_BITS: u32 = 46;
    /// Bit position of the band's number in a key.
    const BAND_SHIFT: u32 = 58;

    /// Prepares keys of fingerprints. There are `bands` keys, each of `rows` bits of the
    /// fingerprint.
    ///
    /// # Errors
    /// [`BandKeysError`] if a number is 0, if there are more than [`MAX_FINGERPRINT_BANDS`] bands,
    /// or more rows than bits.
    pub fn new(bands: usize, rows: usize) -> Result<Self, BandKeysError> {
        if !(1..=MAX_FINGERPRINT_BANDS).contains(&bands) {
            return Err(BandKeysError::BandsOutOfRange(MAX_FINGERPRINT_BANDS));
        }
        if !(1..=Self::WIDTH).contains(&rows) {
            return Err(BandKeysError::RowsOutOfRange(Self::WIDTH));
        }
        let parameters = 0b11 << 10 | u64::from(N.ilog2()) << 8 | (rows as u64 - 1);
        Ok(FingerprintBandKeys {
            rows,
            masks: Self::masks(bands, rows),
            parameters: parameters << Self::HASH_BITS,
        })
    }

    /// Returns the mask of the fingerprint's bits in each band. Cuts a list of all bits into bands
    /// of `rows` bits, then shuffles the list and cuts it again, until there are enough bands.
    /// Bands from the same order of the list share no bits.
    fn masks(bands: usize, rows: usize) -> Vec<Key<N>> {
        let mut order: Vec<usize> = (0..Self::WIDTH).collect();
        let mut masks = Vec::new();
        let mut seed = 0;
        while masks.len() < bands {
            for bits in order.chunks_exact(rows).take(bands - masks.len()) {
                let mut mask = [0; N];
                for bit in bits {
                    mask[bit / 64] |= 1 << (63 - bit % 64);
                }
                masks.push(mask);
            }
            // Shuffle of Fisher and Yates. The remainder's bias is below 2^-56.
            for last in (1..Self::WIDTH).rev() {
                seed += 1;
                order.swap(last, (mix(seed) % (last as u64 + 1)) as usize);
            }
        }
        masks
    }

    /// Returns the keys of a fingerprint, in the order of bands. No two of them are equal.
    pub fn keys(&self, fingerprint: &Key<N>) -> impl Iterator<Item = i64> {
        self.masks.iter().zip(0_u64..).map(move |(mask, band)| {
            let words = fingerprint.iter().zip(mask);
            let hash = words.fold(0, |hash, (word, mask)| mix(hash ^ (word & mask)));
            let hash = hash >> (64 - Self::HASH_BITS);
            (band << Self::BAND_SHIFT | self.parameters | hash) as i64
        })
    }

    /// Returns the expected share of the pairs at the distance `distance` (`d`) that share a key:
    /// `1 - (1 - p)^bands`, where `p = C(width - rows, d) / C(width, d)` is the probability that a
    /// band contains none of the differing bits. The formula treats the bands as independent. If no
    /// two bands have a bit in common, the true share is higher: a differing bit is then in one
    /// band only, and spares the others.
    pub fn recall(&self, distance: usize) -> f64 {
        let missed = (0..self.rows).map(|bit| {
            let remaining = (Self::WIDTH - bit) as f64;
            (remaining - distance as f64).max(0.0) / remaining
        });
        1.0 - (1.0 - missed.product::<f64>()).powi(self.masks.len() as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_layout::BlockLayout;
    use crate::key::difference;
    use proptest::prelude::*;

    /// Returns the number of indexes at which `a` and `b` have equal keys.
    fn shared(a: impl Iterator<Item = i64>, b: impl Iterator<Item = i64>) -> usize {
        a.zip(b).filter(|(a, b)| a == b).count()
    }

    /// Returns a generator of pseudorandom words. `state` is its seed.
    fn words(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        }
    }

    /// Generates two signatures with some equal positions, and numbers of bands and rows.
    fn signatures() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, usize, usize)> {
        (16_usize..300).prop_flat_map(|hashes| {
            let values = prop::collection::vec(any::<u32>(), hashes..=hashes);
            let changes = prop::collection::vec((0..hashes, any::<u32>()), 0..hashes / 2);
            (values, changes, 1..=hashes.min(MAX_BANDS), 1..=12_usize).prop_map(
                |(a, changes, bands, rows)| {
                    let mut b = a.clone();
                    changes.into_iter().for_each(|(at, value)| b[at] = value);
                    (a, b, bands, rows)
                },
            )
        })
    }

    proptest! {
        /// Each key has the band's number and the first bits of the band's hash in an index with
        /// the same options `bands` and `rows`. Two keys are equal if and only if the band has the
        /// same values.
        #[test]
        fn keys_of_signatures_are_the_bands_of_the_index((a, b, bands, rows) in signatures()) {
            let keys = SignatureBandKeys::new(a.len(), bands, rows);
            let Ok(index) = Bands::new(a.len(), bands, rows) else {
                prop_assert_eq!(
                    keys.map(|_| ()), Err(BandKeysError::RowsOutOfRange(a.len() / bands))
                );
                return Ok(());
            };
            let keys = keys.unwrap();
            for (band, (of_a, of_b)) in keys.keys(&a, 7).zip(keys.keys(&b, 7)).enumerate() {
                let bucket = index.hash(band, &a, 7);
                let hash = (of_a as u64) << (64 - BandKeys::HASH_BITS);
                prop_assert_eq!(hash >> 40, bucket >> 40);
                prop_assert_eq!(of_a as u64 >> BandKeys::BAND_SHIFT, band as u64);
                prop_assert_eq!(of_a == of_b, index.values(band, &a) == index.values(band, &b));
            }
            // The keys for fewer bands are the first of these keys.
            let fewer = SignatureBandKeys::new(a.len(), bands.div_ceil(2), rows).unwrap();
            prop_assert_eq!(shared(fewer.keys(&a, 7), keys.keys(&a, 7)), bands.div_ceil(2));
        }

        /// Two fingerprints share the key of a band if and only if the bits of the band are equal.
        #[test]
        fn keys_of_fingerprints_compare_the_bits_of_a_band(
            a: [u64; 4], flips in prop::collection::vec(0..256_usize, 0..24), bands in 1..=64_usize,
            rows in 1..=256_usize,
        ) {
            let keys = FingerprintBandKeys::<4>::new(bands, rows).unwrap();
            let mut b = a;
            flips.iter().for_each(|flip| b[flip / 64] ^= 1 << (flip % 64));
            let differing = difference(&a, &b, 0).0;
            for ((of_a, of_b), mask) in keys.keys(&a).zip(keys.keys(&b)).zip(&keys.masks) {
                let ones: u32 = mask.iter().map(|word| word.count_ones()).sum();
                prop_assert_eq!(ones as usize, rows);
                let are_equal = mask.iter().zip(&differing).all(|(mask, word)| mask & word == 0);
                prop_assert_eq!(of_a == of_b, are_equal);
            }
            let fewer = FingerprintBandKeys::<4>::new(bands.div_ceil(2), rows).unwrap();
            prop_assert_eq!(shared(fewer.keys(&a), keys.keys(&a)), bands.div_ceil(2));
        }
    }

    /// Returns two sorted lists of masks: the bits of each of `bands` bands, and the bits of each
    /// block of an index that cuts fingerprints into as many blocks. The index has one permutation
    /// (ordered copy of all keys) for each block, because its radius is the number of blocks minus
    /// 1. The block is at the front of the keys.
    fn bands_and_blocks<const N: usize>(bands: u32) -> [Vec<Key<N>>; 2] {
        let layout = BlockLayout::<N>::new(bands - 1, bands).unwrap();
        let mut blocks: Vec<Key<N>> = (layout.permutations().iter().enumerate())
            .map(|(i, permutation)| permutation.leading_mask(layout.leading_bits(i)))
            .collect();
        let rows = 64 * N / bands as usize;
        let mut masks = FingerprintBandKeys::<N>::new(bands as usize, rows)
            .unwrap()
            .masks;
        blocks.sort_unstable();
        masks.sort_unstable();
        [masks, blocks]
    }

    #[test]
    fn bands_of_fingerprints_are_the_blocks_of_the_index() {
        for bands in [2, 4, 8] {
            let [masks, blocks] = bands_and_blocks::<1>(bands);
            assert_eq!(masks, blocks);
            let [masks, blocks] = bands_and_blocks::<2>(2 * bands);
            assert_eq!(masks, blocks);
            let [masks, blocks] = bands_and_blocks::<4>(4 * bands);
            assert_eq!(masks, blocks);
        }
    }

    /// [`SignatureBandKeys::recall`] is about the share of random pairs of signatures that share a
    /// key.
    #[test]
    fn recall_of_signatures_is_seen() {
        let mut next = words(11);
        for (hashes, bands, rows, similarity) in [
            (128, 20, 6, 0.8),
            (128, 16, 8, 0.8),
            (128, 12, 10, 0.9),
            (256, 25, 10, 0.7),
        ] {
            let keys = SignatureBandKeys::new(hashes, bands, rows).unwrap();
            let mut found = 0;
            for _ in 0..4000 {
                let a: Vec<u32> = (0..hashes).map(|_| next() as u32).collect();
                let is_kept = |next: u64| (next >> 11) as f64 / (1_u64 << 53) as f64 <= similarity;
                let b: Vec<u32> = (a.iter())
                    .map(|&value| if is_kept(next()) { value } else { value ^ 1 })
                    .collect();
                found += usize::from(shared(keys.keys(&a, 7), keys.keys(&b, 7)) > 0);
            }
            let (share, recall) = (found as f64 / 4000.0, keys.recall(similarity));
            assert!(
                (share - recall).abs() < 0.025,
                "{bands} {rows}: {share} {recall}"
            );
        }
    }

    /// Returns the share of random pairs at a distance that share a key, and the stated recall.
    fn recall_of_fingerprints<const N: usize>(
        bands: usize,
        rows: usize,
        distance: u32,
    ) -> (f64, f64) {
        let mut next = words(13);
        let keys = FingerprintBandKeys::<N>::new(bands, rows).unwrap();
        let mut found = 0;
        for _ in 0..4000 {
            let a: Key<N> = std::array::from_fn(|_| next());
            let mut b = a;
            while difference(&a, &b, 0).1 < distance {
                let bit = next() as usize % (64 * N);
                b[bit / 64] |= 1 << (bit % 64) & !a[bit / 64];
                b[bit / 64] &= !(1 << (bit % 64) & a[bit / 64]);
            }
            found += usize::from(shared(keys.keys(&a), keys.keys(&b)) > 0);
        }
        (found as f64 / 4000.0, keys.recall(distance as usize))
    }

    #[test]
    fn recall_of_fingerprints_is_seen() {
        // Bands that have bits in common.
        for (share, recall) in [
            recall_of_fingerprints::<1>(24, 20, 6),
            recall_of_fingerprints::<1>(64, 24, 6),
            recall_of_fingerprints::<2>(40, 30, 12),
            recall_of_fingerprints::<4>(64, 40, 25),
        ] {
            assert!((share - recall).abs() < 0.04, "{share} {recall}");
        }
        // Bands without common bits find more than stated.
        for (share, recall) in [
            recall_of_fingerprints::<1>(4, 16, 6),
            recall_of_fingerprints::<1>(8, 8, 8),
            recall_of_fingerprints::<4>(8, 32, 12),
        ] {
            assert!((-0.02..0.1).contains(&(share - recall)), "{share} {recall}");
        }
        // With more bands than differing bits, a pair cannot miss.
        assert_eq!(recall_of_fingerprints::<1>(8, 8, 7).0, 1.0);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        let signature = |bands, rows| SignatureBandKeys::new(128, bands, rows).map(|_| ());
        assert_eq!(signature(0, 8), Err(BandKeysError::BandsOutOfRange(128)));
        assert_eq!(signature(129, 1), Err(BandKeysError::BandsOutOfRange(128)));
        assert_eq!(signature(1, 0), Err(BandKeysError::RowsOutOfRange(64)));
        assert_eq!(signature(1, 65), Err(BandKeysError::RowsOutOfRange(64)));
        assert_eq!(signature(17, 8), Err(BandKeysError::RowsOutOfRange(7)));
        assert_eq!(signature(16, 8), Ok(()));
        let fingerprint = |bands, rows| FingerprintBandKeys::<1>::new(bands, rows).map(|_| ());
        assert_eq!(fingerprint(0, 8), Err(BandKeysError::BandsOutOfRange(64)));
        assert_eq!(fingerprint(65, 8), Err(BandKeysError::BandsOutOfRange(64)));
        assert_eq!(fingerprint(1, 0), Err(BandKeysError::RowsOutOfRange(64)));
        assert_eq!(fingerprint(1, 65), Err(BandKeysError::RowsOutOfRange(64)));
        assert_eq!(fingerprint(64, 64), Ok(()));
    }
}
