//! Scan of all entries of an index in key order, for callers that compare or group equal keys. It
//! reads the index's first permutation (ordered copy of all keys). If keys have a scope (columns
//! that must be equal in two near-duplicates), their first word is a hash of the scope. In an index
//! on MinHash signatures, a key has a sketch (bits of the signature) instead of a fingerprint.
use super::chunk::SortedChunk;
use super::read_leaf;
use crate::block_layout::BlockLayout;
use crate::key::{Key, Tid};
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::store::ReadPages;
use crate::tree::Tree;
use std::rc::Rc;

/// Scan of the first permutation of an index, from start to end. Entries with equal fingerprints
/// are adjacent.
#[derive(Debug)]
pub struct KeyOrderScan<const N: usize> {
    layout: Rc<BlockLayout<N>>,
    cursor: LevelCursor<N>,
    /// Entries of the leaf that was read last.
    leaf: SortedChunk<N>,
}

impl<const N: usize> KeyOrderScan<N> {
    /// Creates a scan that starts at the first entry of the first permutation.
    pub fn new(layout: Rc<BlockLayout<N>>) -> Self {
        KeyOrderScan {
            cursor: LevelCursor::new(0),
            leaf: SortedChunk::new(layout.scope_words(), false),
            layout,
        }
    }

    /// Reads one more leaf and passes each of its entries to `emit`: the unpermuted key and the row
    /// address. The key is the fingerprint, or the sketch in an index on signatures, with the
    /// scope's word in front if there is one. Returns false if this was the last leaf.
    pub fn step<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        emit: &mut impl FnMut(Key<N>, Tid),
    ) -> Result<bool> {
        self.leaf.clear();
        let end = read_leaf(
            tree,
            &mut self.cursor,
            &mut self.leaf,
            (None, None),
            &mut |_| true,
        )?;
        let permutation = &self.layout.permutations()[0];
        for (entry, key) in self.leaf.keys().iter().enumerate() {
            if let Some(row) = self.leaf.row(entry, &mut Some) {
                emit(permutation.restore(key), row);
            }
        }
        Ok(end.is_some())
    }
}
