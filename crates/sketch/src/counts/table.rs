//! The table that counts features by their hashes.
//!
//! Features stand one after the other, in the order in which they came; a hash table of small slots
//! says where. It is a quarter full at most: chains are short, it takes few instructions and hardly
//! ever a wrong guess of the processor's to find a feature, and slots of four bytes keep it in the
//! nearest caches nevertheless.

use std::hint::select_unpredictable;

use crate::memory::GrowVec;

/// A feature's hash and how often it was counted.
#[derive(Clone, Copy)]
pub(crate) struct Counted<const W: usize> {
    pub hash: [u64; W],
    pub count: u64,
}

impl<const W: usize> Counted<W> {
    /// No feature.
    pub const NONE: Self = Self {
        hash: [0; W],
        count: 0,
    };
}

/// Slots for each feature.
pub(super) const SLOTS: usize = 4;

/// Linear probing over a power of two of slots.
pub(super) struct Table<const W: usize> {
    /// Where in `counted` a feature stands, from 1; 0 if the slot is empty. Those of the
    /// table are the first; what is beyond waits, empty, for a larger text.
    slots: Vec<u32>,
    /// 64 less the binary logarithm of the number of slots.
    shift: u32,
    /// The first `len`, and room for as many as the table takes, and one.
    counted: Vec<Counted<W>>,
    len: usize,
    key: [u64; W],
}

impl<const W: usize> Table<W> {
    /// An empty table for so many features, a power of two.
    pub fn new(features: usize, key: [u64; W]) -> Self {
        let mut table = Self {
            slots: Vec::new(),
            shift: 0,
            counted: Vec::new(),
            len: 0,
            key,
        };
        table.make_slots(features);
        table
    }

    fn make_slots(&mut self, features: usize) {
        // The old ones go first.
        self.slots = Vec::new();
        self.slots.grow_exact(SLOTS * features, 0);
        self.counted.grow_exact(features + 1, Counted::NONE);
        self.shift = shift(self.slots.len());
    }

    /// Empties the table, which then takes so many features. Memory for more than `kept` is given
    /// back.
    pub fn reset(&mut self, features: usize, kept: usize) {
        let slots = SLOTS * features;
        if slots > self.slots.len() || self.slots.len() > SLOTS * kept.max(features) {
            *self = Self::new(features, self.key);
        } else {
            let used = self.used_slots();
            self.slots[..used].fill(0);
            self.shift = shift(slots);
            self.len = 0;
        }
    }

    fn used_slots(&self) -> usize {
        1 << (64 - self.shift)
    }

    /// How many features it takes.
    pub fn capacity(&self) -> usize {
        self.used_slots() / SLOTS
    }

    /// How many more features may be added.
    pub fn room(&self) -> usize {
        self.capacity() - self.len
    }

    /// The features counted so far, each once.
    pub fn counted(&self) -> &[Counted<W>] {
        &self.counted[..self.len]
    }

    /// Spreads a hash over slots and partitions, which are numbered by its highest bits:
    /// multiplication by odd numbers drawn at random (Dietzfelbinger and others, "A reliable
    /// randomized algorithm for the closest-pair problem", Journal of Algorithms 25, 1997). At
    /// random, because anyone can make features whose hashes agree in many bits and so would pile
    /// up in one stretch of the table; counts, and so fingerprints, do not depend on the numbers.
    #[inline(always)]
    pub fn mix(&self, hash: [u64; W]) -> u64 {
        mix(hash, self.key)
    }

    /// Counts features; there is room.
    #[inline(always)]
    pub fn add(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        // In variables of their own, which the compiler knows that writing to the others leaves
        // alone.
        let (key, shift, mut len) = (self.key, self.shift, self.len);
        let used = self.used_slots();
        let slots = &mut self.slots[..used];
        let counted = &mut self.counted[..];
        for (hash, count) in features {
            let mut at = (mix(hash, key) >> shift) as usize;
            // Written in any case: then a new feature and a known one take the same way. Which of
            // them comes next is hard to predict, for a processor too.
            counted[len] = Counted { hash, count: 0 };
            loop {
                let slot = &mut slots[at];
                let new = *slot == 0;
                let place = select_unpredictable(new, len as u32 + 1, *slot);
                let feature = &mut counted[place as usize - 1];
                if feature.hash == hash {
                    feature.count += count;
                    *slot = place;
                    len += usize::from(new);
                    break;
                }
                at = (at + 1) & (used - 1);
            }
        }
        self.len = len;
    }

    /// Makes room for four times as many features.
    #[cold]
    pub fn grow(&mut self) {
        let features = 4 * self.capacity();
        let len = std::mem::take(&mut self.len);
        let counted = std::mem::take(&mut self.counted);
        self.make_slots(features);
        let features = counted[..len].iter();
        self.add(features.map(|feature| (feature.hash, feature.count)));
    }
}

/// For a number of slots, a power of two.
fn shift(slots: usize) -> u32 {
    64 - slots.ilog2()
}

#[inline(always)]
fn mix<const W: usize>(hash: [u64; W], key: [u64; W]) -> u64 {
    (hash.iter().zip(key)).fold(0, |sum, (word, key)| {
        word.wrapping_mul(key | 1).wrapping_add(sum)
    })
}
