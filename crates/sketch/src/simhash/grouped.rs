//! Sums for a simhash of features whose weights depend only on their number of occurrences.

use super::accumulator::{Accumulator, Weighted};
use super::popcount::PositionalPopcount;
use crate::feature_counts::Counted;

/// Simhash accumulator for distinct features whose weights depend on their number of occurrences.
/// Can be reset for another text.
///
/// Most features of a text occur once or a few times. A [`PositionalPopcount`] adds every feature
/// with the weight of a single occurrence. A feature that occurs more often also has an extra
/// weight: its weight minus the weight of a single occurrence. If few features have an extra
/// weight, these are added one by one. Otherwise three more popcounts add the extra weights of the
/// features that occur two, three and four times. Only features that occur more than four times are
/// then added one by one.
pub(crate) struct GroupedAccumulator<const W: usize> {
    /// All features, each counted with the weight of one occurrence.
    all: CountGroup<W>,
    /// `groups[i]` holds the features that occur i + 2 times.
    groups: [CountGroup<W>; GROUPS],
    /// If one call of [`GroupedAccumulator::add`] has at most this many repeated features, they are
    /// added one by one, without `groups`. This is faster for a few features.
    few: usize,
    /// Sums of the features that are added one by one.
    rest: Accumulator<W>,
    /// Features that wait to be added to `rest`.
    rest_batch: Batch<Weighted<W>>,
    /// Maps a number of occurrences to a weight.
    weight: fn(u64) -> u64,
    /// Weight of a feature that occurs once.
    once: u64,
}

/// Features of equal weight, counted by the bits of their hashes.
struct CountGroup<const W: usize> {
    /// Counts of set bits, one popcount for each word of the hashes.
    counted: [PositionalPopcount; W],
    /// Hashes that wait to be counted.
    batch: Batch<[u64; W]>,
}

/// Number of groups: for features that occur 2, 3 and 4 times.
const GROUPS: usize = 3;
/// Number of features that are collected and then processed together.
const BATCH: usize = 64;

/// Buffer of up to [`BATCH`] features, which are processed together when it is full.
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

    /// Adds a feature to the batch. Returns true if the batch is now full.
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

    /// Adds all features of this group to `sums`, each with the weight `weight`.
    fn finish(&mut self, weight: u64, sums: &mut Accumulator<W>) {
        if self.batch.len > 0 {
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
            few: if has_masks() { BATCH } else { BATCH / 4 },
            rest: Accumulator::default(),
            rest_batch: Batch::new(Weighted {
                hash: [0; W],
                weight: 0,
            }),
            weight: |count| count,
            once: 1,
        }
    }
}

impl<const W: usize> GroupedAccumulator<W> {
    /// Forgets all features of the previous text. `weight` maps a number of occurrences, at least
    /// 1, to a weight. More occurrences must not have less weight.
    pub fn reset(&mut self, weight: fn(u64) -> u64) {
        (self.weight, self.once) = (weight, weight(1));
        self.rest = Accumulator::default();
        self.rest_batch.len = 0;
        self.all.reset();
        self.groups.iter_mut().for_each(CountGroup::reset);
    }

    /// Adds features with their numbers of occurrences. Each distinct feature of a text must be
    /// passed only once.
    pub fn add(&mut self, features: Counted<W>) {
        self.all.add(features.hashes);
        let repeated = (features.repeated.iter())
            .map(|&at| (features.hashes[at as usize], features.counts[at as usize]));
        if features.repeated.len() > self.few {
            return repeated.for_each(|(hash, count)| self.add_extra_weight(hash, count));
        }
        for (hash, count) in repeated {
            self.add_single(hash, count);
        }
    }

    /// Adds the extra weight of a feature that occurs `count` times: its weight minus the weight of
    /// a feature that occurs once. Uses the group for `count`, if there is one.
    #[inline(always)]
    fn add_extra_weight(&mut self, hash: [u64; W], count: u64) {
        match self.groups.get_mut(count as usize - 2) {
            Some(group) => group.push(hash),
            None => self.add_single(hash, count),
        }
    }

    /// Adds the extra weight of a feature that occurs `count` times to `rest`: its weight minus the
    /// weight of a feature that occurs once. Uses no group.
    #[inline(always)]
    fn add_single(&mut self, hash: [u64; W], count: u64) {
        let weight = (self.weight)(count) - self.once;
        if self.rest_batch.push(Weighted { hash, weight }) {
            self.rest.add_all(self.rest_batch.take());
        }
    }

    /// Returns the simhash, or `None` if no feature was added. If the features with a bit in their
    /// hashes have the same total weight as the features without it, the bit is 0.
    pub fn simhash(&mut self) -> Option<[u64; W]> {
        self.rest.add_all(self.rest_batch.take());
        self.all.finish(self.once, &mut self.rest);
        for (count, group) in (2..).zip(&mut self.groups) {
            group.finish((self.weight)(count) - self.once, &mut self.rest);
        }
        self.rest.simhash()
    }
}

/// Returns true if the processor has masked additions (AVX-512), which make
/// [`Accumulator::add_all`] fast.
fn has_masks() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::simd::has_avx512();
    #[cfg(not(target_arch = "x86_64"))]
    false
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
            few in prop::sample::select(vec![0, 8, 32, BATCH]),
        ) {
            let mut grouped = GroupedAccumulator::default();
            let mut narrow = GroupedAccumulator::default();
            (grouped.few, narrow.few) = (few, few);
            // Features of an earlier text, which the next reset() must forget.
            grouped.reset(|_| 1);
            for n in 0..before {
                let repeated = &[0][..usize::from(n % 6 > 0)];
                grouped.add(Counted { hashes: &[[n, n]], counts: &[n % 6 + 1], repeated });
            }
            grouped.reset(sqrt_weight);
            narrow.reset(sqrt_weight);
            let mut plain = Accumulator::default();
            for &(hash, count) in &features {
                plain.add(hash, sqrt_weight(count));
                let repeated = &[0][..usize::from(count > 1)];
                narrow.add(Counted { hashes: &[[hash[1]]], counts: &[count], repeated });
            }
            let (hashes, counts): (Vec<_>, Vec<_>) = features.into_iter().unzip();
            for (hashes, counts) in hashes.chunks(piece).zip(counts.chunks(piece)) {
                let repeated: Vec<_> = (0..hashes.len())
                    .filter(|&at| counts[at] > 1)
                    .map(|at| at as u32)
                    .collect();
                grouped.add(Counted { hashes, counts, repeated: &repeated });
            }
            let grouped = grouped.simhash();
            prop_assert_eq!(grouped, plain.simhash());
            // The last word of the hashes alone gives the last word of the simhash.
            prop_assert_eq!(grouped.map(|[_, low]| [low]), narrow.simhash());
        }
    }
}
