//! Rules and state of a thinned search for pairs, which may skip pairs. Each entry has a mark: a
//! number by which the rule decides whether to skip a pair. An entry is open if it can still form a
//! pair to report.

use super::chunk::SortedChunk;

/// Rule that decides which pairs a thinned search for pairs may skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinning {
    /// Skips a pair if each of its two fingerprints is already in more than this number of reported
    /// pairs. So all pairs of a fingerprint are reported if it has at most this number of pairs.
    Degree(u32),
    /// Skips a pair if a chain of reported pairs already connects its fingerprints. So the reported
    /// pairs form a forest, which has the same connected components as all pairs. This rule is
    /// correct only if no fingerprint is in two scopes whose hashes are equal. Otherwise a pair in
    /// one scope might be skipped because of a chain of rows in the other scope.
    Forest,
}

/// List of the open entries of the right group of a comparison. Some entries of the left group can
/// form a pair to report only with an open entry. For these entries, the list saves comparisons
/// with the rest of the right group.
#[derive(Debug, Default)]
pub(super) struct OpenEntries {
    /// Indexes of the open entries in the right chunk. `None` if no list has been made, so that all
    /// entries of the group count as open.
    pub entries: Option<Vec<u32>>,
    /// Number of entries to compare with the whole right group before the list is updated again. It
    /// is above 0 if the list was too long to be useful at its last update.
    pub wait: usize,
    /// With [`Thinning::Forest`], the left entry for which the list was made, by its number in
    /// [`Marks`]. The list has only entries of the right group that no chain of reported pairs
    /// connects with this entry.
    pub base: usize,
}

/// Marks of the entries of two chunks. The entries of the left chunk are numbered from 0, and the
/// entries of the right chunk follow. A mark is the number of pairs of the entry
/// ([`Thinning::Degree`]) or the number of its parent in the forest ([`Thinning::Forest`]).
pub(super) struct Marks<'a, const N: usize> {
    pub left: &'a SortedChunk<N>,
    pub right: &'a SortedChunk<N>,
    /// Number of the first entry of the right chunk. 0 if both chunks are the same.
    pub shift: usize,
}

impl<const N: usize> Marks<'_, N> {
    /// Returns the mark of the entry with the number `entry`.
    pub fn get(&self, entry: usize) -> u32 {
        match entry.checked_sub(self.left.len()) {
            None => self.left.mark(entry),
            Some(other) => self.right.mark(other),
        }
    }

    /// Sets the mark of the entry with the number `entry`.
    pub fn set(&self, entry: usize, mark: u32) {
        match entry.checked_sub(self.left.len()) {
            None => self.left.set_mark(entry, mark),
            Some(other) => self.right.set_mark(other, mark),
        }
    }

    /// Returns the number of the root of an entry's tree in the forest. Two entries with the same
    /// root are in one component. `entry` is the number of the entry. Only for
    /// [`Thinning::Forest`].
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
