//! How often each feature occurs, keyed by its hash of `W` words of 64 bits.
//!
//! Up to a million distinct features live in one open-addressing table. Beyond that the hashes are
//! only appended to partitions, which are counted one after the other at the end: sequential memory
//! of `8 * W` bytes an occurrence instead of a table that grows with every distinct feature.

use std::hash::{BuildHasher, RandomState};

use crate::hash::FeatureHash;
use crate::shingle::FeatureSink;

#[derive(Clone, Copy)]
struct Slot<const W: usize> {
    hash: [u64; W],
    /// 0 in an empty slot.
    count: u64,
}

impl<const W: usize> Slot<W> {
    const EMPTY: Self = Self {
        hash: [0; W],
        count: 0,
    };
}

/// Slots of the smallest table.
const MIN_SLOTS: usize = 1 << 8;
/// Slots (16 bytes each, or 24) of the largest table that is kept from one text to the next.
const KEPT_SLOTS: usize = 1 << 16;
/// Slots of the table when the partitions take over.
const MAX_SLOTS: usize = 1 << 21;
/// log2 of the number of partitions.
const PARTITION_BITS: u32 = 10;
/// Hashes in a chunk of a partition.
const CHUNK: usize = 1024;

/// Linear probing, at most half full, a power of two of slots.
struct Table<const W: usize> {
    /// The first `mask + 1` are the table; what is beyond waits, empty, for a larger text.
    slots: Vec<Slot<W>>,
    mask: usize,
    /// Which slots are in use, so that neither reading nor emptying the table looks at the others.
    /// The first `len` count; half as many as slots, and one to write into.
    used: Vec<u32>,
    len: usize,
    key: [u64; 2],
}

impl<const W: usize> Table<W> {
    /// Spreads hashes over slots and partitions. Keyed at random, because anyone can make features
    /// whose hashes agree in many bits and so would pile up in one stretch of the table; counts, and
    /// so fingerprints, do not depend on the key.
    #[inline]
    fn mix(&self, hash: [u64; W]) -> u64 {
        hash.iter().fold(0, |mixed, word| {
            let product = u128::from(word ^ mixed ^ self.key[0]) * u128::from(self.key[1] | 1);
            (product as u64) ^ (product >> 64) as u64
        })
    }

    /// Empties the table, which then has `slots` slots, a power of two. No large one is kept.
    fn reset(&mut self, slots: usize) {
        if slots > self.slots.len() || self.slots.len() > KEPT_SLOTS.max(slots) {
            *self = Self::new(slots, self.key);
        } else {
            for &at in &self.used[..self.len] {
                self.slots[at as usize] = Slot::EMPTY;
            }
            self.len = 0;
            self.mask = slots - 1;
        }
    }

    fn new(slots: usize, key: [u64; 2]) -> Self {
        Self {
            slots: vec![Slot::EMPTY; slots],
            mask: slots - 1,
            used: vec![0; slots / 2 + 1],
            len: 0,
            key,
        }
    }

    #[inline(always)]
    fn add(&mut self, hash: [u64; W], count: u64) {
        let mask = self.mask;
        let mut at = self.mix(hash) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            // A new feature and a known one take the same way: which of them comes next is hard to
            // predict, for a processor too.
            let new = slot.count == 0;
            if new | (slot.hash == hash) {
                slot.hash = hash;
                slot.count += count;
                self.used[self.len] = at as u32;
                self.len += usize::from(new);
                return;
            }
            at = (at + 1) & mask;
        }
    }

    fn is_full(&self) -> bool {
        2 * self.len > self.mask
    }

    #[cold]
    fn grow(&mut self) {
        let larger = Self::new(4 * (self.mask + 1), self.key);
        for slot in std::mem::replace(self, larger).iter() {
            self.add(slot.hash, slot.count);
        }
    }

    fn iter(&self) -> impl Iterator<Item = Slot<W>> {
        self.used[..self.len]
            .iter()
            .map(|&at| self.slots[at as usize])
    }
}

#[derive(Default)]
struct Partition<const W: usize> {
    /// What the table held when the partitions took over.
    counted: Vec<Slot<W>>,
    /// One occurrence each; chunks, so that growing copies nothing.
    single: Vec<Vec<[u64; W]>>,
}

/// Counts of the features of one text; reusable.
pub(crate) struct FeatureCounts<const W: usize> {
    table: Table<W>,
    /// Empty until the table is full.
    partitions: Vec<Partition<W>>,
    max_slots: usize,
    /// Of the features of one batch.
    hashes: Vec<[u64; W]>,
}

impl<const W: usize> FeatureSink for FeatureCounts<W>
where
    [u64; W]: FeatureHash,
{
    fn add_all<'a>(&mut self, features: impl Iterator<Item = &'a [u8]>) {
        // First all hashes, then all look-ups: each is a loop that the processor does well.
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        hashes.extend(features.map(<[u64; W]>::of));
        self.add_hashes(&hashes);
        self.hashes = hashes;
    }
}

impl<const W: usize> Default for FeatureCounts<W> {
    fn default() -> Self {
        Self::with_max_slots(MAX_SLOTS)
    }
}

impl<const W: usize> FeatureCounts<W> {
    fn with_max_slots(max_slots: usize) -> Self {
        let random = RandomState::new();
        let key = [random.hash_one(0), random.hash_one(1)];
        Self {
            table: Table::new(MIN_SLOTS, key),
            partitions: Vec::new(),
            max_slots,
            hashes: Vec::new(),
        }
    }

    /// Forgets everything; `expected` is a guess at the number of distinct features to come.
    pub fn reset(&mut self, expected: usize) {
        self.partitions.clear();
        let slots = (2 * expected)
            .next_power_of_two()
            .clamp(MIN_SLOTS, KEPT_SLOTS);
        self.table.reset(slots.min(self.max_slots));
    }

    /// Counts one occurrence of each of the features.
    fn add_hashes(&mut self, hashes: &[[u64; W]]) {
        let mut hashes = hashes.iter();
        if self.partitions.is_empty() {
            for &hash in hashes.by_ref() {
                self.table.add(hash, 1);
                if self.table.is_full() {
                    if self.table.mask < self.max_slots - 1 {
                        self.table.grow();
                    } else {
                        self.partition();
                        break;
                    }
                }
            }
        }
        for &hash in hashes {
            let at = self.table.mix(hash) >> (64 - PARTITION_BITS);
            let chunks = &mut self.partitions[at as usize].single;
            match chunks.last_mut() {
                Some(chunk) if chunk.len() < CHUNK => chunk.push(hash),
                _ => {
                    let mut chunk = Vec::with_capacity(CHUNK);
                    chunk.push(hash);
                    chunks.push(chunk);
                }
            }
        }
    }

    fn partition(&mut self) {
        self.partitions
            .resize_with(1 << PARTITION_BITS, Partition::default);
        for slot in self.table.iter() {
            let at = self.table.mix(slot.hash) >> (64 - PARTITION_BITS);
            self.partitions[at as usize].counted.push(slot);
        }
        self.table.reset(MIN_SLOTS.min(self.max_slots));
    }

    /// Hands over every distinct feature with its count, in no particular order, and forgets them.
    /// `check` is called between pieces of the work.
    pub fn drain(&mut self, mut each: impl FnMut([u64; W], u64), check: &mut dyn FnMut()) {
        self.table
            .iter()
            .for_each(|slot| each(slot.hash, slot.count));
        self.table.reset(MIN_SLOTS);
        for partition in std::mem::take(&mut self.partitions) {
            // Room for all at once if they are distinct, as most are when there are so many; but not
            // for what may be one feature many millions of times.
            let most = partition.counted.len() + CHUNK * partition.single.len();
            self.table.reset(
                (2 * most)
                    .next_power_of_two()
                    .clamp(MIN_SLOTS, MAX_SLOTS / 2),
            );
            for slot in partition.counted {
                self.add_growing(slot.hash, slot.count);
            }
            for chunk in partition.single {
                check();
                for hash in chunk {
                    self.add_growing(hash, 1);
                }
            }
            self.table
                .iter()
                .for_each(|slot| each(slot.hash, slot.count));
        }
        self.table.reset(MIN_SLOTS);
    }

    fn add_growing(&mut self, hash: [u64; W], count: u64) {
        self.table.add(hash, count);
        if self.table.is_full() {
            self.table.grow();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn drained<const W: usize>(counts: &mut FeatureCounts<W>) -> BTreeMap<[u64; W], u64> {
        let mut all = BTreeMap::new();
        counts.drain(
            |hash, count| assert_eq!(all.insert(hash, count), None, "{hash:?} handed over twice"),
            &mut || (),
        );
        all
    }

    proptest! {
        /// A tiny table, so that growing and the partitions are reached.
        #[test]
        fn counts_are_right(
            hashes in prop::collection::vec(0_u64..3000, 0..6000),
            piece in 1_usize..500,
            spread in prop::bool::ANY,
        ) {
            // The two words differ in which features they tell apart.
            let hashes: Vec<[u64; 2]> = (hashes.iter())
                .map(|&h| [h / 7, if spread { (h << 52) | (h % 50) } else { h % 50 }])
                .collect();
            let mut counts = FeatureCounts::with_max_slots(1024);
            counts.reset(0);
            let mut expected = BTreeMap::new();
            for &hash in &hashes {
                *expected.entry(hash).or_insert(0) += 1;
            }
            for _ in 0..2 {
                hashes.chunks(piece).for_each(|part| counts.add_hashes(part));
                prop_assert_eq!(&drained(&mut counts), &expected);
            }
        }
    }

    #[test]
    fn partitions_are_checked_and_counted() {
        let mut counts = FeatureCounts::with_max_slots(1 << 12);
        counts.reset(0);
        let hashes: Vec<[u64; 1]> = (0..400_000).map(|hash| [hash]).collect();
        counts.add_hashes(&hashes);
        counts.add_hashes(&hashes[..100_000]);
        let mut checks = 0;
        let mut sum = (0, 0);
        counts.drain(|_, count| sum = (sum.0 + 1, sum.1 + count), &mut || {
            checks += 1
        });
        assert_eq!(sum, (400_000, 500_000));
        assert!(checks >= 256, "{checks}");
    }
}
