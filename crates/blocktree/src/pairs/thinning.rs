//! State of a thinned search: the pairs that it may leave out, and marks of entries.

use super::chunk::SortedChunk;

/// Pairs of fingerprints that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinning {
    /// Pairs of two fingerprints that are both in more than this number of other pairs. A
    /// fingerprint that is in no more pairs than that keeps all of its pairs.
    Degree(u32),
    /// Pairs of two fingerprints that other pairs connect, directly or in several steps. The result
    /// is right only if no fingerprint is in several scopes with the same hash: the pairs that
    /// connect two fingerprints of one scope might be of another.
    Forest,
}

/// Entries of a group that can still produce pairs with entries that have enough pairs.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// `None`: all of them.
    pub entries: Option<Vec<u32>>,
    /// Comparisons with the whole group before the list is tried again, since it was too long.
    pub wait: usize,
    /// With [`Thinning::Forest`], an entry of the component whose entries are left out.
    pub base: usize,
}

/// The marks of two chunks, one after the other: pairs that an entry is in, or its parent.
pub(super) struct Marks<'a, const N: usize> {
    pub left: &'a SortedChunk<N>,
    pub right: &'a SortedChunk<N>,
    /// Offset that is added to positions in the right chunk.
    pub shift: usize,
}

impl<const N: usize> Marks<'_, N> {
    pub fn get(&self, entry: usize) -> u32 {
        match entry.checked_sub(self.left.len()) {
            None => self.left.mark(entry),
            Some(other) => self.right.mark(other),
        }
    }

    pub fn set(&self, entry: usize, mark: u32) {
        match entry.checked_sub(self.left.len()) {
            None => self.left.set_mark(entry, mark),
            Some(other) => self.right.set_mark(other, mark),
        }
    }

    pub fn root(&self, mut entry: usize) -> usize {
        loop {
            let parent = self.get(entry) as usize;
            let above = self.get(parent) as usize;
            if parent == above {
                return parent;
            }
            // Path halving (van Leeuwen and van der Weide, 1977).
            self.set(entry, above as u32);
            entry = above;
        }
    }
}
