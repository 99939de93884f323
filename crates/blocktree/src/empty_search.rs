//! Checks, when a row is added, whether an earlier search that found no row is still valid, so that
//! it need not be repeated (optimistic concurrency control: Kung and Robinson, ACM TODS 6, 1981).
//! Each change of a leaf gives the leaf a new version, so a leaf with an equal version has not
//! changed. A search looks up its query in each permutation, an ordered copy of all keys in which
//! some blocks of bits are moved to the front. An unpermuted key has its bits in the original
//! order.
//!
//! A constraint searches for rows near a new row, adds the row, and searches again for rows that
//! other processes have added meanwhile. The second search is not needed if two conditions hold.
//! The first search found nothing. No other process changed the leaves that the first search read,
//! until all entries of the new row were added. The second search would then find only the new row.
//! docs/dev/locking.md, "Searches that an insertion validates", has the proof.

use crate::key::{Block, EntryKey, Key};

/// Maximum number of words of a key: four words of a 256-bit fingerprint and one word of a scope.
const MOST_WORDS: usize = 5;

/// Key of any width, padded with zero words.
type Words = [u64; MOST_WORDS];

/// Returns a key padded with zero words.
fn words<const N: usize>(key: &Key<N>) -> Words {
    let mut words = [0; MOST_WORDS];
    words[..N].copy_from_slice(key);
    words
}

/// Maximum number of leaves of a recorded search. A search that reads more leaves is not recorded:
/// the comparison of their versions would take nearly as long as the second search.
const MAX_LEAVES: usize = 128;

/// Leaf that an empty search has read.
#[derive(Clone, Copy, Debug)]
struct ReadLeaf {
    /// Block of the leaf.
    block: Block,
    /// Version of the leaf when the search read it ([`crate::store::ReadPages::version`]). If the
    /// insertion itself has appended an entry of the new row to the leaf since then, the version
    /// after that change.
    version: u64,
    /// True if the last call of [`EmptySearch::appended`] was about this leaf. Its version was then
    /// compared by [`EmptySearch::compare`], under the lock for that change, so
    /// [`EmptySearch::lone_row`] need not compare it again.
    is_compared: bool,
}

/// Record of a search and of the leaves that it has read. When the search has ended, the record
/// proves that no row was near the query, unless `spoilt` is true.
#[derive(Debug, Default)]
pub(crate) struct EmptySearch {
    /// Unpermuted query with its scope, set when the search has ended.
    query: Words,
    /// Identifies the row for which the search was made: a permutation, and the query's key in this
    /// permutation. The row has an entry with both. The permutation is that of the leaf that was
    /// recorded first. `None` before a leaf is recorded.
    permuted: Option<(u16, Words)>,
    /// Radius of the search in bits, set when the search has ended.
    radius: u32,
    /// Leaves that the search has read.
    leaves: Vec<ReadLeaf>,
    /// True if the search found a row, or if a leaf could not be recorded or has changed.
    spoilt: bool,
}

impl EmptySearch {
    /// Makes this search unusable as proof that no row is near the query.
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// Records that the search has read the leaf in block `block`, and has not found a row near the
    /// query there. `key` is the query's key in `permutation`, the permutation of the leaf.
    /// `version` is the leaf's version, or `None` if the store has no versions. If the leaf cannot
    /// be recorded, the search proves nothing.
    pub(crate) fn note<const N: usize>(
        &mut self,
        permutation: u16,
        key: &Key<N>,
        block: Block,
        version: Option<u64>,
    ) {
        /// Number of leaves for which memory is allocated at once.
        const USUAL_LEAVES: usize = 32;
        let has_room = self.leaves.len() < self.leaves.capacity()
            || self.leaves.len() < MAX_LEAVES && self.leaves.try_reserve(USUAL_LEAVES).is_ok();
        match version {
            Some(version) if N <= MOST_WORDS && has_room && !self.spoilt => {
                self.permuted
                    .get_or_insert_with(|| (permutation, words(key)));
                let is_compared = false;
                self.leaves.push(ReadLeaf {
                    block,
                    version,
                    is_compared,
                });
            }
            _ => self.spoilt = true,
        }
    }

    /// Completes the record when the search has ended. `query` is the unpermuted query, and
    /// `radius` is in bits. Returns `None` if the search proves nothing, because it found a row or
    /// because a leaf could not be recorded.
    pub(crate) fn ended<const N: usize>(self, query: &Key<N>, radius: u32) -> Option<Self> {
        let query = (!self.spoilt).then(|| words(query))?;
        Some(EmptySearch {
            query,
            radius,
            ..self
        })
    }

    /// Returns whether the search was made for the row whose entries are `entry_keys`: whether the
    /// row's key is equal to the query. Compares only the keys of one permutation. They are equal
    /// if and only if the unpermuted keys are equal.
    pub(crate) fn has_looked_for<const N: usize>(
        &self,
        mut entry_keys: impl Iterator<Item = EntryKey<N>>,
    ) -> bool {
        self.permuted.is_some_and(|(permutation, key)| {
            entry_keys.any(|entry| entry.permutation == permutation && key == words(&entry.key))
        })
    }

    /// Compares the recorded version of the leaf in `block` with its present version, `version`. If
    /// they differ, another process has changed the leaf, and the search proves nothing. The caller
    /// has locked the leaf and is about to append an entry of the row. Does nothing if the search
    /// has not read the leaf.
    pub(crate) fn compare(&mut self, block: Block, version: Option<u64>) {
        for leaf in self.leaves.iter().filter(|leaf| leaf.block == block) {
            self.spoilt |= Some(leaf.version) != version;
        }
    }

    /// Records that one log record has appended entries of the row to some locked leaves.
    /// `versions` has the block of each of these leaves, and the leaf's version after the change.
    pub(crate) fn appended(
        &mut self,
        versions: impl Iterator<Item = (Block, Option<u64>)> + Clone,
    ) {
        for leaf in &mut self.leaves {
            let mut versions = versions.clone();
            let found = versions.find(|(block, _)| *block == leaf.block);
            leaf.is_compared = found.is_some();
            if let Some((_, version)) = found {
                match version {
                    Some(version) => leaf.version = version,
                    None => self.spoilt = true,
                }
            }
        }
    }

    /// Returns the added row if the search proves that no other row is near it. Must be called
    /// after all entries of the row were appended. `version_of` returns the present version of a
    /// leaf. It is not called for the leaves in the last call of [`EmptySearch::appended`], because
    /// their versions were compared then. Returns `None` if the search proves nothing, for example
    /// because another process has changed a leaf meanwhile.
    pub(crate) fn lone_row(&self, version_of: impl Fn(Block) -> Option<u64>) -> Option<LoneRow> {
        let (query, radius) = (self.query, self.radius);
        let is_unchanged =
            |leaf: &ReadLeaf| leaf.is_compared || version_of(leaf.block) == Some(leaf.version);
        let holds = !self.spoilt && self.leaves.iter().all(is_unchanged);
        holds.then_some(LoneRow { query, radius })
    }
}

/// Row that had no other row within a radius at the moment when it was added.
#[derive(Clone, Copy, Debug)]
pub struct LoneRow {
    /// Unpermuted key of the row, with its scope.
    query: Words,
    /// Radius in bits within which there was no other row.
    radius: u32,
}

impl LoneRow {
    /// Returns whether a search for `key` within `radius` bits would find no row but this one.
    /// `key` is unpermuted and includes the scope.
    pub fn is_alone_within<const N: usize>(&self, key: &Key<N>, radius: u32) -> bool {
        N <= MOST_WORDS && self.query == words(key) && radius <= self.radius
    }
}
