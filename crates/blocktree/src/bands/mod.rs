//! Bands: keys of MinHash signatures, by which an index finds all signatures that have at most some
//! number of mismatches with a query. A mismatch is a position at which two signatures differ. A
//! band is a group of positions. The index has one permutation (ordered copy of all rows) for each
//! band. A key in it has a hash of the signature's values in the band, and a sketch: bits of the
//! whole signature, which give a lower bound of the mismatches. If the index has scopes (groups of
//! rows that are searched separately), each key begins with the scope's word.
//!
//! The positions of a signature are cut into bands. If two signatures have fewer mismatches than
//! there are bands, they agree in all positions of at least one band (the pigeonhole principle, as
//! for the blocks of fingerprints). The index has one permutation for each band. A row has an entry
//! in each permutation, under a hash of its values in that band. A search looks up the hash of the
//! query's values in each permutation.
//!
//! A key also has a sketch of the whole signature, with some bits for each band. Each bit that
//! differs between two sketches is caused by a mismatch of its own. A search combines the sketch
//! with the bands in which it found a row to a lower bound of the mismatches: a band in which it
//! did not find the row has at least one mismatch, and at least one for each of the band's sketch
//! bits that differ. The search rejects rows whose bound is too high without reading the table. It
//! rejects no match.
//!
//! A key consists of the scope's word, if the index has scopes, and of two words: 24 bits of hash,
//! then 104 bits of sketch.

mod bucket_centers;
mod bucket_components;
mod exhaustive_work;
mod pair_plan;
mod rows;
mod scan;
pub mod tune;

pub use bucket_centers::BucketCenters;
pub use bucket_components::connect_buckets;
pub use exhaustive_work::{ExhaustiveWork, exhaustive_work};
pub use pair_plan::BandPairPlan;
pub use rows::RowSource;
pub use scan::{BandQuery, BandScan};

use crate::block_layout::BlockLayout;
use crate::key::{BAND_KEY_WORDS, Key, mix};

/// Maximum number of bands of an index. Each band adds one index entry for each row.
pub const MAX_BANDS: usize = 256;

/// Maximum of the option `rows`, the number of positions in each band. The number must fit into one
/// byte of the meta page.
pub const MAX_BAND_WIDTH: usize = 64;

/// Number of words of a key, not counting the scope's word.
pub const WORDS: usize = BAND_KEY_WORDS;

/// Number of bits of a band's hash in a key. They are the first bits after the scope's word.
pub const HASH_BITS: u32 = 24;

/// Mask of the sketch bits in the first of the [`WORDS`] words, whose other bits are the band's
/// hash.
const LOW: u64 = u64::MAX >> HASH_BITS;

/// Number of bits of a sketch.
const SKETCH_BITS: usize = 128 - HASH_BITS as usize;

/// Sketch of a signature, laid out as the last two words of a key. The first [`HASH_BITS`] bits are
/// zero.
pub type Sketch = [u64; WORDS];

/// Returns a hash of a signature's scheme and seed, which [`Bands::hash`] adds to the hash of a
/// band. Signatures that can be compared have the same scheme hash. `scheme` is the numeric code of
/// the scheme, which names the hash functions that make signatures.
pub fn scheme_hash(scheme: u8, seed: u64) -> u64 {
    (seed ^ u64::from(scheme) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the last two words of a key: the sketch, with the hash of a band in its first
/// [`HASH_BITS`] bits. These bits are zero if [`crate::block_layout::Permutation::restore`]
/// returned the key.
pub fn sketch<const N: usize>(key: &Key<N>) -> Sketch {
    [key[N - WORDS], key[N - WORDS + 1]]
}

/// Returns the number of bits in which two sketches differ, ignoring the first [`HASH_BITS`] bits.
/// The two signatures have at least this number of mismatches.
#[inline]
pub fn sketch_difference(own: &Sketch, other: &Sketch) -> u32 {
    ((own[0] ^ other[0]) & LOW).count_ones() + (own[1] ^ other[1]).count_ones()
}

/// Reason why [`Bands::new`] rejects a number of bands and of positions per band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandsError {
    /// The number of bands must be between 1 and [`MAX_BANDS`].
    BandsOutOfRange,
    /// All bands together need more positions than a signature has.
    TooManyRows,
}

/// Division of an index's signatures into bands. Makes hashes, sketches and keys.
///
/// ```
/// use neardup_blocktree::bands::Bands;
///
/// // Signatures of 128 values, cut into 20 bands.
/// let bands = Bands::new(128, 20, 0)?;
/// assert_eq!(bands.guaranteed(), 19);
///
/// // Two signatures with 19 mismatches have the same hash in at least one band.
/// let a: Vec<u32> = (0..128).collect();
/// let mut b = a.clone();
/// b.iter_mut().step_by(7).for_each(|value| *value += 1_000);
/// assert!((0..20).any(|band| bands.hash(band, &a, 0) == bands.hash(band, &b, 0)));
/// # Ok::<(), neardup_blocktree::bands::BandsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bands {
    /// Number of positions of a signature.
    hashes: usize,
    /// Number of positions in each band, or 0 if all positions are distributed evenly.
    band_width: usize,
    /// First position of each band, then the end (exclusive) of the last band.
    starts: Vec<usize>,
    /// For each band, the mask of its bits in a sketch.
    masks: Vec<Sketch>,
    /// For each position of a signature up to the end of the last band: the sketch bit that the
    /// value at this position may flip. The first number is the index of the bit's word in the
    /// sketch. The second number is the bit's distance from the least significant bit of that word.
    /// A position without a sketch bit has the index [`WORDS`], which is beyond the sketch, so that
    /// its bit is dropped.
    positions: Vec<(usize, u32)>,
}

impl Bands {
    /// Divides the `hashes` positions of a signature into `bands` bands of `band_width` positions
    /// each. Positions left over are in no band. If `band_width` is 0, distributes all positions
    /// among the bands, as evenly as possible.
    ///
    /// # Errors
    /// [`BandsError`] if the numbers of bands and positions are out of range.
    pub fn new(hashes: usize, bands: usize, band_width: usize) -> Result<Self, BandsError> {
        if !(1..=MAX_BANDS).contains(&bands) {
            return Err(BandsError::BandsOutOfRange);
        }
        if bands * band_width.max(1) > hashes {
            return Err(BandsError::TooManyRows);
        }
        let share = |whole: usize, i: usize| whole / bands + usize::from(i < whole % bands);
        let mut starts = vec![0];
        let mut masks = Vec::new();
        let mut positions = Vec::new();
        let mut bit = HASH_BITS as usize;
        for band in 0..bands {
            let band_width = if band_width == 0 {
                share(hashes, band)
            } else {
                band_width
            };
            let bits = share(SKETCH_BITS, band).min(band_width);
            let mut mask = [0; WORDS];
            for i in 0..bits {
                mask[(bit + i) / 64] |= 1 << (63 - (bit + i) % 64);
            }
            // If a band has more positions than bits, some positions share a bit. The bit differs
            // only if the bits of an odd number of these positions differ, so of at least one.
            positions.extend((0..band_width).map(|i| {
                let at = bit + i % bits.max(1);
                let shift = 63 - (at % 64) as u32;
                if bits == 0 {
                    (WORDS, 0)
                } else {
                    (at / 64, shift)
                }
            }));
            starts.push(starts[band] + band_width);
            masks.push(mask);
            bit += bits;
        }
        Ok(Bands {
            hashes,
            band_width,
            starts,
            masks,
            positions,
        })
    }

    /// Returns the default number of bands for signatures of `hashes` positions and searches for up
    /// to `mismatches` mismatches. `mismatches + 1` bands guarantee that a search finds all
    /// matching signatures. The default is a sixth more, because searches then compare far fewer
    /// rows that do not match.
    pub fn default_count(hashes: usize, mismatches: usize) -> usize {
        (mismatches + 1 + mismatches / 6)
            .min(hashes)
            .min(MAX_BANDS.max(mismatches + 1))
    }

    /// Returns the number of positions of a signature.
    pub fn hashes(&self) -> usize {
        self.hashes
    }

    /// Returns the number of bands.
    pub fn count(&self) -> usize {
        self.masks.len()
    }

    /// Returns the number of positions in each band, if the user has chosen this number. Returns 0
    /// otherwise: all positions of a signature are then distributed evenly among the bands.
    pub fn band_width(&self) -> usize {
        self.band_width
    }

    /// Returns the number of positions in the smallest band.
    pub fn min_band_width(&self) -> usize {
        (self.starts.windows(2))
            .map(|pair| pair[1] - pair[0])
            .min()
            .unwrap_or(0)
    }

    /// Returns the greatest number of mismatches at which a search by bands finds all signatures.
    pub fn guaranteed(&self) -> usize {
        self.count() - 1
    }

    /// Returns the sketch of a signature. It depends only on the positions that are in a band.
    pub fn sketch(&self, signature: &[u32]) -> Sketch {
        let mut sketch = [0; WORDS + 1];
        for (value, &(word, shift)) in signature.iter().zip(&self.positions) {
            // One bit, which depends on all bits of the value.
            let bit = value.wrapping_mul(0x9e37_79b1) >> 31;
            sketch[word] ^= u64::from(bit) << shift;
        }
        [sketch[0], sketch[1]]
    }

    /// Returns the values of `signature` at the positions of a band.
    #[inline]
    pub(crate) fn values<'s>(&self, band: usize, signature: &'s [u32]) -> &'s [u32] {
        &signature[self.starts[band]..self.starts[band + 1]]
    }

    /// Returns the hash of a signature's values in a band: the first [`HASH_BITS`] bits of a word
    /// whose other bits are zero. `scheme_hash` identifies the options that made the signature
    /// ([`scheme_hash`]). Signatures that cannot be compared have different scheme hashes, so their
    /// hashes most likely differ.
    pub fn hash(&self, band: usize, signature: &[u32], scheme_hash: u64) -> u64 {
        self.wide_hash(band, signature, scheme_hash) & !LOW
    }

    /// Returns a 64-bit hash of a signature's values in a band. [`Bands::hash`] returns its first
    /// bits and explains `scheme_hash`.
    pub(crate) fn wide_hash(&self, band: usize, signature: &[u32], scheme_hash: u64) -> u64 {
        let values = self.values(band, signature);
        let hash = (values.iter()).fold(mix(scheme_hash ^ band as u64), |hash, &value| {
            mix(hash ^ u64::from(value)).wrapping_add(0x9e37_79b9_7f4a_7c15)
        });
        mix(hash)
    }

    /// Estimates which share of the pairs of signatures with this Jaccard similarity agree in all
    /// positions of at least one band.
    pub fn recall(&self, similarity: f64) -> f64 {
        let missed = self.starts.windows(2).map(|band| {
            let positions = (band[1] - band[0]) as i32;
            1.0 - similarity.powi(positions)
        });
        1.0 - missed.product::<f64>()
    }

    /// Returns the first band in which two signatures of the same `scheme_hash` have the same hash.
    /// `None` if there is no such band.
    pub fn first_shared(&self, a: &[u32], b: &[u32], scheme_hash: u64) -> Option<usize> {
        (0..self.count())
            .find(|&band| self.hash(band, a, scheme_hash) == self.hash(band, b, scheme_hash))
    }

    /// Returns the index key of a signature in the permutation of `band`. `scheme_hash` is as for
    /// [`Bands::hash`]. `scope` is the scope's word, or `None` if keys have no scope. `sketch` is
    /// the sketch of `signature`.
    pub fn key<const N: usize>(
        &self,
        band: usize,
        signature: &[u32],
        scheme_hash: u64,
        scope: Option<u64>,
        sketch: &Sketch,
    ) -> Key<N> {
        let mut key = Self::row_key::<N>(scope, sketch);
        key[N - WORDS] |= self.hash(band, signature, scheme_hash);
        key
    }

    /// Returns the part that all keys of one table row share: the scope's word if there is one, and
    /// the sketch. The bits of the band's hash are zero.
    pub fn row_key<const N: usize>(scope: Option<u64>, sketch: &Sketch) -> Key<N> {
        let mut key = [0; N];
        if let (Some(scope), true) = (scope, N > WORDS) {
            key[0] = scope;
        }
        key[N - WORDS..].copy_from_slice(sketch);
        key
    }

    /// Compares two sketches. Returns the number of bits that differ, and the number of bands whose
    /// sketch bits are equal.
    #[inline]
    fn difference(&self, a: &Sketch, b: &Sketch) -> (u32, u32) {
        let differing = [(a[0] ^ b[0]) & LOW, a[1] ^ b[1]];
        let bits = differing[0].count_ones() + differing[1].count_ones();
        let alike = (self.masks.iter())
            .filter(|mask| mask[0] & differing[0] | mask[1] & differing[1] == 0)
            .count();
        (bits, alike as u32)
    }

    /// Estimates the share of unrelated rows that the sketch does not reject in a search for up to
    /// `mismatches` mismatches. Each sketch bit of unrelated rows differs with probability 1/2.
    pub fn chance_sketch(&self, mismatches: usize) -> f64 {
        let bits: u32 = (self.masks.iter())
            .map(|m| m[0].count_ones() + m[1].count_ones())
            .sum();
        let (mean, deviation) = (f64::from(bits) / 2.0, f64::from(bits).sqrt() / 2.0);
        let z = (mismatches as f64 + 0.5 - mean) / deviation;
        // Logistic approximation of the normal distribution function, with an error below 0.01.
        1.0 / (1.0 + (-1.702 * z).exp())
    }

    /// Returns the layout of an index with these bands: one permutation for each band. `scope` is
    /// true if keys begin with a scope's word.
    pub fn layout<const N: usize>(&self, scope: bool) -> BlockLayout<N> {
        BlockLayout::with_bands(scope, self.count(), LOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a lower bound of the mismatches of two signatures with the sketches `a` and `b` that
    /// have the same hash in `agreeing` bands.
    fn least_mismatches(bands: &Bands, a: &Sketch, b: &Sketch, agreeing: usize) -> u32 {
        let (bits, alike) = bands.difference(a, b);
        (bits + alike).saturating_sub(agreeing as u32)
    }

    /// Generates two signatures, a number of bands, and a number of positions per band.
    fn pair() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, usize, usize)> {
        (16_usize..300).prop_flat_map(|hashes| {
            let values = prop::collection::vec(any::<u32>(), hashes..=hashes);
            let changes = prop::collection::vec((0..hashes, any::<u32>()), 0..hashes);
            (values, changes, 1..=hashes.min(MAX_BANDS)).prop_map(|(a, changes, bands)| {
                let mut b = a.clone();
                changes.into_iter().for_each(|(at, value)| b[at] = value);
                let rows = if a[0] % 2 == 0 { 0 } else { a.len() / bands };
                (a, b, bands, rows)
            })
        })
    }

    proptest! {
        /// Searches are exact because of two properties: signatures with few mismatches share a
        /// band, and the lower bound from sketches does not exceed the mismatches.
        #[test]
        fn bands_guarantee_and_bounds_hold((a, b, count, rows) in pair()) {
            let bands = Bands::new(a.len(), count, rows).unwrap();
            let mismatches = a.iter().zip(&b).filter(|(a, b)| a != b).count();
            let agrees = |&i: &usize| bands.hash(i, &a, 7) == bands.hash(i, &b, 7);
            let agreeing = (0..count).filter(agrees).count();
            prop_assert!(agreeing > 0 || mismatches > bands.guaranteed());
            let (a, b) = (bands.sketch(&a), bands.sketch(&b));
            let least = least_mismatches(&bands, &a, &b, agreeing);
            prop_assert!(least as usize <= mismatches, "{} of {}", least, mismatches);
        }

        #[test]
        fn masks_do_not_overlap(hashes in 16_usize..1025, count in 1_usize..257) {
            prop_assume!(count <= hashes);
            let bands = Bands::new(hashes, count, 0).unwrap();
            let mut seen = [!LOW, 0];
            for mask in &bands.masks {
                for word in 0..WORDS {
                    prop_assert_eq!(seen[word] & mask[word], 0);
                    seen[word] |= mask[word];
                }
            }
            prop_assert_eq!(bands.starts[count], hashes);
        }
    }

    /// Tests that the bound from sketches is useful: in a search for up to 25 mismatches, it
    /// rejects most signatures with about 50 mismatches. A lower bound of 0 would be correct, too,
    /// but would reject nothing.
    #[test]
    fn bounds_reject() {
        let bands = Bands::new(128, 30, 0).unwrap();
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        };
        let mut rejected = 0;
        for _ in 0..1000 {
            let a: Vec<u32> = (0..128).map(|_| next() as u32).collect();
            let b: Vec<u32> = a
                .iter()
                .map(|&v| if next() % 128 < 50 { next() as u32 } else { v })
                .collect();
            let agreeing = (0..30)
                .filter(|&i| bands.hash(i, &a, 7) == bands.hash(i, &b, 7))
                .count();
            let least = least_mismatches(&bands, &bands.sketch(&a), &bands.sketch(&b), agreeing);
            rejected += usize::from(least > 25);
        }
        assert!(rejected > 900, "{rejected}");
    }

    /// Compares [`Bands::recall`] with the share of random pairs of signatures that share a band.
    /// Each position of a pair is equal with a probability that is the similarity.
    #[test]
    fn recall_is_the_share_that_agrees() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        };
        for (count, rows, similarity) in [(16, 8, 0.8), (30, 0, 0.6), (10, 3, 0.4)] {
            let bands = Bands::new(128, count, rows).unwrap();
            let mut found = 0;
            for _ in 0..4000 {
                let a: Vec<u32> = (0..128).map(|_| next() as u32).collect();
                let keeps = |next: u64| (next >> 11) as f64 / (1_u64 << 53) as f64 <= similarity;
                let b: Vec<u32> = (a.iter())
                    .map(|&value| if keeps(next()) { value } else { value ^ 1 })
                    .collect();
                found += u32::from(bands.first_shared(&a, &b, 7).is_some());
            }
            let share = f64::from(found) / 4000.0;
            let recall = bands.recall(similarity);
            assert!((share - recall).abs() < 0.02, "{count}: {share} {recall}");
        }
        // The published share for 16 bands of 8 positions: 94.7 % at similarity 0.8.
        assert_eq!(
            (Bands::new(128, 16, 8).unwrap().recall(0.8) * 1000.0).round(),
            947.0
        );
    }

    #[test]
    fn impossible_bands_are_refused() {
        let new = |hashes, bands, rows| Bands::new(hashes, bands, rows).map(|_| ());
        assert_eq!(new(128, 0, 0), Err(BandsError::BandsOutOfRange));
        assert_eq!(new(1024, 257, 0), Err(BandsError::BandsOutOfRange));
        assert_eq!(new(128, 129, 0), Err(BandsError::TooManyRows));
        assert_eq!(new(128, 17, 8), Err(BandsError::TooManyRows));
        assert_eq!(new(128, 16, 8), Ok(()));
        assert_eq!(Bands::new(128, 16, 8).unwrap().guaranteed(), 15);
    }

    /// Golden key of a signature. Keys are stored in indexes, so they must not change.
    #[test]
    fn golden() {
        let bands = Bands::new(128, 26, 0).unwrap();
        let signature: Vec<u32> = (0..128).map(|i| mix(i) as u32).collect();
        let sketch = bands.sketch(&signature);
        assert_eq!(
            bands.key::<2>(3, &signature, 1, None, &sketch),
            [4_849_494_181_826_586_829, 8_086_990_675_631_706_572]
        );
    }
}
