//! Hash table that counts features by their hashes.
//!
//! Features are stored in a vector in order of arrival. A hash table of four-byte slots holds
//! their positions. At most a quarter of the slots is used, so probe chains are short, and a
//! lookup takes few instructions and hardly any branch misprediction. Four-byte slots keep the
//! table in the first caches nevertheless.

use std::hint::select_unpredictable;

use crate::memory::GrowVec;

/// Hash and number of occurrences of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeatureCount<const W: usize> {
    pub hash: [u64; W],
    pub count: u64,
}

/// Distinct features and the number of occurrences of each.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a, const W: usize> {
    pub hashes: &'a [[u64; W]],
    /// Number of occurrences of each feature.
    pub counts: &'a [u64],
    /// Positions of the features that occur more than once.
    pub repeated: &'a [u32],
}

impl<'a, const W: usize> Counted<'a, W> {
    /// Iterates over the features.
    pub fn iter(self) -> impl Iterator<Item = FeatureCount<W>> + 'a {
        (self.hashes.iter().zip(self.counts)).map(|(&hash, &count)| FeatureCount { hash, count })
    }
}

/// Number of slots for each feature.
pub(super) const SLOTS: usize = 4;

/// Counts features by linear probing over a power of two of slots.
pub(super) struct CountTable<const W: usize> {
    /// Position of a feature in `hashes`, from 1; 0 if the slot is empty. The table uses a prefix
    /// of the slots. The others are empty, and are kept for a larger text.
    slots: Vec<u32>,
    /// 64 minus the binary logarithm of the number of used slots.
    shift: u32,
    /// The first `len` elements are the features. There is room for one more than the capacity.
    hashes: Vec<[u64; W]>,
    /// Number of occurrences of each feature; 0 beyond `len`.
    counts: Vec<u64>,
    len: usize,
    pub key: [u64; W],
}

impl<const W: usize> CountTable<W> {
    /// Creates an empty table of a capacity that is a power of two.
    pub fn new(features: usize, key: [u64; W]) -> Self {
        let mut table = Self {
            slots: Vec::new(),
            shift: 0,
            hashes: Vec::new(),
            counts: Vec::new(),
            len: 0,
            key,
        };
        table.make_slots(features);
        table
    }

    fn make_slots(&mut self, features: usize) {
        // Frees the old slots before the new ones are allocated.
        self.slots = Vec::new();
        self.hashes.grow_exact(features + 1, [0; W]);
        self.counts.grow_exact(features + 1, 0);
        // Last: if this unwinds, the table has no slots and so no capacity.
        self.slots.grow_exact(SLOTS * features, 0);
        self.shift = shift(self.slots.len());
    }

    /// Empties the table and sets its capacity. Memory for more than `kept` features is freed.
    pub fn reset(&mut self, features: usize, kept: usize) {
        let slots = SLOTS * features;
        if slots > self.slots.len() || self.slots.len() > SLOTS * kept.max(features) {
            *self = Self::new(features, self.key);
        } else {
            if self.len > 0 {
                let used = self.used_slots();
                self.slots[..used].fill(0);
                self.counts[..self.len].fill(0);
                self.len = 0;
            }
            self.shift = shift(slots);
        }
    }

    fn used_slots(&self) -> usize {
        1 << (64 - self.shift)
    }

    /// Number of features that fit.
    pub fn capacity(&self) -> usize {
        self.used_slots() / SLOTS
    }

    /// Number of features that still fit.
    pub fn room(&self) -> usize {
        self.capacity() - self.len
    }

    /// Returns the features counted so far, each once. `repeated` is working memory.
    pub fn counted<'a>(&'a self, repeated: &'a mut Vec<u32>) -> Counted<'a, W> {
        let counts = &self.counts[..self.len];
        find_repeated(counts, repeated);
        Counted {
            hashes: &self.hashes[..self.len],
            counts,
            repeated,
        }
    }

    /// Mixes a hash. The highest bits of the result choose the slot and the partition. Multiplies
    /// by random odd numbers (Dietzfelbinger and others, "A reliable randomized algorithm for the
    /// closest-pair problem", Journal of Algorithms 25, 1997). They are random because an attacker
    /// can choose features whose hashes agree in many bits, which would make one long probe chain.
    /// Counts, and so fingerprints, do not depend on the random numbers.
    #[inline(always)]
    pub fn mix(&self, hash: [u64; W]) -> u64 {
        mix(hash, self.key)
    }

    /// Adds to the counts of features. The features must fit.
    #[inline(always)]
    pub fn add(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        // Local variables, so that the compiler knows that writes to the slices do not change
        // them.
        let (key, shift, mut len) = (self.key, self.shift, self.len);
        let used = self.used_slots();
        let slots = &mut self.slots[..used];
        let (hashes, counts) = (&mut self.hashes[..], &mut self.counts[..]);
        for (hash, count) in features {
            let mut at = (mix(hash, key) >> shift) as usize;
            // Written unconditionally, so that new and known features take the same branches. It
            // is hard to predict whether the next feature is new.
            hashes[len] = hash;
            loop {
                let slot = &mut slots[at];
                let new = *slot == 0;
                let position = select_unpredictable(new, len as u32 + 1, *slot);
                if hashes[position as usize - 1] == hash {
                    counts[position as usize - 1] += count;
                    *slot = position;
                    len += usize::from(new);
                    break;
                }
                at = (at + 1) & (used - 1);
            }
        }
        self.len = len;
    }

    /// Makes the capacity four times as large.
    #[cold]
    pub fn grow(&mut self) {
        let features = 4 * self.capacity();
        let len = std::mem::take(&mut self.len);
        let hashes = std::mem::take(&mut self.hashes);
        let counts = std::mem::take(&mut self.counts);
        self.make_slots(features);
        self.add(hashes[..len].iter().copied().zip(counts));
    }
}

/// Number of counts read together.
const BATCH: usize = 64;

/// Sets `repeated` to the positions of the counts above 1.
fn find_repeated(counts: &[u64], repeated: &mut Vec<u32>) {
    repeated.clear();
    for (batch, first) in counts.chunks(BATCH).zip((0..).step_by(BATCH)) {
        // Not a branch, because it is hard to predict which counts are above 1.
        let mut found = [0; BATCH];
        let mut len = 0;
        for (at, &count) in (first..).zip(batch) {
            found[len % BATCH] = at;
            len += usize::from(count > 1);
        }
        repeated.grow_by(&found[..len]);
    }
}

/// Returns the number of bits to shift a mixed hash by. `slots` is a power of two.
fn shift(slots: usize) -> u32 {
    64 - slots.ilog2()
}

/// See [`CountTable::mix`].
#[inline(always)]
pub(super) fn mix<const W: usize>(hash: [u64; W], key: [u64; W]) -> u64 {
    (hash.iter().zip(key)).fold(0, |sum, (word, key)| {
        word.wrapping_mul(key | 1).wrapping_add(sum)
    })
}
