//! Sums of integer weights behind the bits of a simhash.
//!
//! With S the weight of all features and `set[i]` the weight of those whose hash has bit i, the sum
//! of +w and -w is `set[i] - (S - set[i])`, so bit i is 1 iff `2 * set[i] > S`.

use super::popcount::PositionalPopcount;
use crate::feature_counts::{Counted, FeatureCount};

/// Weight per bit position of `W` words, and the weight of all features.
#[derive(Clone)]
pub(crate) struct Accumulator<const W: usize> {
    set: [[u64; 64]; W],
    total: u64,
}

impl<const W: usize> Default for Accumulator<W> {
    fn default() -> Self {
        Self {
            set: [[0; 64]; W],
            total: 0,
        }
    }
}

/// Returns true if the processor adds to sums that a mask selects, as [`Accumulator::add_all`] does.
fn has_masks() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Adds a weight to the sums of those bits that the hash has set.
#[inline(always)]
pub(super) fn add_where_set<const W: usize>(
    sums: &mut [[u64; 64]; W],
    hash: [u64; W],
    weight: u64,
) {
    for (set, word) in sums.iter_mut().zip(hash) {
        // No branch: the compiler turns this into vector code.
        for (bit, set) in set.iter_mut().enumerate() {
            *set += weight & ((word >> bit) & 1).wrapping_neg();
        }
    }
}

/// Returns words in which bit `bit` of word `word` is `is_set(word, bit)`.
pub(super) fn words<const W: usize>(is_set: impl Fn(usize, usize) -> bool) -> [u64; W] {
    std::array::from_fn(|word| {
        (0..64).fold(0, |all, bit| all | (u64::from(is_set(word, bit)) << bit))
    })
}

impl<const W: usize> Accumulator<W> {
    /// Adds one feature.
    #[inline(always)]
    pub fn add(&mut self, hash: [u64; W], weight: u64) {
        self.total += weight;
        add_where_set(&mut self.set, hash, weight);
    }

    /// Takes away one feature that was added.
    pub fn remove(&mut self, hash: [u64; W], weight: u64) {
        self.total -= weight;
        for (set, word) in self.set.iter_mut().zip(hash) {
            for (bit, set) in set.iter_mut().enumerate() {
                *set -= weight * ((word >> bit) & 1);
            }
        }
    }

    /// Adds features with their weights.
    pub fn add_all(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") {
                // SAFETY: the processor has AVX-512, as checked above.
                #[allow(unsafe_code)]
                return unsafe { self.add_all_avx512(features) };
            }
            if has!("avx2") {
                // SAFETY: the processor has AVX2, as checked above.
                #[allow(unsafe_code)]
                return unsafe { self.add_all_avx2(features) };
            }
        }
        self.add_all_portable(features);
    }

    /// [`Self::add_all_portable`], compiled for vectors of 64 bytes.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn add_all_avx512(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        self.add_all_portable(features);
    }

    /// [`Self::add_all_portable`], compiled for vectors of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_all_avx2(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        self.add_all_portable(features);
    }

    #[inline(always)]
    fn add_all_portable(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        for (hash, weight) in features {
            self.add(hash, weight);
        }
    }

    /// Adds features of one weight, given the number of them that have each bit, word for word.
    fn add_group(&mut self, group: &mut [PositionalPopcount; W], weight: u64) {
        self.total += group[0].len * weight;
        for (set, counted) in self.set.iter_mut().zip(group) {
            for (set, ones) in set.iter_mut().zip(counted.ones()) {
                *set += ones * weight;
            }
        }
    }

    /// The simhash, ties to 0; `None` if nothing with a weight was added.
    pub fn simhash(&self) -> Option<[u64; W]> {
        (self.total > 0).then(|| words(|word, bit| 2 * self.set[word][bit] > self.total))
    }
}

/// Accumulator for features whose weights follow from their counts. Reusable.
///
/// Most features of a text occur once or a few times. Every feature is added with the weight of a
/// single occurrence by a [`PositionalPopcount`]. For those that occur more often, the difference
/// to their own weight is added: per group of equal count by a popcount again, the rest one by one.
pub(crate) struct GroupedAccumulator<const W: usize> {
    all: CountGroup<W>,
    /// `groups[i]` holds the features that occur i + 2 times.
    groups: [CountGroup<W>; GROUPS],
    /// Number of the groups that are used: none where adding one by one is fast.
    groups_used: usize,
    rest: Accumulator<W>,
    rest_batch: Batch<FeatureCount<W>>,
    weight: fn(u64) -> u64,
}

/// Features of one weight.
struct CountGroup<const W: usize> {
    /// One for each word of the hashes.
    counted: [PositionalPopcount; W],
    batch: Batch<[u64; W]>,
}

const GROUPS: usize = 3;
/// Features that are processed at once.
const BATCH: usize = 64;
/// Number of features up to which adding them one by one is faster than counting bits.
const FEW: usize = 8;

/// Features that are gathered to be processed at once.
struct Batch<T> {
    features: [T; BATCH],
    len: usize,
}

impl<T: Copy> Batch<T> {
    const fn new(none: T) -> Self {
        Self {
            features: [none; BATCH],
            len: 0,
        }
    }

    /// Adds a feature; returns true if the batch is full now.
    #[inline(always)]
    fn push(&mut self, feature: T) -> bool {
        self.features[self.len] = feature;
        self.len += 1;
        self.len == BATCH
    }

    /// Empties the batch and returns its features.
    fn take(&mut self) -> &[T] {
        &self.features[..std::mem::take(&mut self.len)]
    }
}

impl<const W: usize> CountGroup<W> {
    const EMPTY: Self = Self {
        counted: [PositionalPopcount::EMPTY; W],
        batch: Batch::new([0; W]),
    };

    fn reset(&mut self) {
        self.batch.len = 0;
        if self.counted[0].len > 0 {
            self.counted = [PositionalPopcount::EMPTY; W];
        }
    }

    fn add(&mut self, hashes: &[[u64; W]]) {
        for (word, counted) in self.counted.iter_mut().enumerate() {
            counted.add(hashes, word);
        }
    }

    #[inline(always)]
    fn push(&mut self, hash: [u64; W]) {
        if self.batch.push(hash) {
            self.count_batch();
        }
    }

    fn count_batch(&mut self) {
        let hashes = self.batch.take();
        for (word, counted) in self.counted.iter_mut().enumerate() {
            counted.add(hashes, word);
        }
    }

    /// Adds all features with their weight to `sums`.
    fn finish(&mut self, weight: u64, sums: &mut Accumulator<W>) {
        if self.batch.len <= FEW {
            let hashes = self.batch.take().iter();
            sums.add_all(hashes.map(|&hash| (hash, weight)));
        } else {
            self.count_batch();
        }
        if self.counted[0].len > 0 {
            sums.add_group(&mut self.counted, weight);
        }
    }
}

impl<const W: usize> Default for GroupedAccumulator<W> {
    fn default() -> Self {
        Self {
            all: CountGroup::EMPTY,
            groups: [const { CountGroup::EMPTY }; GROUPS],
            groups_used: if has_masks() { 0 } else { GROUPS },
            rest: Accumulator::default(),
            rest_batch: Batch::new(FeatureCount {
                hash: [0; W],
                count: 0,
            }),
            weight: |count| count,
        }
    }
}

impl<const W: usize> GroupedAccumulator<W> {
    /// Forgets all features. `weight` maps a count of at least 1 to a weight and is monotonic.
    pub fn reset(&mut self, weight: fn(u64) -> u64) {
        self.weight = weight;
        self.rest = Accumulator::default();
        self.rest_batch.len = 0;
        self.all.reset();
        self.groups[..self.groups_used]
            .iter_mut()
            .for_each(CountGroup::reset);
    }

    /// Adds distinct features.
    pub fn add(&mut self, features: Counted<W>) {
        self.all.add(features.hashes);
        let hashes = features.hashes.chunks(BATCH);
        for (hashes, counts) in hashes.zip(features.counts.chunks(BATCH)) {
            // Which ones occur more often is hard to predict, so that it must not be a branch.
            let mut repeated = [0; BATCH];
            let mut len = 0;
            for (at, &count) in counts.iter().enumerate() {
                repeated[len % BATCH] = at;
                len += usize::from(count > 1);
            }
            for &at in &repeated[..len] {
                self.add_extra_weight(hashes[at], counts[at]);
            }
        }
    }

    /// Adds the weight of a feature that occurs more than once, less that of one occurrence.
    #[inline(always)]
    fn add_extra_weight(&mut self, hash: [u64; W], count: u64) {
        match self.groups[..self.groups_used].get_mut(count as usize - 2) {
            Some(group) => group.push(hash),
            None => {
                if self.rest_batch.push(FeatureCount { hash, count }) {
                    self.add_rest_batch();
                }
            }
        }
    }

    fn add_rest_batch(&mut self) {
        let features = self.rest_batch.take().iter();
        let once = (self.weight)(1);
        self.rest
            .add_all(features.map(|feature| (feature.hash, (self.weight)(feature.count) - once)));
    }

    /// The simhash, ties to 0; `None` if nothing was added.
    pub fn simhash(&mut self) -> Option<[u64; W]> {
        self.add_rest_batch();
        let once = (self.weight)(1);
        self.all.finish(once, &mut self.rest);
        for (count, group) in (2..).zip(&mut self.groups[..self.groups_used]) {
            group.finish((self.weight)(count) - once, &mut self.rest);
        }
        self.rest.simhash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weight::sqrt_weight;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn grouped_sums_equal_plain_sums(
            features in prop::collection::vec((any::<[u64; 2]>(), 1_u64..12), 0..1000),
            before in 0_u64..500,
            piece in 1_usize..1000,
            groups_used in prop::sample::select(vec![0, GROUPS]),
        ) {
            let mut grouped = GroupedAccumulator::default();
            let mut narrow = GroupedAccumulator::default();
            (grouped.groups_used, narrow.groups_used) = (groups_used, groups_used);
            // Features of an earlier text, which reset() has to forget.
            grouped.reset(|_| 1);
            for n in 0..before {
                grouped.add(Counted { hashes: &[[n, n]], counts: &[n % 6 + 1] });
            }
            grouped.reset(sqrt_weight);
            narrow.reset(sqrt_weight);
            let mut plain = Accumulator::default();
            for &(hash, count) in &features {
                plain.add(hash, sqrt_weight(count));
                narrow.add(Counted { hashes: &[[hash[1]]], counts: &[count] });
            }
            let (hashes, counts): (Vec<_>, Vec<_>) = features.into_iter().unzip();
            for (hashes, counts) in hashes.chunks(piece).zip(counts.chunks(piece)) {
                grouped.add(Counted { hashes, counts });
            }
            let grouped = grouped.simhash();
            prop_assert_eq!(grouped, plain.simhash());
            // Each word for itself.
            prop_assert_eq!(grouped.map(|[_, low]| [low]), narrow.simhash());
        }

        #[test]
        fn vector_and_portable_code_agree(
            features in prop::collection::vec((any::<[u64; 2]>(), 0_u64..1 << 40), 0..100),
        ) {
            let (mut chosen, mut portable) = (Accumulator::default(), Accumulator::default());
            chosen.add_all(features.iter().copied());
            portable.add_all_portable(features.iter().copied());
            prop_assert_eq!(chosen.set, portable.set);
            prop_assert_eq!(chosen.total, portable.total);
        }
    }
}
