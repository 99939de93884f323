//! MinHash fingerprints (`minhash64` and `minhash128` in SQL): bits whose Hamming distance
//! estimates the Jaccard similarity. The hash value of each feature chooses one of 64 or 128 bins.
//! Each bin keeps the minimum of its values, and gives one bit of this minimum to the fingerprint.
//! Bins that no feature has chosen are filled in further rounds, in which each feature has another
//! value and so another bin.
//!
//! MinHash (Broder, "On the resemblance and containment of documents", SEQUENCES 1997) gives each
//! document a number of minima. Two documents share each minimum with the probability J, the
//! Jaccard similarity of their sets of features. A fingerprint keeps one bit of each minimum (Li,
//! Konig, "b-Bit minwise hashing", WWW 2010, with b = 1). Bits of equal minima agree, and bits of
//! different minima agree by chance in half of the cases. So `B * (1 - J) / 2` of B bits are
//! expected to differ, and a distance d means `J = 1 - 2 * d / B`.
//!
//! Near-duplicates differ in fewer bits than with a simhash, whose distance grows as the square
//! root of 1 - J: at J = 0.9, in 3.2 bits of 64 instead of 6.6. Unrelated documents differ in half
//! of all bits with either fingerprint. docs/quality.md has the measurements.
//!
//! The minima come from fast similarity sketching (Dahlgaard, Knudsen, Thorup, "Fast similarity
//! sketching", FOCS 2017). Each feature is hashed to one of B bins, and each bin keeps its minimum.
//! Short documents leave bins empty. Further rounds with other hash values fill the empty bins, and
//! each of the last rounds fills one bin. A feature takes one step instead of B, and each bin
//! agrees with exactly the probability J. In documents of few features the number of agreeing bins
//! varies less than with independent minima.

mod owners;
mod similarity;
mod text;

use std::ops::Range;

use crate::feature_sink::{FeatureSink, Position, Windows};
use crate::hash::feature_hash;
use crate::hash::windows::WindowHash;
use crate::memory::{Grow, GrowVec};

pub(crate) use owners::{OwnFeature, owned_bits};
pub use similarity::{radius, radius_above, similarity};

/// Value that marks an empty bin.
const EMPTY: u64 = u64::MAX;
/// Number of hashes processed between two calls of the cancellation check `check`.
const CHECK_EVERY: usize = 1 << 16;
/// Number of features in a batch, which are hashed together.
const WINDOWS: usize = 512;
/// Number of hashes in [`FingerprintBuilder::kept`] at which [`FingerprintBuilder::add`] removes
/// duplicates from `kept` for the first time.
const FIRST_DEDUP: usize = 1 << 12;
/// Number of hashes in [`FingerprintBuilder::kept`] above which [`FingerprintBuilder::finish`]
/// removes duplicates. For fewer hashes, removing duplicates takes longer than it saves.
const MIN_DEDUP: usize = 1 << 8;

/// Returns the value of a feature in the round `round`. `hash` is the hash of the feature. In round
/// 0, the value is the hash itself. In each later round, it is another bijection of the hash: the
/// finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) after an offset is added.
#[inline(always)]
const fn value(hash: u64, round: u64) -> u64 {
    if round == 0 {
        return hash;
    }
    let z = hash.wrapping_add(round.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Builder of the MinHash fingerprint of a set of features. The fingerprint has `64 * W` bits: the
/// lowest bit of the value of each bin. The builder can be reset for another set.
///
/// Each round computes a new value of each feature, and the value falls into a bin. In rounds below
/// `64 * W`, the leading bits of the value choose the bin. In round `64 * W + i`, all values fall
/// into bin i. The first round in which values fall into a bin sets the value of the bin: the
/// minimum of these values. Later rounds do not change it.
///
/// ```
/// use neardup_sketch::minhash_fingerprint::FingerprintBuilder;
/// use neardup_sketch::hash::feature_hash;
///
/// let mut minhash = FingerprintBuilder::<1>::default();
/// minhash.add(&[feature_hash(b"quick"), feature_hash(b"fox")]);
/// let fingerprint = minhash.finish(&mut || ());
/// minhash.reset();
/// minhash.add(&[feature_hash(b"fox"), feature_hash(b"quick"), feature_hash(b"fox")]);
/// assert_eq!(minhash.finish(&mut || ()), fingerprint);
/// ```
pub struct FingerprintBuilder<const W: usize> {
    /// Value of each bin so far, or [`EMPTY`].
    least: [[u64; 64]; W],
    /// Hashes of all features, kept for further rounds while a bin is empty. May contain
    /// duplicates.
    kept: Vec<u64>,
    /// Length of `kept` at which duplicates are removed from it the next time.
    dedup_at: usize,
    /// True if no bin was empty after round 0, so that no further rounds are needed.
    full: bool,
    /// Working memory: hashes of one batch of features.
    hashes: Vec<[u64; 1]>,
}

impl<const W: usize> Default for FingerprintBuilder<W> {
    fn default() -> Self {
        Self {
            least: [[EMPTY; 64]; W],
            kept: Vec::new(),
            dedup_at: FIRST_DEDUP,
            full: false,
            hashes: Vec::new(),
        }
    }
}

impl<const W: usize> FingerprintBuilder<W> {
    /// Binary logarithm of the number of bins, `64 * W`.
    const LOG2: u32 = {
        assert!(W.is_power_of_two());
        6 + W.ilog2()
    };

    /// Forgets all features, to build the fingerprint of another set.
    pub fn reset(&mut self) {
        self.least = [[EMPTY; 64]; W];
        self.kept.clear();
        self.kept.shrink_to(FIRST_DEDUP);
        (self.dedup_at, self.full) = (FIRST_DEDUP, false);
    }

    /// Adds features by their hashes ([`feature_hash`]), in any order and any number of times.
    pub fn add(&mut self, hashes: &[u64]) {
        let least = self.least.as_flattened_mut();
        for &hash in hashes {
            let bin = &mut least[(hash >> (64 - Self::LOG2)) as usize];
            *bin = hash.min(*bin);
        }
        if !self.full {
            self.keep_for_later_rounds(hashes);
        }
    }

    /// Adds `hashes` to `kept` if a bin is still empty, because the empty bins are filled in
    /// further rounds. If no bin is empty, drops all kept hashes.
    #[cold]
    fn keep_for_later_rounds(&mut self, hashes: &[u64]) {
        self.full = !self.least.as_flattened().contains(&EMPTY);
        if self.full {
            self.kept.clear();
            return;
        }
        self.kept.grow_by(hashes);
        if self.kept.len() >= self.dedup_at {
            self.remove_repetitions();
            self.dedup_at = FIRST_DEDUP.max(2 * self.kept.len());
        }
    }

    fn remove_repetitions(&mut self) {
        self.kept.sort_unstable();
        self.kept.dedup();
    }

    /// Returns the fingerprint, or `None` if no feature was added. The first word has the bits of
    /// the first 64 bins, with the first bin in the lowest bit. Calls the cancellation check
    /// `check` if there are many features.
    pub fn finish(&mut self, check: &mut dyn FnMut()) -> Option<[u64; W]> {
        if !self.full {
            if self.kept.is_empty() {
                return None;
            }
            if self.kept.len() > MIN_DEDUP {
                self.remove_repetitions();
            }
            self.fill(check);
        }
        Some(self.least.map(|bins| {
            let bits = bins.iter().enumerate();
            bits.fold(0, |word, (at, value)| word | (value & 1) << at)
        }))
    }

    /// Runs further rounds until all bins that are empty after round 0 have a value.
    fn fill(&mut self, check: &mut dyn FnMut()) {
        let mut empty = self.least.map(|bins| {
            let bits = bins.iter().enumerate();
            bits.fold(0, |word, (at, &value)| {
                word | u64::from(value == EMPTY) << at
            })
        });
        for round in 1..1 << Self::LOG2 {
            if empty == [0; W] {
                return;
            }
            self.fill_in_shared_round(round, &mut empty, check);
        }
        for bin in 0..1 << Self::LOG2 {
            if empty[bin / 64] >> (bin % 64) & 1 == 1 {
                self.fill_in_own_round(bin, check);
            }
        }
    }

    /// Fills the empty bin `bin` in its own round, in which the values of all features fall into
    /// this bin. Stores the minimum of these values.
    fn fill_in_own_round(&mut self, bin: usize, check: &mut dyn FnMut()) {
        let round = (1 << Self::LOG2) + bin as u64;
        let mut least = EMPTY;
        for hashes in self.kept.chunks(CHECK_EVERY) {
            least = (hashes.iter()).fold(least, |least, &hash| least.min(value(hash, round)));
            if self.kept.len() > CHECK_EVERY {
                check();
            }
        }
        self.least[bin / 64][bin % 64] = least;
    }

    /// Runs the round `round`, in which all bins share the hashes: the leading bits of each value
    /// choose its bin. Fills bins that are empty and removes them from `empty`, the mask of the
    /// empty bins. Other bins are neither read nor written, so a round of a text with few features
    /// takes little time.
    fn fill_in_shared_round(&mut self, round: u64, empty: &mut [u64; W], check: &mut dyn FnMut()) {
        let mut filled = [0; W];
        for hashes in self.kept.chunks(CHECK_EVERY) {
            for &hash in hashes {
                let value = value(hash, round);
                let bin = (value >> (64 - Self::LOG2)) as usize;
                let (word, at) = (bin / 64, bin % 64);
                if empty[word] >> at & 1 == 1 {
                    let least = &mut self.least[word][at];
                    *least = value.min(*least);
                    filled[word] |= u64::from(value != EMPTY) << at;
                }
            }
            if self.kept.len() > CHECK_EVERY {
                check();
            }
        }
        for (empty, filled) in empty.iter_mut().zip(filled) {
            *empty &= !filled;
        }
    }
}

impl<const W: usize> FeatureSink for FingerprintBuilder<W> {
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        // Two tight loops, one that hashes and one that fills bins, are faster than one loop.
        let mut batch = [0; 64];
        let mut len = 0;
        for feature in features {
            batch[len] = feature_hash(&bytes[feature]);
            len += 1;
            if len == batch.len() {
                self.add(&batch);
                len = 0;
            }
        }
        self.add(&batch[..len]);
    }

    fn add_windows(&mut self, windows: Windows<impl Position>) {
        let mut hashes = std::mem::take(&mut self.hashes);
        for windows in windows.pieces(WINDOWS) {
            hashes.clear();
            hashes.ensure_room(WINDOWS);
            WindowHash::push_windows(windows, &mut hashes);
            self.add(hashes.as_flattened());
        }
        self.hashes = hashes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::hamming64;
    use crate::hash::join;
    use crate::options::TextOptions;
    use crate::sketcher::Sketcher;
    use crate::test_texts::any_text;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Reference implementation: computes the fingerprint of a set of feature hashes by the
    /// definition, bin by bin.
    fn defined<const W: usize>(hashes: &BTreeSet<u64>) -> Option<[u64; W]> {
        let bins = 64 * W as u64;
        let bit = |bin: u64| {
            let in_round = |round: u64| {
                let values = hashes.iter().map(|&hash| value(hash, round));
                let falls = |value: &u64| {
                    let named = (u128::from(*value) * u128::from(bins)) >> 64;
                    if round < bins {
                        named as u64 == bin
                    } else {
                        round - bins == bin
                    }
                };
                values.filter(falls).min()
            };
            (0..2 * bins).find_map(in_round).unwrap() & 1
        };
        (!hashes.is_empty()).then(|| {
            std::array::from_fn(|word| {
                (0..64).fold(0, |all, i| all | bit(64 * word as u64 + i) << i)
            })
        })
    }

    fn minhash64(text: &str) -> Option<u64> {
        Sketcher::new(TextOptions::SET).minhash64(text, &mut || ())
    }

    fn minhash128(text: &str) -> Option<u128> {
        Sketcher::new(TextOptions::SET).minhash128(text, &mut || ())
    }

    fn sketched<const W: usize>(hashes: &[u64]) -> Option<[u64; W]> {
        let mut minima = FingerprintBuilder::default();
        // An earlier set, which reset() must forget.
        minima.add(&[1, 2, 3]);
        minima.reset();
        hashes.chunks(50).for_each(|part| minima.add(part));
        minima.finish(&mut || ())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn equals_the_definition(
            mut hashes in prop::collection::vec(any::<u64>(), 0..600),
            few in 0_usize..9,
            repeat in 0_usize..200,
        ) {
            if few < 5 {
                hashes.truncate(1 << few);
            }
            hashes.extend_from_within(..repeat.min(hashes.len()));
            let set = hashes.iter().copied().collect();
            prop_assert_eq!(sketched::<1>(&hashes), defined(&set));
            prop_assert_eq!(sketched::<2>(&hashes), defined(&set));
        }

        #[test]
        fn of_text_equals_that_of_its_features(text in any_text()) {
            let features = crate::features(&text, &TextOptions::SET, &mut || ());
            let hashes: Vec<u64> = features.iter().map(|feature| feature.hash).collect();
            prop_assert_eq!(minhash64(&text), sketched::<1>(&hashes).map(|[word]| word));
            prop_assert_eq!(minhash128(&text), sketched::<2>(&hashes).map(join));
        }
    }

    /// The fingerprint is right for a set of many features that leaves a bin empty, although the
    /// builder then keeps all hashes for further rounds. A single feature that is added many times
    /// takes little memory.
    #[test]
    fn sets_that_have_to_be_kept() {
        let numbers = (0..20_000_u64).map(|i| value(i, 1));
        let avoiding: Vec<u64> = numbers.filter(|hash| hash >> 58 != 63).collect();
        assert!(avoiding.len() > 3 * FIRST_DEDUP);
        let set = avoiding.iter().copied().collect();
        assert_eq!(sketched::<1>(&avoiding), defined(&set));
        assert_eq!(sketched::<1>(&vec![7; 100_000]), sketched(&[7]));
        let mut minima = FingerprintBuilder::<1>::default();
        (0..100_000).for_each(|_| minima.add(&[7]));
        assert!(
            minima.kept.capacity() <= 4 * FIRST_DEDUP,
            "{}",
            minima.kept.capacity()
        );
    }

    /// Fingerprints of two sets of a known similarity differ on average in the expected number of
    /// bits, for sets of 1 to 1000 features. The variance of this number is at most 15 % greater
    /// than for independent bits.
    #[test]
    fn distance_tells_the_similarity() {
        const PAIRS: u64 = 4000;
        for size in [1_u64, 3, 10, 40, 200, 1000] {
            for common in [0, size / 3, size / 2, size * 9 / 10, size] {
                let union = 2 * size - common;
                let jaccard = common as f64 / union as f64;
                let distances = (0..PAIRS).map(|pair| {
                    let feature = |i: u64| value(pair << 32 | i, 999_983);
                    let a: Vec<u64> = (0..size).map(feature).collect();
                    let b: Vec<u64> = (size - common..union).map(feature).collect();
                    let [a, b] = [a, b].map(|set| sketched::<1>(&set).unwrap()[0]);
                    f64::from(hamming64(a, b))
                });
                let distances: Vec<f64> = distances.collect();
                let mean = distances.iter().sum::<f64>() / PAIRS as f64;
                let deviation = |d: &f64| (d - mean) * (d - mean);
                let variance = distances.iter().map(deviation).sum::<f64>() / PAIRS as f64;
                let p = (1.0 - jaccard) / 2.0;
                // Five standard errors.
                let error = 5.0 * (variance / PAIRS as f64).sqrt();
                assert!((mean - 64.0 * p).abs() <= error, "{size} {common}: {mean}");
                let independent = 64.0 * p * (1.0 - p);
                assert!(
                    variance <= 1.15 * independent,
                    "{size} {common}: {variance}"
                );
            }
        }
    }

    #[test]
    fn nothing_has_no_fingerprint() {
        assert_eq!(sketched::<1>(&[]), None);
        assert_eq!(minhash64("!?"), None);
        assert_eq!(minhash128(""), None);
    }

    #[test]
    fn check_may_unwind() {
        let text = "the same ".repeat(500_000);
        let mut sketcher = Sketcher::new(TextOptions::SET);
        let cancelled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            sketcher.minhash64(&text, &mut || std::panic::resume_unwind(Box::new(())))
        }));
        assert!(cancelled.is_err());
        let fingerprint = sketcher.minhash64(&text, &mut || ());
        assert_eq!(fingerprint, minhash64("the same the same"));
    }

    /// Expected fingerprints, which must never change, because users store fingerprints.
    #[test]
    fn golden() {
        let golden = [
            (
                "hello",
                0x70bd_7474_cb85_8ed6,
                0x02f8_e712_8efd_5268_56c1_dd95_7778_2d2c,
            ),
            (
                "The quick brown fox jumps over the lazy dog",
                0xd3f9_3865_1fef_7413,
                0x0bab_745f_3a12_a90a_e26d_6fd9_1b46_3492,
            ),
            (
                "各级人民政府应当加强领导",
                0x8faa_c0b2_32f8_6efa,
                0xa504_9d64_38d8_6b4c_c865_ec48_f252_cf6c,
            ),
        ];
        for (text, narrow, wide) in golden {
            let got = (minhash64(text), minhash128(text));
            assert_eq!(got, (Some(narrow), Some(wide)), "{text}: {got:#x?}");
        }
    }
}
