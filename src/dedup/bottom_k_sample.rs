//! Reproducible random sample of values by their hashes.
use std::collections::BinaryHeap;

/// Hashes a number by mixing its bits (the finaliser of splitmix64).
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Bottom-k sample: keeps the values with the lowest hashes. The choice is random, but the same in
/// every run.
pub struct BottomKSample<T> {
    heap: BinaryHeap<(u64, T)>,
    /// Maximum number of values in the sample.
    most: usize,
}

impl<T: Ord> BottomKSample<T> {
    pub fn new(most: usize) -> Self {
        BottomKSample {
            heap: BinaryHeap::new(),
            most,
        }
    }

    /// Returns whether the sample would keep a value with the hash `mixed`.
    pub fn wants(&self, mixed: u64) -> bool {
        self.heap.len() < self.most || self.heap.peek().is_some_and(|top| mixed < top.0)
    }

    pub fn contains(&self, thing: &T) -> bool {
        self.heap.iter().any(|(_, sampled)| sampled == thing)
    }

    /// Adds the value `thing`, whose hash is `mixed`. A full sample keeps the value only if its
    /// hash is lower than the highest hash in the sample. It then drops the value with the highest
    /// hash.
    pub fn offer(&mut self, mixed: u64, thing: T) {
        if self.wants(mixed) {
            self.heap.push((mixed, thing));
            if self.heap.len() > self.most {
                self.heap.pop();
            }
        }
    }

    /// Returns the sampled values in the order of their hashes, which is a random order.
    pub fn into_vec(self) -> Vec<T> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .map(|(_, thing)| thing)
            .collect()
    }
}
