//! Leaf cache: the leaf of the last key in each permutation.
//!
//! A constraint searches for a row's neighbours, adds the row, and searches again: three accesses
//! to the same leaf of each permutation, of which only the first has to descend from the root. A
//! leaf that has been split since leads on by its right link, and one that has become stale is
//! recognized, as with any link that was read earlier (`Tree::find`).

use crate::empty_search::{EmptySearch, LoneRow};
use crate::inner_cache::InnerCache;
use crate::key::{Block, Key};
use std::cell::Cell;

pub(crate) use crate::inner_cache::CACHED_PERMUTATIONS;

/// Leaf cache of an index. It is valid as long as no page is moved, see
/// [`crate::tree::Tree::compact`].
#[derive(Debug)]
pub struct LeafCache {
    leaves: [Cell<(u64, Block)>; CACHED_PERMUTATIONS],
    /// The way to others.
    pub(crate) inner: InnerCache,
    /// True if searches are remembered that an insertion may validate.
    validates: bool,
    /// The last search, if it found nothing.
    empty: Cell<Option<EmptySearch>>,
    /// The last row added, if nothing was near it.
    lone_row: Cell<Option<LoneRow>>,
}

impl Default for LeafCache {
    /// Nothing yet.
    fn default() -> Self {
        LeafCache {
            // Block 0 is the meta page.
            leaves: [const { Cell::new((0, 0)) }; CACHED_PERMUTATIONS],
            inner: InnerCache::default(),
            validates: false,
            empty: Cell::new(None),
            lone_row: Cell::new(None),
        }
    }
}

impl LeafCache {
    /// The memory of a backend that searches before it adds a row and once more afterwards: it
    /// tells when the second search is not needed ([`crate::empty_search`]).
    pub fn for_constraint() -> Self {
        LeafCache {
            validates: true,
            ..Self::default()
        }
    }

    /// Returns whether searches are remembered that an insertion may validate.
    #[inline]
    pub(crate) fn validates(&self) -> bool {
        self.validates
    }
    /// The leaf where a key was, if it was the last one of this permutation.
    #[inline]
    pub(crate) fn get<const N: usize>(&self, permutation: u16, key: &Key<N>) -> Option<Block> {
        let (known, leaf) = self.leaves.get(usize::from(permutation))?.get();
        (leaf != 0 && known == tag(key)).then_some(leaf)
    }

    /// Forgets all, before pages are moved.
    pub fn forget(&self) {
        for slot in &self.leaves {
            slot.set((0, 0));
        }
        self.inner.forget();
        self.take_empty();
    }

    /// Remembers a search that found nothing.
    pub(crate) fn remember_empty(&self, search: EmptySearch) {
        self.empty.set(Some(search));
    }

    /// Takes the last search that found nothing, before a row is added, and forgets the row that
    /// was added before.
    pub(crate) fn take_empty(&self) -> Option<EmptySearch> {
        if !self.validates {
            return None;
        }
        self.lone_row.set(None);
        self.empty.take()
    }

    /// Remembers that nothing was near a row when it was added.
    pub(crate) fn remember_lone_row(&self, row: LoneRow) {
        self.lone_row.set(Some(row));
    }

    /// Takes the last row that was added, if nothing was near it then. See [`crate::empty_search`].
    pub fn take_lone_row(&self) -> Option<LoneRow> {
        self.lone_row.take()
    }

    /// Remembers a key's leaf instead of the last one of this permutation.
    #[inline]
    pub(crate) fn remember<const N: usize>(&self, permutation: u16, key: &Key<N>, leaf: Block) {
        if let Some(slot) = self.leaves.get(usize::from(permutation)) {
            slot.set((tag(key), leaf));
        }
    }
}

/// Hash of a key. A collision costs a detour, never a result.
#[inline]
fn tag<const N: usize>(key: &Key<N>) -> u64 {
    // The multiplier is that of Fibonacci hashing (Knuth, TAOCP 3, 6.4).
    (key.iter()).fold(0u64, |tag, word| {
        (tag ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
