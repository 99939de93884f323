//! Bands: how signatures of K symbols are indexed, so that all within some number of mismatches of
//! a query are found.
//!
//! The positions are cut into bands. Two signatures that differ in fewer positions than there are
//! bands agree in all positions of at least one (the pigeonhole principle, as for blocks of bits),
//! so each signature stands in one permutation for each band, under a hash of the band's values. A
//! query looks up its own hash in each.
//!
//! Beside the hash stands a sketch of the whole signature, some bits for each band: bits that
//! differ are mismatches. Together with the permutations in which a row was found it tells how many
//! mismatches there are at least: each band in which the row was not found has one or more, and as
//! many as its bits that differ. Rows with too many are rejected without an access to their table;
//! that is exact.
//!
//! Keys are the scope's word, if there is one, and two words: 24 bits of hash, 104 of sketch.

mod bucket_centers;
mod components;
mod exhaustive_work;
mod pair_plan;
mod rows;
mod scan;
pub mod tune;

pub use bucket_centers::BucketCenters;
pub use components::connect_buckets;
pub use exhaustive_work::{ExhaustiveWork, exhaustive_work};
pub use pair_plan::BandPairPlan;
pub use rows::RowSource;
pub use scan::{BandQuery, BandScan};

use crate::block_layout::BlockLayout;
use crate::key::{BAND_KEY_WORDS, Key, mix};

/// The most bands: each costs its share of space and of every insert.
pub const MAX_BANDS: usize = 256;

/// Maximum number of values in a band that a user can set, limited by the meta page.
pub const MAX_BAND_ROWS: usize = 64;

/// Words of a key without a scope.
pub const WORDS: usize = BAND_KEY_WORDS;

/// Bits of a band's hash, at the front of a key.
pub const HASH_BITS: u32 = 24;

/// Bits of the sketch that share the word with the hash.
const LOW: u64 = u64::MAX >> HASH_BITS;

/// Bits of the sketch.
const SKETCH_BITS: usize = 128 - HASH_BITS as usize;

/// The sketch of a signature, below bits that are zero where a key has its hash.
pub type Sketch = [u64; WORDS];

/// Returns the sketch in a key or in a restored key, behind the bits of the hash.
pub fn sketch<const N: usize>(key: &Key<N>) -> Sketch {
    [key[N - WORDS], key[N - WORDS + 1]]
}

/// Returns the number of bits in which two sketches, behind the bits of the hash, differ. The
/// signatures have at least as many mismatches.
#[inline]
pub fn sketch_difference(own: &Sketch, other: &Sketch) -> u32 {
    ((own[0] ^ other[0]) & LOW).count_ones() + (own[1] ^ other[1]).count_ones()
}

/// Reason why a combination of numbers makes no bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandsError {
    /// The number of bands must be between 1 and [`MAX_BANDS`].
    BandsOutOfRange,
    /// All bands together have more rows than a signature has positions.
    TooManyRows,
}

/// The bands of one index.
///
/// ```
/// use neardup_blocktree::bands::Bands;
///
/// // Signatures of 128 values, cut into 20 bands.
/// let bands = Bands::new(128, 20, 0)?;
/// assert_eq!(bands.guaranteed(), 19);
///
/// // With 19 mismatches at least one band has the same hash.
/// let a: Vec<u32> = (0..128).collect();
/// let mut b = a.clone();
/// b.iter_mut().step_by(7).for_each(|value| *value += 1_000);
/// assert!((0..20).any(|band| bands.hash(band, &a, 0) == bands.hash(band, &b, 0)));
/// # Ok::<(), neardup_blocktree::bands::BandsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bands {
    hashes: usize,
    rows: usize,
    /// Start of each band, and the end of the last one.
    starts: Vec<usize>,
    /// The bits of each band in a sketch.
    masks: Vec<Sketch>,
    /// Sketch bit that each position of a signature flips, as word and bit offset.
    positions: Vec<(usize, u32)>,
}

impl Bands {
    /// Cuts signatures of `hashes` positions into `bands` bands of `rows` positions each; positions
    /// left over are in no band. With 0 rows all positions are shared out, as evenly as possible.
    pub fn new(hashes: usize, bands: usize, rows: usize) -> Result<Self, BandsError> {
        if !(1..=MAX_BANDS).contains(&bands) {
            return Err(BandsError::BandsOutOfRange);
        }
        if bands * rows.max(1) > hashes {
            return Err(BandsError::TooManyRows);
        }
        let share = |whole: usize, i: usize| whole / bands + usize::from(i < whole % bands);
        let mut starts = vec![0];
        let mut masks = Vec::new();
        let mut positions = Vec::new();
        let mut bit = HASH_BITS as usize;
        for band in 0..bands {
            let rows = if rows == 0 { share(hashes, band) } else { rows };
            let bits = share(SKETCH_BITS, band).min(rows);
            let mut mask = [0; WORDS];
            for i in 0..bits {
                mask[(bit + i) / 64] |= 1 << (63 - (bit + i) % 64);
            }
            // Where there are more positions than bits, some share one: it differs if an odd
            // number of them does, and so at least one.
            positions.extend((0..rows).map(|row| {
                let at = bit + row % bits.max(1);
                let shift = 63 - (at % 64) as u32;
                if bits == 0 {
                    (WORDS, 0)
                } else {
                    (at / 64, shift)
                }
            }));
            starts.push(starts[band] + rows);
            masks.push(mask);
            bit += bits;
        }
        Ok(Bands {
            hashes,
            rows,
            starts,
            masks,
            positions,
        })
    }

    /// The number of bands that is taken when the user names none: with one more than mismatches
    /// allowed all are found; a sixth more makes far fewer candidates of rows that are none.
    pub fn default_count(hashes: usize, mismatches: usize) -> usize {
        (mismatches + 1 + mismatches / 6)
            .min(hashes)
            .min(MAX_BANDS.max(mismatches + 1))
    }

    /// Positions of a signature.
    pub fn hashes(&self) -> usize {
        self.hashes
    }

    /// The number of bands.
    pub fn count(&self) -> usize {
        self.masks.len()
    }

    /// Positions of each band as the user has named them; 0 if they are shared out evenly.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Positions of the smallest band.
    pub fn fewest_rows(&self) -> usize {
        (self.starts.windows(2))
            .map(|pair| pair[1] - pair[0])
            .min()
            .unwrap_or(0)
    }

    /// The mismatches up to which all signatures are found.
    pub fn guaranteed(&self) -> usize {
        self.count() - 1
    }

    /// The sketch of a signature. Only its positions in bands count.
    pub fn sketch(&self, signature: &[u32]) -> Sketch {
        let mut sketch = [0; WORDS + 1];
        for (value, &(word, shift)) in signature.iter().zip(&self.positions) {
            // One bit of the value, to which all of them contribute.
            let bit = value.wrapping_mul(0x9e37_79b1) >> 31;
            sketch[word] ^= u64::from(bit) << shift;
        }
        [sketch[0], sketch[1]]
    }

    /// The values of a band of a signature.
    #[inline]
    pub(crate) fn values<'s>(&self, band: usize, signature: &'s [u32]) -> &'s [u32] {
        &signature[self.starts[band]..self.starts[band + 1]]
    }

    /// The hash of a band of a signature of some kind, at the front of a word. Signatures that
    /// cannot be compared are of different kinds, and should not meet.
    pub fn hash(&self, band: usize, signature: &[u32], kind: u64) -> u64 {
        self.wide_hash(band, signature, kind) & !LOW
    }

    /// The same hash with all of its 64 bits.
    pub(crate) fn wide_hash(&self, band: usize, signature: &[u32], kind: u64) -> u64 {
        let values = self.values(band, signature);
        let hash = (values.iter()).fold(mix(kind ^ band as u64), |hash, &value| {
            mix(hash ^ u64::from(value)).wrapping_add(0x9e37_79b9_7f4a_7c15)
        });
        mix(hash)
    }

    /// About the share of pairs of this similarity that agree in a band.
    pub fn recall(&self, similarity: f64) -> f64 {
        let missed = self.starts.windows(2).map(|band| {
            let rows = (band[1] - band[0]) as i32;
            1.0 - similarity.powi(rows)
        });
        1.0 - missed.product::<f64>()
    }

    /// The first band whose hash two signatures of one kind share.
    pub fn first_shared(&self, a: &[u32], b: &[u32], kind: u64) -> Option<usize> {
        (0..self.count()).find(|&band| self.hash(band, a, kind) == self.hash(band, b, kind))
    }

    /// The key of a signature in a band's permutation.
    pub fn key<const N: usize>(
        &self,
        band: usize,
        signature: &[u32],
        kind: u64,
        scope: Option<u64>,
        sketch: &Sketch,
    ) -> Key<N> {
        let mut key = Self::row::<N>(scope, sketch);
        key[N - WORDS] |= self.hash(band, signature, kind);
        key
    }

    /// The part that all keys of a row share: its scope and its sketch.
    pub fn row<const N: usize>(scope: Option<u64>, sketch: &Sketch) -> Key<N> {
        let mut key = [0; N];
        if let (Some(scope), true) = (scope, N > WORDS) {
            key[0] = scope;
        }
        key[N - WORDS..].copy_from_slice(sketch);
        key
    }

    /// Two sketches' difference, as far as it is one of signatures: the number of bits that
    /// differ, and of bands without one.
    #[inline]
    fn difference(&self, a: &Sketch, b: &Sketch) -> (u32, u32) {
        let differing = [(a[0] ^ b[0]) & LOW, a[1] ^ b[1]];
        let bits = differing[0].count_ones() + differing[1].count_ones();
        let alike = (self.masks.iter())
            .filter(|mask| mask[0] & differing[0] | mask[1] & differing[1] == 0)
            .count();
        (bits, alike as u32)
    }

    /// About the share of unrelated rows whose sketches do not rule out that they have `mismatches`
    /// or fewer: each bit differs with a probability of one half.
    pub fn chance_sketch(&self, mismatches: usize) -> f64 {
        let bits: u32 = (self.masks.iter())
            .map(|m| m[0].count_ones() + m[1].count_ones())
            .sum();
        let (mean, deviation) = (f64::from(bits) / 2.0, f64::from(bits).sqrt() / 2.0);
        let z = (mismatches as f64 + 0.5 - mean) / deviation;
        // The normal distribution, by a logistic curve: it is off by at most 0.01.
        1.0 / (1.0 + (-1.702 * z).exp())
    }

    /// The layout of an index with these bands.
    pub fn layout<const N: usize>(&self, scope: bool) -> BlockLayout<N> {
        BlockLayout::with_bands(scope, self.count(), LOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A number of mismatches that two signatures with these sketches have at least, if they were
    /// found to agree in `agreeing` bands.
    fn least_mismatches(bands: &Bands, a: &Sketch, b: &Sketch, agreeing: usize) -> u32 {
        let (bits, alike) = bands.difference(a, b);
        (bits + alike).saturating_sub(agreeing as u32)
    }

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
        /// The two properties that exactness depends on.
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

    /// A number that nobody has seen to fail says nothing: that it rejects most of what has twice
    /// as many mismatches as are allowed.
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

    /// The share of pairs that agree in a band, by signatures with as many equal positions as their
    /// similarity says.
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
        // The textbook's number.
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

    /// Golden values: keys are stored.
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
