//! Hash table that counts features by their hashes.
//!
//! The hashes of features are in a vector in the order of arrival. A table of four-byte slots,
//! searched by linear probing, holds their positions in the vector. At most a quarter of the slots
//! is used, so searches are short, and a lookup takes few instructions and hardly any branch
//! misprediction. Because slots are small, the table nevertheless fits into the processor's first
//! caches.

use std::hint::select_unpredictable;

use crate::memory::GrowVec;

/// Hash of a feature, and its number of occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeatureCount<const W: usize> {
    pub hash: [u64; W],
    pub count: u64,
}

/// Distinct features and the number of occurrences of each.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a, const W: usize> {
    /// Hash of each distinct feature.
    pub hashes: &'a [[u64; W]],
    /// Number of occurrences of each feature, in the order of `hashes`.
    pub counts: &'a [u64],
    /// Positions in `hashes` of the features that occur more than once.
    pub repeated: &'a [u32],
}

impl<'a, const W: usize> Counted<'a, W> {
    /// Returns an iterator over the features with their numbers of occurrences.
    pub fn iter(self) -> impl Iterator<Item = FeatureCount<W>> + 'a {
        (self.hashes.iter().zip(self.counts)).map(|(&hash, &count)| FeatureCount { hash, count })
    }
}

/// Number of slots for each distinct feature of the capacity: a table for n distinct features has
/// `SLOTS * n` slots.
pub(super) const SLOTS: usize = 4;

/// Counts features by linear probing over slots, whose number is a power of two.
pub(super) struct CountTable<const W: usize> {
    /// For each slot, the position of a feature in `hashes` plus 1, or 0 if the slot is empty. The
    /// table uses the first `1 << (64 - shift)` slots. The other slots are empty, and are kept for
    /// a larger text.
    slots: Vec<u32>,
    /// 64 minus the binary logarithm of the number of used slots: the shift from a mixed hash to
    /// the number of its slot.
    shift: u32,
    /// Hashes of the distinct features, in the first `len` elements. The vector has one element
    /// more than the capacity, because [`CountTable::add`] writes a hash before it knows whether
    /// the hash is new.
    hashes: Vec<[u64; W]>,
    /// Number of occurrences of each feature; 0 beyond `len`.
    counts: Vec<u64>,
    /// Number of distinct features.
    len: usize,
    /// Random numbers from which [`CountTable::mix`] makes the multipliers of a hash, one for each
    /// word of the hash.
    pub key: [u64; W],
}

impl<const W: usize> CountTable<W> {
    /// Creates an empty table with room for `features` distinct features. `features` must be a
    /// power of two. `key` holds random numbers, which choose the slots of hashes; see
    /// [`CountTable::mix`].
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
        // The old slots are freed before the new ones are allocated.
        self.slots = Vec::new();
        self.hashes.grow_exact(features + 1, [0; W]);
        self.counts.grow_exact(features + 1, 0);
        // The slots are allocated last: if this unwinds, the table has no slots and so no capacity.
        self.slots.grow_exact(SLOTS * features, 0);
        self.shift = shift(self.slots.len());
    }

    /// Empties the table and makes room for `features` distinct features. `features` must be a
    /// power of two. Reuses the memory of the table if it is large enough. But if it has room for
    /// more than `kept` features, and for more than `features`, frees it and allocates new memory.
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

    /// Returns the number of distinct features that fit into the table.
    pub fn capacity(&self) -> usize {
        self.used_slots() / SLOTS
    }

    /// Returns the number of distinct features that can be added until the table is full.
    pub fn room(&self) -> usize {
        self.capacity() - self.len
    }

    /// Returns the distinct features counted so far, with their counts. Overwrites the buffer
    /// `repeated` with the positions of the features that occur more than once. The result borrows
    /// it as [`Counted::repeated`].
    pub fn counted<'a>(&'a self, repeated: &'a mut Vec<u32>) -> Counted<'a, W> {
        let counts = &self.counts[..self.len];
        find_repeated(counts, repeated);
        Counted {
            hashes: &self.hashes[..self.len],
            counts,
            repeated,
        }
    }

    /// Mixes a hash with the random numbers of this table. The highest bits of the result choose
    /// the feature's slot or partition. The hash is multiplied by random odd numbers
    /// (Dietzfelbinger and others, "A reliable randomized algorithm for the closest-pair problem",
    /// Journal of Algorithms 25, 1997). With known numbers, an attacker could choose features whose
    /// slots are equal, and lookups would take long. Counts, and so fingerprints, do not depend on
    /// the random numbers.
    #[inline(always)]
    pub fn mix(&self, hash: [u64; W]) -> u64 {
        mix(hash, self.key)
    }

    /// Counts features, given as pairs of a hash and a number of occurrences. The table must have
    /// room for all of them as new features.
    #[inline(always)]
    pub fn add(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        // Copies of fields in local variables: the compiler then knows that writes to the slices do
        // not change these values.
        let (key, shift, mut len) = (self.key, self.shift, self.len);
        let used = self.used_slots();
        let slots = &mut self.slots[..used];
        let (hashes, counts) = (&mut self.hashes[..], &mut self.counts[..]);
        for (hash, count) in features {
            let mut at = (mix(hash, key) >> shift) as usize;
            // The hash is written unconditionally, so that new and known features take the same
            // branches. It is hard to predict whether the next feature is new.
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

    /// Makes the capacity of the table four times as large.
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

/// Number of counts that [`find_repeated`] reads together.
const BATCH: usize = 64;

/// Sets `repeated` to the positions of the counts above 1.
fn find_repeated(counts: &[u64], repeated: &mut Vec<u32>) {
    repeated.clear();
    for (batch, first) in counts.chunks(BATCH).zip((0..).step_by(BATCH)) {
        // There is no branch, because it is hard to predict which counts are above 1.
        let mut found = [0; BATCH];
        let mut len = 0;
        for (at, &count) in (first..).zip(batch) {
            found[len % BATCH] = at;
            len += usize::from(count > 1);
        }
        repeated.grow_by(&found[..len]);
    }
}

/// Returns the number of bits by which a mixed hash is shifted to the right to get its slot among
/// `slots` slots, a power of two.
fn shift(slots: usize) -> u32 {
    64 - slots.ilog2()
}

/// Mixes a hash with random numbers; see [`CountTable::mix`].
#[inline(always)]
pub(super) fn mix<const W: usize>(hash: [u64; W], key: [u64; W]) -> u64 {
    (hash.iter().zip(key)).fold(0, |sum, (word, key)| {
        word.wrapping_mul(key | 1).wrapping_add(sum)
    })
}
