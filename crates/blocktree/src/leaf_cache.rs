//! Leaf cache: the leaf of the last key in each table.
//!
//! A constraint searches for a row's neighbours, adds the row, and searches again: three accesses
//! to the same leaf of each table, of which only the first has to descend from the root. A leaf
//! that has been split since leads on by its right link, and one that has become stale is
//! recognized, as with any link that was read earlier (`Tree::find`).

use crate::key::{Block, Key};
use std::cell::Cell;

/// Tables that are cached. More would take longer to probe than to find.
pub(crate) const TABLES: usize = 32;

/// Leaf cache of an index. It is valid as long as no page is moved, see
/// [`crate::tree::Tree::compact`].
#[derive(Debug)]
pub struct LeafCache([Cell<(u64, Block)>; TABLES]);

impl Default for LeafCache {
    /// Nothing yet.
    fn default() -> Self {
        // Block 0 is the meta page.
        LeafCache([const { Cell::new((0, 0)) }; TABLES])
    }
}

impl LeafCache {
    /// The leaf where a key was, if it was the last one of this table.
    #[inline]
    pub(crate) fn get<const N: usize>(&self, table: u16, key: &Key<N>) -> Option<Block> {
        let (known, leaf) = self.0.get(usize::from(table))?.get();
        (leaf != 0 && known == tag(key)).then_some(leaf)
    }

    /// Forgets all, before pages are moved.
    pub fn forget(&self) {
        for place in &self.0 {
            place.set((0, 0));
        }
    }

    /// Remembers a key's leaf instead of the last one of this table.
    #[inline]
    pub(crate) fn remember<const N: usize>(&self, table: u16, key: &Key<N>, leaf: Block) {
        if let Some(place) = self.0.get(usize::from(table)) {
            place.set((tag(key), leaf));
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
