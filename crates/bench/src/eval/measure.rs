//! Counts the pairs of a set by the distance of their fingerprints, separately for similar and for
//! unrelated documents. Computes precision and recall from the counts.
use super::configurations::Configuration;
use super::kind::{Kind, Sketch};
use super::set::Set;
use std::num::NonZero;
use std::thread;

/// Lower bounds of the similarity bands (ranges of Jaccard similarities), in descending order. A
/// pair belongs to the first band whose lower bound is at most the pair's Jaccard similarity.
pub const BANDS: [f32; 12] = [
    0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.0,
];
/// Radii at which the tables and the plots show results, in bits of a 64-bit fingerprint.
pub const RADII: [u32; 5] = [3, 6, 8, 10, 12];
/// Largest possible distance between two sketches of any kind.
const MOST_BITS: usize = 128;

/// Numbers of pairs of documents, by the distance of their fingerprints.
#[derive(Clone, Copy)]
pub struct Histogram {
    counts: [u64; MOST_BITS + 1],
    /// Number of pairs without a distance, because at least one of the texts has no fingerprint. No
    /// search finds these pairs.
    never: u64,
}

impl Histogram {
    pub const EMPTY: Self = Histogram {
        counts: [0; MOST_BITS + 1],
        never: 0,
    };

    /// Counts a pair of documents at this distance. `None` means that one of the texts has no
    /// fingerprint.
    pub fn add(&mut self, distance: Option<u32>) {
        match distance {
            Some(distance) => self.counts[distance as usize] += 1,
            None => self.never += 1,
        }
    }

    /// Adds the counts of `other` to this histogram.
    pub fn merge(&mut self, other: &Self) {
        self.never += other.never;
        for (count, other) in self.counts.iter_mut().zip(other.counts) {
            *count += other;
        }
    }

    /// Returns the number of all counted pairs, including pairs without a distance.
    pub fn total(&self) -> u64 {
        self.never + self.counts.iter().sum::<u64>()
    }

    /// Returns the number of pairs whose distance is at most `radius`.
    pub fn within(&self, radius: u32) -> u64 {
        self.counts[..=radius as usize].iter().sum()
    }

    /// Returns the share of the counted pairs whose distance is at most `radius`, or `None` if no
    /// pair was counted.
    pub fn share_within(&self, radius: u32) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.within(radius) as f64 / total as f64)
    }
}

/// Histograms of the distances of all pairs of a set, for one configuration.
#[derive(Clone)]
pub struct Distances {
    /// Kind of the fingerprints or signatures that were compared.
    pub kind: Kind,
    /// Histograms of the similar pairs (`near.tsv`), one for each band of [`BANDS`].
    pub bands: [Histogram; BANDS.len()],
    /// Histogram of the related pairs: both documents are in the same cluster, but `near.tsv` does
    /// not list the pair. Such a pair is less similar than all pairs in `near.tsv`.
    pub related: Histogram,
    /// Histogram of the pairs of documents in different clusters.
    pub unrelated: Histogram,
}

/// Precision and recall of a search for duplicates with one radius.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Share of duplicates among the pairs that the radius finds.
    pub precision: f64,
    /// Share of the duplicates that the radius finds.
    pub recall: f64,
}

impl Quality {
    /// Returns the F1 score: the harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        2.0 * self.precision * self.recall / (self.precision + self.recall)
    }
}

impl Distances {
    const EMPTY: Self = Distances {
        kind: Kind::Simhash64,
        bands: [Histogram::EMPTY; BANDS.len()],
        related: Histogram::EMPTY,
        unrelated: Histogram::EMPTY,
    };

    /// Makes the sketches of all texts of `set` by `configuration`, and compares all pairs of them.
    pub fn measure(set: &Set, configuration: &Configuration) -> Self {
        let maker = (configuration.prepare)(set);
        let made = in_parallel(|worker, workers| {
            let own = set.texts.iter().skip(worker).step_by(workers);
            own.map(|text| maker(text)).collect::<Vec<_>>()
        });
        let count = set.texts.len();
        let mut made: Vec<_> = made.into_iter().map(Vec::into_iter).collect();
        let workers = made.len();
        let next = |i: usize| made[i % workers].next().expect("one for each text");
        let sketches: Vec<Option<Sketch>> = (0..count).map(next).collect();
        let parts = in_parallel(|worker, workers| {
            let mut part = Distances::EMPTY;
            for first in (worker..count).step_by(workers) {
                part.add_pairs(set, &sketches, first);
            }
            part
        });
        let mut all = parts.into_iter().fold(Distances::EMPTY, |mut all, part| {
            for (band, other) in all.bands.iter_mut().zip(&part.bands) {
                band.merge(other);
            }
            all.related.merge(&part.related);
            all.unrelated.merge(&part.unrelated);
            all
        });
        all.kind = configuration.kind;
        all
    }

    /// Adds pairs to the histograms: the document with the number `first` forms a pair with each
    /// document that has a greater number.
    fn add_pairs(&mut self, set: &Set, sketches: &[Option<Sketch>], first: usize) {
        let distance = |second: usize| -> Option<u32> {
            Some(
                sketches[first]
                    .as_ref()?
                    .distance(sketches[second].as_ref()?),
            )
        };
        let cluster = set.cluster[first];
        for second in first + 1..sketches.len() {
            // The documents of most pairs are in different clusters. Such pairs need no lookup in
            // `near`.
            if set.cluster[second] != cluster {
                self.unrelated.add(distance(second));
                continue;
            }
            match set.near.get(&(first as u32, second as u32)) {
                Some(similarity) => {
                    let band = BANDS.iter().position(|bound| similarity >= bound);
                    self.bands[band.unwrap_or(BANDS.len() - 1)].add(distance(second));
                }
                None if set.ignored.contains(&(first as u32, second as u32)) => (),
                None => self.related.add(distance(second)),
            }
        }
    }

    /// Converts a radius in bits of a 64-bit fingerprint to the corresponding distance of this kind
    /// of sketch.
    pub fn scaled(&self, radius: u32) -> u32 {
        radius * self.kind.distance_per_bit()
    }

    /// Returns the histogram of the similar pairs (`near.tsv`) whose similarity is at least `from`
    /// and below `to`. `from` must be a bound of [`BANDS`], and `to` a bound or infinity.
    pub fn between(&self, from: f32, to: f32) -> Histogram {
        let mut all = Histogram::EMPTY;
        for (bound, band) in BANDS.iter().zip(&self.bands) {
            if (from..to).contains(bound) {
                all.merge(band);
            }
        }
        all
    }

    /// Returns the histogram of the dissimilar pairs: all pairs that `near.tsv` does not list,
    /// related or unrelated. A dissimilar pair is less similar than each pair in `near.tsv`.
    pub fn below(&self) -> Histogram {
        let mut all = self.related;
        all.merge(&self.unrelated);
        all
    }

    /// Returns the precision and the recall of a search for duplicates with the radius `radius`. A
    /// pair is a duplicate if its similarity is at least `duplicate`, which must be a bound of
    /// [`BANDS`]. Returns `None` if the search finds no duplicate.
    pub fn quality(&self, duplicate: f32, radius: u32) -> Option<Quality> {
        let duplicates = self.between(duplicate, f32::INFINITY);
        let found = duplicates.within(radius) as f64;
        let wrong = self.between(0.0, duplicate).within(radius) + self.below().within(radius);
        (found > 0.0).then(|| Quality {
            precision: found / (found + wrong as f64),
            recall: found / duplicates.total() as f64,
        })
    }

    /// Returns the recall at a given rate of errors: the share of the similar pairs that a search
    /// finds if its radius is so large that it also finds the share `wrong` (0 to 1) of the
    /// dissimilar pairs. Pairs are similar here if their similarity is at least `from` and below
    /// `to`. Dissimilar pairs are those of [`Self::below`]. If no radius gives exactly the share
    /// `wrong`, interpolates linearly between two successive radii. Returns `None` if there are no
    /// similar or no dissimilar pairs.
    pub fn found_beside(&self, from: f32, to: f32, wrong: f64) -> Option<f64> {
        let (pairs, others) = (self.between(from, to), self.below());
        let mut last = (0.0, 0.0);
        for radius in 0..=self.kind.width() {
            let next = (others.share_within(radius)?, pairs.share_within(radius)?);
            if next.0 > wrong {
                let part = (wrong - last.0) / (next.0 - last.0);
                return Some(last.1 + part * (next.1 - last.1));
            }
            last = next;
        }
        Some(last.1)
    }

    /// Returns the radius with the best F1 score, and the precision and recall at this radius. Of
    /// radii with equal scores, returns the smallest. A pair is a duplicate if its similarity is at
    /// least `duplicate`. Returns `None` if no radius finds a duplicate.
    pub fn best(&self, duplicate: f32) -> Option<(u32, Quality)> {
        let all = (0..=self.kind.width()).filter_map(|r| Some((r, self.quality(duplicate, r)?)));
        // `max_by` returns the last of equal maxima.
        let all = all.rev();
        all.max_by(|(_, a), (_, b)| a.f1().total_cmp(&b.f1()))
    }
}

/// Calls `work` in one thread for each processor. The arguments of `work` are the number of the
/// thread, from 0, and the number of threads. Returns the results in the order of the thread
/// numbers.
fn in_parallel<T: Send>(work: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = (0..workers)
            .map(|worker| scope.spawn(move || work(worker, workers)))
            .collect();
        let joined = started.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .map(|result| result.expect("a worker panicked"))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::configurations::CONFIGURATIONS;
    use super::*;
    use std::collections::{HashMap, HashSet};

    /// Distances of five documents with given fingerprints. Documents 0 and 1 are similar, 1 and 2
    /// less so. 0 and 2 are in one cluster through 1. 3 is unrelated, and 4 has no fingerprint.
    fn measured() -> Distances {
        measured_without(&[])
    }

    fn measured_without(ignored: &[(u32, u32)]) -> Distances {
        let set = Set {
            name: "five".to_owned(),
            texts: ["0", "1", "7", "ffff", ""].map(str::to_owned).to_vec(),
            near: HashMap::from([((0, 1), 0.96), ((1, 2), 0.5)]),
            ignored: HashSet::from_iter(ignored.iter().copied()),
            listed: Vec::new(),
            cluster: vec![0, 0, 0, 3, 4],
        };
        let configuration = Configuration {
            name: "given",
            kind: Kind::Simhash64,
            plotted: false,
            prepare: |_| Box::new(|text| Some(Sketch::Bits(u128::from_str_radix(text, 16).ok()?))),
        };
        Distances::measure(&set, &configuration)
    }

    #[test]
    fn every_pair_is_counted_once_where_it_belongs() {
        let all = measured();
        assert_eq!(
            (
                all.bands[0].total(),
                all.bands[0].within(0),
                all.bands[0].within(1)
            ),
            (1, 0, 1)
        );
        let some = all.between(0.5, 0.55);
        assert_eq!((some.total(), some.within(1), some.within(2)), (1, 0, 1));
        assert_eq!(
            (
                all.related.total(),
                all.related.within(2),
                all.related.within(3)
            ),
            (1, 0, 1)
        );
        // The four pairs of document 4 have no distance.
        assert_eq!((all.unrelated.total(), all.unrelated.within(64)), (7, 3));
        assert_eq!((all.unrelated.within(12), all.unrelated.within(13)), (0, 1));
        assert_eq!(all.below().total(), 8);
        assert_eq!(all.between(0.0, f32::INFINITY).total(), 2);
        assert_eq!(all.between(0.9, 0.95).share_within(64), None);
        assert_eq!(all.between(0.95, 2.0).share_within(1), Some(1.0));
    }

    #[test]
    fn what_does_not_count_is_in_no_number() {
        let (with, without) = (measured(), measured_without(&[(0, 2)]));
        assert_eq!((with.related.total(), without.related.total()), (1, 0));
        assert_eq!(without.unrelated.total(), with.unrelated.total());
        assert_eq!(without.between(0.0, 1.0).total(), 2);
    }

    #[test]
    fn precision_and_recall() {
        let all = measured();
        let quality = |duplicate, radius| {
            all.quality(duplicate, radius)
                .map(|q| (q.precision, q.recall))
        };
        assert_eq!(quality(0.9, 0), None);
        assert_eq!(quality(0.9, 1), Some((1.0, 1.0)));
        assert_eq!(quality(0.9, 2), Some((0.5, 1.0)));
        assert_eq!(quality(0.9, 64), Some((1.0 / 6.0, 1.0)));
        assert_eq!(quality(0.5, 1), Some((1.0, 0.5)));
        assert_eq!(
            all.best(0.5),
            Some((
                2,
                Quality {
                    precision: 1.0,
                    recall: 1.0
                }
            ))
        );
    }

    #[test]
    fn shares_beside_others() {
        let all = measured();
        let beside = |wrong| all.found_beside(0.95, 2.0, wrong);
        // Of the eight pairs of `below`, one is within distance 3, two within 13 and three within
        // 15. The similar pair is within 1.
        assert_eq!(beside(0.0), Some(1.0));
        assert_eq!(all.found_beside(0.9, 0.95, 0.5), None);
        // The similar pairs have distances 3 and 13 now. A share between those of two radii is
        // interpolated.
        let mut far = all.clone();
        far.bands[0] = Histogram::EMPTY;
        far.bands[0].add(Some(3));
        far.bands[0].add(Some(13));
        let beside = |wrong| far.found_beside(0.95, 2.0, wrong);
        assert_eq!(beside(0.0), Some(0.0));
        assert_eq!(beside(1.0 / 16.0), Some(0.25));
        assert_eq!(beside(1.0 / 8.0), Some(0.5));
        assert_eq!(beside(3.0 / 16.0), Some(0.75));
        assert_eq!(beside(1.0), Some(1.0));
    }

    /// With each configuration, a radius of 12 bits (converted by [`Distances::scaled`]) finds all
    /// pairs of texts that differ in one word, and no pair of texts without a common word.
    #[test]
    fn real_fingerprints_tell_similar_from_unrelated() {
        let word = |i: usize| format!("{:x}", (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let text = |from: usize, changed: usize| {
            let words =
                (from..from + 300).map(|i| if i == changed { "new".into() } else { word(i) });
            words.collect::<Vec<String>>().join(" ")
        };
        let mut set = Set {
            name: "made".to_owned(),
            texts: Vec::new(),
            near: HashMap::new(),
            ignored: HashSet::new(),
            listed: Vec::new(),
            cluster: Vec::new(),
        };
        // There are so many texts that a feature which two of them share is not common.
        for i in 0..60_u32 {
            set.near.insert((2 * i, 2 * i + 1), 0.98);
            for edited in 0..2 {
                let from = 1000 * i as usize;
                set.texts.push(text(from, from + 500 - 400 * edited));
                set.cluster.push(2 * i);
            }
        }
        for configuration in CONFIGURATIONS {
            let all = Distances::measure(&set, configuration);
            assert_eq!((all.bands[0].total(), all.unrelated.total()), (60, 7080));
            assert_eq!(
                all.bands[0].share_within(all.scaled(12)),
                Some(1.0),
                "{}",
                configuration.name
            );
            assert!(
                all.unrelated.within(all.scaled(12)) == 0,
                "{}",
                configuration.name
            );
            let (radius, quality) = all.best(0.95).unwrap();
            assert!(
                quality.f1() == 1.0 && radius < all.scaled(16),
                "{}",
                configuration.name
            );
        }
    }
}
