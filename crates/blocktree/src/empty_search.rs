//! Checks, when a row is added, whether an earlier search that found no row is still valid, so that
//! it need not be repeated (optimistic concurrency control: Kung and Robinson, ACM TODS 6, 1981). A
//! search looks up its query in each permutation, an ordered copy of all keys in which some blocks
//! of bits are moved to the front. An unpermuted key has its bits in the original order.
//!
//! A constraint searches for rows near a new row, adds the row, and searches again for rows that
//! other processes have added meanwhile. The second search is not needed if the first search found
//! nothing, and if the leaves that the first search read are unchanged when the row's entries are
//! appended to them. In that case no other row has been added meanwhile, and the second search
//! would find only the new row. docs/dev/locking.md, "Searches that an insertion validates", has
//! the proof.

use crate::key::{Block, EntryKey, Key};
use crate::store::PAGES_PER_RECORD;

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

/// Leaf that an empty search has read.
#[derive(Clone, Copy, Debug)]
struct ReadLeaf {
    /// Permuted query of the search in the leaf's permutation.
    key: Words,
    /// Block of the leaf.
    block: Block,
    /// Version of the leaf when the search read it ([`crate::store::ReadPages::version`]).
    version: u64,
}

/// Record of a search and of the leaves that it has read, one leaf of each permutation (ordered
/// copy of all keys). When the search has ended, the record proves that no row was near the query,
/// unless `spoilt` is true.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EmptySearch {
    /// Unpermuted query with its scope, set when the search has ended.
    query: Words,
    /// Radius of the search in bits, set when the search has ended.
    radius: u32,
    /// Leaf that the search has read in each permutation, indexed by permutation.
    leaves: [Option<ReadLeaf>; PAGES_PER_RECORD],
    /// True if the search found a row, or read more than one leaf of a permutation.
    spoilt: bool,
}

impl EmptySearch {
    /// Makes this search unusable as proof that no row is near the query. The search calls this if
    /// it found a row, or if rows near the query may be on a leaf that was not recorded.
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// Records the only leaf of a permutation that may have rows near the query, after the search
    /// has found none on it. `key` is the permuted query. `version` is the leaf's version, or
    /// `None` if the store has no versions.
    pub(crate) fn note<const N: usize>(
        &mut self,
        permutation: u16,
        key: &Key<N>,
        block: Block,
        version: Option<u64>,
    ) {
        match (self.leaves.get_mut(usize::from(permutation)), version) {
            (Some(leaf @ None), Some(version)) if N <= MOST_WORDS => {
                let key = words(key);
                *leaf = Some(ReadLeaf {
                    key,
                    block,
                    version,
                });
            }
            _ => self.spoilt = true,
        }
    }

    /// Completes the record when the search has ended. `query` is the unpermuted query, and
    /// `radius` is in bits. Returns `None` if the search proves nothing, because it found a row or
    /// read two leaves of a permutation.
    pub(crate) fn ended<const N: usize>(self, query: &Key<N>, radius: u32) -> Option<Self> {
        let query = (!self.spoilt).then(|| words(query))?;
        Some(EmptySearch {
            query,
            radius,
            ..self
        })
    }

    /// Returns whether an entry can be added without a second search of its leaf: this search
    /// looked for the entry's key on the leaf, and the leaf has not changed since then. `entry_key`
    /// describes the entry. `block` is the leaf that receives it, and `version` is the leaf's
    /// present version.
    pub(crate) fn has_read<const N: usize>(
        &self,
        entry_key: &EntryKey<N>,
        block: Block,
        version: Option<u64>,
    ) -> bool {
        match self.leaves.get(usize::from(entry_key.permutation)) {
            Some(Some(leaf)) => {
                leaf.block == block
                    && Some(leaf.version) == version
                    && leaf.key == words(&entry_key.key)
            }
            _ => false,
        }
    }

    /// Returns the row that is being added if this search proves that no other row is near it. The
    /// caller appends the row's entries in one step. `entries` is the number of these entries, and
    /// [`EmptySearch::has_read`] must be true for each of them. Returns `None` if the search has
    /// read further leaves, because another row may have been added to them meanwhile.
    pub(crate) fn lone_row(&self, entries: usize) -> Option<LoneRow> {
        let (query, radius) = (self.query, self.radius);
        let read = self.leaves.iter().flatten().count();
        (read == entries).then_some(LoneRow { query, radius })
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
