//! Counts how often each feature of a text occurs. A feature is identified by its hash, which has
//! `W` words of 64 bits. A short text is counted as a list of hashes, and a longer text in a hash
//! table. When a very long text has filled the table, its features are distributed to partitions,
//! which are counted one by one at the end.
//!
//! For a text of up to some thousand features, the hashes are collected in a list, and the distinct
//! ones are found at the end. For longer texts, up to a million distinct features are counted in
//! one hash table. When the table is full, later hashes are appended to partitions, which are
//! counted one by one at the end. So the table stays small: each later occurrence takes `8 * W`
//! bytes of memory that is written in order.

mod count_table;
mod distinct;
mod text;

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use crate::feature_sink::{FeatureSink, Position, Windows};
use crate::hash::FeatureHash;
use crate::hash::windows::WindowHash;
use crate::memory::{Grow, GrowVec};
use count_table::CountTable;
pub(crate) use count_table::{Counted, FeatureCount};
use distinct::{DistinctFeatures, MAX_LISTED};

/// Minimum capacity of the hash table, in distinct features.
const MIN_FEATURES: usize = 1 << 7;
/// Maximum capacity of the hash table, in distinct features, that is kept between texts. A feature
/// takes 32 or 40 bytes. A larger table is freed.
const KEPT_FEATURES: usize = 1 << 15;
/// Maximum capacity of the hash table, in distinct features. When a table of this size is full, its
/// features and all later hashes go to the partitions.
const MAX_FEATURES: usize = 1 << 20;
/// Binary logarithm of the number of partitions. This many leading bits of a mixed hash choose its
/// partition.
const PARTITION_BITS: u32 = 10;
/// Number of hashes in one chunk: a partition grows by chunks of this size.
const CHUNK: usize = 1024;

/// Part of the features of a long text: the features whose mixed hashes ([`CountTable::mix`]) start
/// with the same bits. It is counted separately, in little memory.
#[derive(Default)]
struct Partition<const W: usize> {
    /// Features of this partition that the hash table had counted when it was full.
    counted: Vec<FeatureCount<W>>,
    /// Hashes of the features that came after the hash table was full, one hash for each
    /// occurrence. The hashes are in chunks, so that growing copies nothing.
    single: Vec<Vec<[u64; W]>>,
}

/// Counts the distinct features of one text after another.
pub(crate) struct FeatureCounter<const W: usize> {
    table: CountTable<W>,
    /// Partitions of a text with many distinct features. Empty until the hash table is full.
    partitions: Vec<Partition<W>>,
    /// Maximum capacity of the hash table; smaller than [`MAX_FEATURES`] in tests.
    max_features: usize,
    /// Hashes that were not counted yet: the hashes of one batch of features, or of a whole short
    /// text.
    hashes: Vec<[u64; W]>,
    /// True while the text is short: all its hashes are in `hashes`.
    short: bool,
    distinct: DistinctFeatures<W>,
    /// Working memory for the result of [`CountTable::counted`].
    repeated: Vec<u32>,
}

impl<const W: usize> FeatureSink for FeatureCounter<W>
where
    [u64; W]: WindowHash,
{
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        // Two short loops, one that hashes and one that counts, are faster than one loop.
        (self.hashes).grow_all(features.map(|feature| FeatureHash::new(&bytes[feature])));
        self.count_long();
    }

    fn add_windows(&mut self, windows: Windows<impl Position>) {
        for windows in windows.pieces(WINDOWS) {
            self.hashes.ensure_room(WINDOWS);
            WindowHash::push_windows(windows, &mut self.hashes);
            self.count_long();
        }
    }
}

/// Number of features that are hashed together before they are counted. Separate loops for hashing
/// and for counting are faster than one loop.
const WINDOWS: usize = 512;

impl<const W: usize> Default for FeatureCounter<W> {
    fn default() -> Self {
        Self::with_max_features(MAX_FEATURES)
    }
}

impl<const W: usize> FeatureCounter<W> {
    fn with_max_features(max_features: usize) -> Self {
        let random = RandomState::new();
        let key = std::array::from_fn(|word| random.hash_one(word));
        Self {
            table: CountTable::new(MIN_FEATURES, key),
            partitions: Vec::new(),
            max_features,
            hashes: Vec::new(),
            short: true,
            distinct: DistinctFeatures::default(),
            repeated: Vec::new(),
        }
    }

    /// Forgets all features, and prepares for a text with about `expected` distinct features.
    pub fn reset(&mut self, expected: usize) {
        self.hashes.clear();
        self.partitions.clear();
        self.short = expected <= MAX_LISTED;
        self.reset_table(if self.short { 0 } else { expected });
    }

    fn reset_table(&mut self, expected: usize) {
        let features = expected
            .next_power_of_two()
            .clamp(MIN_FEATURES, KEPT_FEATURES);
        self.table
            .reset(features.min(self.max_features), KEPT_FEATURES);
    }

    /// Counts the collected hashes, unless the text is still short. While the text has at most
    /// [`MAX_LISTED`] hashes, they stay in `hashes`. After that, they are counted in the hash table
    /// or the partitions.
    #[inline]
    fn count_long(&mut self) {
        if self.short {
            if self.hashes.len() <= MAX_LISTED {
                return;
            }
            self.short = false;
            self.reset_table(2 * MAX_LISTED);
        }
        self.count_in_table();
    }

    /// Counts the hashes in the vector `hashes`, with the hash table or the partitions, and empties
    /// the vector.
    fn count_in_table(&mut self) {
        let mut hashes = std::mem::take(&mut self.hashes);
        self.add_hashes(&hashes);
        hashes.clear();
        self.hashes = hashes;
    }

    /// Counts one occurrence for each hash. Uses the hash table, or the partitions once the table
    /// is full.
    fn add_hashes(&mut self, mut hashes: &[[u64; W]]) {
        while self.partitions.is_empty() && !hashes.is_empty() {
            let (now, later) = hashes.split_at(hashes.len().min(self.table.room()));
            self.table.add(now.iter().map(|&hash| (hash, 1)));
            hashes = later;
            if self.table.room() == 0 {
                if self.table.capacity() < self.max_features {
                    self.table.grow();
                } else {
                    self.partition();
                }
            }
        }
        for &hash in hashes {
            let at = self.table.mix(hash) >> (64 - PARTITION_BITS);
            let chunks = &mut self.partitions[at as usize].single;
            match chunks.last_mut() {
                Some(chunk) if chunk.len() < CHUNK => chunk.push(hash),
                _ => {
                    let mut chunk = Vec::new();
                    chunk.ensure_room(CHUNK);
                    chunk.push(hash);
                    chunks.grow_push(chunk);
                }
            }
        }
    }

    /// Moves the features of the full hash table to partitions.
    fn partition(&mut self) {
        self.partitions.ensure_room(1 << PARTITION_BITS);
        self.partitions
            .resize_with(1 << PARTITION_BITS, Partition::default);
        for feature in self.table.counted(&mut self.repeated).iter() {
            let at = self.table.mix(feature.hash) >> (64 - PARTITION_BITS);
            self.partitions[at as usize].counted.grow_push(feature);
        }
        self.table
            .reset(MIN_FEATURES.min(self.max_features), KEPT_FEATURES);
    }

    /// Passes every distinct feature of the text with its count to `each`, and then forgets all
    /// features. Each call of `each` gets many features, in no particular order, and no feature is
    /// in two calls. Calls `check` once for every [`CHUNK`] hashes in the partitions.
    pub fn drain(&mut self, mut each: impl FnMut(Counted<W>), check: &mut dyn FnMut()) {
        if std::mem::replace(&mut self.short, true) {
            self.distinct.count(&mut self.hashes, self.table.key);
            each(self.distinct.counted());
            // The list now holds the features that `distinct` could not separate, if any.
            if self.hashes.is_empty() {
                return;
            }
            self.count_in_table();
        }
        each(self.table.counted(&mut self.repeated));
        self.table.reset(MIN_FEATURES, KEPT_FEATURES);
        for partition in std::mem::take(&mut self.partitions) {
            // Most features of a text with partitions are distinct, so a table with room for all
            // hashes need not grow. The upper limit is for a feature that occurs many millions of
            // times.
            let most = partition.counted.len() + CHUNK * partition.single.len();
            self.table.reset(
                most.next_power_of_two()
                    .clamp(MIN_FEATURES, MAX_FEATURES / 2),
                KEPT_FEATURES,
            );
            for feature in partition.counted {
                self.add_growing(feature.hash, feature.count);
            }
            for chunk in partition.single {
                check();
                for hash in chunk {
                    self.add_growing(hash, 1);
                }
            }
            each(self.table.counted(&mut self.repeated));
        }
        self.table.reset(MIN_FEATURES, KEPT_FEATURES);
        self.repeated.clear();
        self.repeated.shrink_to(KEPT_FEATURES);
    }

    /// Counts `count` occurrences of a feature in the hash table, which grows as needed.
    fn add_growing(&mut self, hash: [u64; W], count: u64) {
        self.table.add(std::iter::once((hash, count)));
        if self.table.room() == 0 {
            self.table.grow();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl<const W: usize> FeatureCounter<W> {
        fn add(&mut self, hashes: &[[u64; W]]) {
            self.hashes.extend_from_slice(hashes);
            self.count_long();
        }
    }

    fn drained<const W: usize>(counts: &mut FeatureCounter<W>) -> BTreeMap<[u64; W], u64> {
        let mut all = BTreeMap::new();
        counts.drain(
            |features| {
                for feature in features.iter() {
                    let before = all.insert(feature.hash, feature.count);
                    assert_eq!(before, None, "{:?} passed twice", feature.hash);
                }
            },
            &mut || (),
        );
        all
    }

    proptest! {
        /// The counts equal those of a map. The table is small, so that it grows and uses
        /// partitions.
        #[test]
        fn counts_are_right(
            hashes in prop::collection::vec(0_u64..3000, 0..6000),
            piece in 1_usize..500,
            spread in prop::bool::ANY,
            long in prop::bool::ANY,
        ) {
            // The two words together identify a feature.
            let hashes: Vec<[u64; 2]> = (hashes.iter())
                .map(|&h| [h / 7, if spread { (h << 52) | (h % 50) } else { h % 50 }])
                .collect();
            let mut counts = FeatureCounter::with_max_features(512);
            counts.reset(if long { 2 * MAX_LISTED } else { 0 });
            let mut expected = BTreeMap::new();
            for &hash in &hashes {
                *expected.entry(hash).or_insert(0) += 1;
            }
            for _ in 0..2 {
                hashes.chunks(piece).for_each(|part| counts.add(part));
                prop_assert_eq!(&drained(&mut counts), &expected);
            }
        }
    }

    #[test]
    fn partitions_are_checked_and_counted() {
        let mut counts = FeatureCounter::with_max_features(1 << 11);
        counts.reset(0);
        let hashes: Vec<[u64; 1]> = (0..400_000).map(|hash| [hash]).collect();
        counts.add(&hashes);
        counts.add(&hashes[..100_000]);
        let mut checks = 0;
        let mut sum = (0, 0);
        counts.drain(
            |features| {
                sum.0 += features.counts.len();
                sum.1 += features.counts.iter().sum::<u64>();
            },
            &mut || checks += 1,
        );
        assert_eq!(sum, (400_000, 500_000));
        assert!(checks >= 256, "{checks}");
    }
}
