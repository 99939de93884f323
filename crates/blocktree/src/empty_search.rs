//! Validation of a search when a row is added (optimistic concurrency control: Kung and Robinson,
//! ACM TODS 6, 1981).
//!
//! A constraint searches for what is near a row, adds the row, and searches again for what others
//! have added meanwhile. If the first search found nothing, and the leaves that it read are what
//! they were when the row's entries are appended to them, then nothing has come meanwhile, and the
//! second search would find the row alone. docs/dev/locking.md, "Searches that an insertion
//! validates", says why that is enough.

use crate::key::{Block, EntryKey, Key};
use crate::store::PAGES_PER_RECORD;

/// Words of the longest key: 256 bits and a scope.
const MOST_WORDS: usize = 5;

/// A key of any width, filled up with zeroes.
type Words = [u64; MOST_WORDS];

fn words<const N: usize>(key: &Key<N>) -> Words {
    let mut words = [0; MOST_WORDS];
    words[..N].copy_from_slice(key);
    words
}

/// Leaf that a search has read, with the search's key in the leaf's permutation, and its version
/// then.
#[derive(Clone, Copy, Debug)]
struct ReadLeaf {
    key: Words,
    block: Block,
    version: u64,
}

/// A search that has found nothing so far, on one leaf of each permutation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EmptySearch {
    query: Words,
    radius: u32,
    /// Indexed by permutation.
    leaves: [Option<ReadLeaf>; PAGES_PER_RECORD],
    /// True if something was found, or more than one leaf of a permutation was read.
    spoilt: bool,
}

impl EmptySearch {
    /// Notes that something was found, or may be elsewhere.
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// Notes the only leaf of a permutation on which there may be anything near, and is nothing.
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

    /// The search when it has ended; `None` if it has found something.
    pub(crate) fn of<const N: usize>(self, query: &Key<N>, radius: u32) -> Option<Self> {
        let query = (!self.spoilt).then(|| words(query))?;
        Some(EmptySearch {
            query,
            radius,
            ..self
        })
    }

    /// Returns whether it has searched for an entry's key on this leaf, of this version.
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

    /// The row that it was about, after as many entries have been appended together to leaves
    /// that it has read; `None` if it has read others.
    pub(crate) fn lone_row(&self, entries: usize) -> Option<LoneRow> {
        let (query, radius) = (self.query, self.radius);
        let read = self.leaves.iter().flatten().count();
        (read == entries).then_some(LoneRow { query, radius })
    }
}

/// A row to which nothing was near in the moment in which it was added.
#[derive(Clone, Copy, Debug)]
pub struct LoneRow {
    query: Words,
    radius: u32,
}

impl LoneRow {
    /// Returns whether a search within a radius of a key, with its scope, is about this row.
    pub fn is_alone_within<const N: usize>(&self, key: &Key<N>, radius: u32) -> bool {
        N <= MOST_WORDS && self.query == words(key) && radius <= self.radius
    }
}
