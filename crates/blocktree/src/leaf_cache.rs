//! Leaf cache: for each permutation (ordered copy of all keys), the leaf on which the last key was
//! found or added. For a constraint, the cache also stores the last search if it found no row (an
//! empty search). The insertion of the row can then prove that no other row is near it
//! ([`crate::empty_search`]).
//!
//! A constraint searches for the rows near a new row, adds the row, and searches again. These are
//! three accesses to the same leaf of each permutation, and only the first of them must descend
//! from the root. If a cached leaf has been split, its right link leads to the key. If it has been
//! removed or reused, `Tree::find` notices that, as for each link that was read earlier.

use crate::empty_search::{EmptySearch, LoneRow};
use crate::inner_cache::InnerCache;
use crate::key::{Block, Key};
use std::cell::{Cell, RefCell};

pub(crate) use crate::inner_cache::CACHED_PERMUTATIONS;

/// Leaf cache of an index. It is valid until a page is moved to another block
/// ([`crate::tree::Tree::compact`]).
#[derive(Debug)]
pub struct LeafCache {
    /// For each permutation, at the index of its number: a hash of the key that was found or added
    /// last, and the block of that key's leaf. The block is 0 if no key is stored.
    leaves: [Cell<(u64, Block)>; CACHED_PERMUTATIONS],
    /// Copies of inner pages. Through them, a search descends to a leaf that this cache does not
    /// have.
    pub(crate) inner: InnerCache,
    /// True if the cache stores empty searches, so that an insertion can check whether they are
    /// still valid ([`crate::empty_search`]).
    validates: bool,
    /// Record of the last search, if it found nothing.
    empty: RefCell<Option<EmptySearch>>,
    /// Row that was added last, if no other row was near it then.
    lone_row: Cell<Option<LoneRow>>,
}

impl Default for LeafCache {
    /// Creates an empty cache that does not store empty searches.
    fn default() -> Self {
        LeafCache {
            // Block 0 is the meta page.
            leaves: [const { Cell::new((0, 0)) }; CACHED_PERMUTATIONS],
            inner: InnerCache::default(),
            validates: false,
            empty: RefCell::new(None),
            lone_row: Cell::new(None),
        }
    }
}

impl LeafCache {
    /// Creates an empty cache for a constraint, which searches for near rows before it adds a row
    /// and again afterwards. The cache also stores empty searches, by which the constraint can skip
    /// the second search ([`crate::empty_search`]).
    pub fn for_constraint() -> Self {
        LeafCache {
            validates: true,
            ..Self::default()
        }
    }

    /// Returns whether the cache stores empty searches, so that an insertion can validate them.
    #[inline]
    pub(crate) fn validates(&self) -> bool {
        self.validates
    }

    /// Returns the leaf that was stored last for `permutation`, if it was stored for `key`. `None`
    /// if it was stored for another key.
    #[inline]
    pub(crate) fn get<const N: usize>(&self, permutation: u16, key: &Key<N>) -> Option<Block> {
        let (known, leaf) = self.leaves.get(usize::from(permutation))?.get();
        (leaf != 0 && known == tag(key)).then_some(leaf)
    }

    /// Empties the cache. Must be called before pages are moved to other blocks.
    pub fn forget(&self) {
        for slot in &self.leaves {
            slot.set((0, 0));
        }
        self.inner.forget();
        self.take_empty();
    }

    /// Stores the record of a search that has ended and found nothing.
    pub(crate) fn remember_empty(&self, search: EmptySearch) {
        self.empty.replace(Some(search));
    }

    /// Removes and returns the record of the last search that found no row. `None` if there is no
    /// such record, or if the cache stores no empty searches. Also drops the record of
    /// the row that was added last, so that [`LeafCache::take_lone_row`] does not return it for a
    /// later insertion. An insertion calls this before it adds a row.
    pub(crate) fn take_empty(&self) -> Option<EmptySearch> {
        if !self.validates {
            return None;
        }
        self.lone_row.set(None);
        self.empty.take()
    }

    /// Stores a row that had no other row near it when it was added.
    pub(crate) fn remember_lone_row(&self, row: LoneRow) {
        self.lone_row.set(Some(row));
    }

    /// Removes and returns the row that was added last, if it is certain that no other row was near
    /// it when it was added ([`crate::empty_search`]). Otherwise returns `None`.
    pub fn take_lone_row(&self) -> Option<LoneRow> {
        self.lone_row.take()
    }

    /// Stores `leaf` as the leaf of `key` in a permutation. The cache has only one key for each
    /// permutation, so the key stored before is dropped.
    #[inline]
    pub(crate) fn remember<const N: usize>(&self, permutation: u16, key: &Key<N>, leaf: Block) {
        if let Some(slot) = self.leaves.get(usize::from(permutation)) {
            slot.set((tag(key), leaf));
        }
    }
}

/// Returns a hash of a key. If two keys have the same hash, a search starts at a wrong leaf and
/// takes longer, but its result is correct.
#[inline]
fn tag<const N: usize>(key: &Key<N>) -> u64 {
    // The multiplier is that of Fibonacci hashing (Knuth, TAOCP 3, 6.4).
    (key.iter()).fold(0u64, |tag, word| {
        (tag ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
