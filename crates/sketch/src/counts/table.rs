//! The table that counts features by their hashes.
//!
//! Features stand one after the other, in the order in which they came; a hash table of small slots
//! says where. It is a quarter full at most: chains are short, it takes few instructions and hardly
//! ever a wrong guess of the processor's to find a feature, and slots of four bytes keep it in the
//! nearest caches nevertheless.

use std::hint::select_unpredictable;

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
    /// Where in `counted` a feature stands, from 1; 0 if the slot is empty. The first `mask + 1` are
    /// the table's; what is beyond waits, empty, for a larger text.
    slots: Vec<u32>,
    mask: usize,
    /// The first `len`, and room for as many as the table takes, and one.
    counted: Vec<Counted<W>>,
    len: usize,
    key: [u64; 2],
}

impl<const W: usize> Table<W> {
    /// An empty table for so many features, a power of two.
    pub fn new(features: usize, key: [u64; 2]) -> Self {
        let mut table = Self {
            slots: Vec::new(),
            mask: 0,
            counted: Vec::new(),
            len: 0,
            key,
        };
        table.make_slots(features);
        table
    }

    fn make_slots(&mut self, features: usize) {
        self.slots = vec![0; SLOTS * features];
        self.counted.resize(features + 1, Counted::NONE);
        self.mask = self.slots.len() - 1;
    }

    /// Empties the table, which then takes so many features. Memory for more than `kept` is given
    /// back.
    pub fn reset(&mut self, features: usize, kept: usize) {
        let slots = SLOTS * features;
        if slots > self.slots.len() || self.slots.len() > SLOTS * kept.max(features) {
            *self = Self::new(features, self.key);
        } else {
            self.slots[..=self.mask].fill(0);
            self.mask = slots - 1;
            self.len = 0;
        }
    }

    /// How many features it takes.
    pub fn capacity(&self) -> usize {
        (self.mask + 1) / SLOTS
    }

    /// How many more features may be added.
    pub fn room(&self) -> usize {
        self.capacity() - self.len
    }

    /// The features counted so far, each once.
    pub fn counted(&self) -> &[Counted<W>] {
        &self.counted[..self.len]
    }

    /// Spreads a hash over slots and partitions. Keyed at random, because anyone can make features
    /// whose hashes agree in many bits and so would pile up in one stretch of the table; counts, and
    /// so fingerprints, do not depend on the key.
    #[inline(always)]
    pub fn mix(&self, hash: [u64; W]) -> u64 {
        mix(hash, self.key)
    }

    /// Counts features; there is room.
    #[inline(always)]
    pub fn add(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        // In variables of their own, which the compiler knows that writing to the others leaves alone.
        let (key, mut len) = (self.key, self.len);
        let slots = &mut self.slots[..=self.mask];
        let counted = &mut self.counted[..];
        for (hash, count) in features {
            let mut at = mix(hash, key) as usize & (slots.len() - 1);
            loop {
                // A new feature and a known one take the same way: which of them comes next is hard
                // to predict, for a processor too.
                let slot = &mut slots[at];
                let new = *slot == 0;
                let place = select_unpredictable(new, len as u32 + 1, *slot);
                let feature = &mut counted[place as usize - 1];
                if new | (feature.hash == hash) {
                    let before = select_unpredictable(new, 0, feature.count);
                    *feature = Counted {
                        hash,
                        count: before + count,
                    };
                    *slot = place;
                    len += usize::from(new);
                    break;
                }
                at = (at + 1) & (slots.len() - 1);
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

/// Spreads a hash over all bits.
#[inline(always)]
fn mix<const W: usize>(hash: [u64; W], key: [u64; 2]) -> u64 {
    hash.iter().fold(0, |mixed, word| {
        let product = u128::from(word ^ mixed ^ key[0]) * u128::from(key[1] | 1);
        (product as u64) ^ (product >> 64) as u64
    })
}
