//! Rules and state of a thinned search for pairs: which pairs it may skip, and marks of entries.

use super::chunk::SortedChunk;

/// Rule that decides which pairs a thinned search for pairs may skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinning {
    /// Skips a pair if both fingerprints are in more than this number of reported pairs. So all
    /// pairs of a fingerprint are reported if the fingerprint has at most this number of pairs.
    Degree(u32),
    /// Skips a pair if a chain of reported pairs connects its fingerprints. The reported pairs form
    /// a forest, which has the same components as all pairs. This rule is correct only if no
    /// fingerprint is in several scopes with equal hashes. Otherwise the chain might consist of
    /// rows of another scope.
    Forest,
}

/// Open entries of the right group: entries that can still form a reported pair with an entry that
/// has enough pairs.
#[derive(Debug, Default)]
pub(super) struct OpenEntries {
    /// Indexes of the open entries in the right chunk. `None` if there is no list: all are open.
    pub entries: Option<Vec<u32>>,
    /// Number of entries that are still compared with the whole right group before the list is
    /// updated again. It is above 0 if the list was too long at the last update.
    pub wait: usize,
    /// With [`Thinning::Forest`], an entry of the component for which the list was made. The list
    /// has the entries of the right group that are outside this component.
    pub base: usize,
}

/// Marks of the entries of two chunks, numbered from the left chunk to the right chunk. A mark is
/// the number of pairs of the entry ([`Thinning::Degree`]) or the number of its parent
/// ([`Thinning::Forest`]).
pub(super) struct Marks<'a, const N: usize> {
    pub left: &'a SortedChunk<N>,
    pub right: &'a SortedChunk<N>,
    /// Number of the first entry of the right chunk. 0 if both chunks are the same.
    pub shift: usize,
}

impl<const N: usize> Marks<'_, N> {
    /// Returns the mark of an entry by its number.
    pub fn get(&self, entry: usize) -> u32 {
        match entry.checked_sub(self.left.len()) {
            None => self.left.mark(entry),
            Some(other) => self.right.mark(other),
        }
    }

    /// Sets the mark of an entry by its number.
    pub fn set(&self, entry: usize, mark: u32) {
        match entry.checked_sub(self.left.len()) {
            None => self.left.set_mark(entry, mark),
            Some(other) => self.right.set_mark(other, mark),
        }
    }

    /// Returns the number of the root of an entry's tree, by which two entries of one component are
    /// recognized. `entry` is the number of the entry. Only for [`Thinning::Forest`].
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
