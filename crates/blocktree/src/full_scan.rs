//! Scans of all rows of an index, or of all rows of a scope: the rows that have equal values in the
//! index columns before the last. The rows without a value (NULL) are in a part of the tree of
//! their own, the null permutation.

use crate::block_layout::BlockLayout;
use crate::key::{EntryKey, Key, Tid};
use crate::level_cursor::LevelCursor;
use crate::page::Result;
use crate::store::ReadPages;
use crate::tree::Tree;
use std::rc::Rc;

/// Row of an index on fingerprints or signatures, as scans return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<const N: usize> {
    /// Address of the row in its table.
    pub tid: Tid,
    /// The scope's word if keys have one, then the fingerprint, or the sketch in an index on
    /// signatures. `None` if the row has no value (NULL).
    pub fingerprint: Option<Key<N>>,
}

/// Scan of all rows of an index, or of all rows of a scope. It reads the first permutation (ordered
/// copy of all keys), which has each row with a fingerprint once. It also reads the null
/// permutation, which has the rows without a fingerprint.
#[derive(Clone, Debug)]
pub struct FullScan<const N: usize> {
    layout: Rc<BlockLayout<N>>,
    cursor: LevelCursor<N>,
    scope: Option<u64>,
    /// Null permutation, if the scan is to read it after the current permutation.
    null_permutation: Option<u16>,
}

impl<const N: usize> FullScan<N> {
    /// Creates a scan of all rows, or of the rows of `scope` if it is given.
    pub fn new(layout: Rc<BlockLayout<N>>, scope: Option<u64>) -> Self {
        debug_assert!(scope.is_none() || layout.scope_words() > 0);
        FullScan {
            cursor: Self::cursor(0, scope),
            scope,
            null_permutation: Some(layout.null_permutation()),
            layout,
        }
    }

    /// Creates a scan of only the rows without a fingerprint. If `scope` is given, reads only the
    /// rows of this scope.
    pub fn nulls(layout: Rc<BlockLayout<N>>, scope: Option<u64>) -> Self {
        FullScan {
            cursor: Self::cursor(layout.null_permutation(), scope),
            ..Self::new(layout, scope).without_nulls()
        }
    }

    /// Makes the scan skip the rows without a fingerprint.
    pub fn without_nulls(mut self) -> Self {
        self.null_permutation = None;
        self
    }

    /// Returns a cursor at the start of a permutation, or of a scope in the permutation.
    fn cursor(permutation: u16, scope: Option<u64>) -> LevelCursor<N> {
        let mut key = [0; N];
        key[0] = scope.unwrap_or(0);
        LevelCursor::at(EntryKey::before_key(permutation, key))
    }

    /// Reads one more leaf and appends its rows to `rows`. Returns false if there was no leaf left
    /// to read.
    pub fn step<S: ReadPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        rows: &mut Vec<Row<N>>,
    ) -> Result<bool> {
        let Some((leaf, from)) = self.cursor.step(tree, |block| tree.store.read(block))? else {
            let Some(permutation) = self.null_permutation.take() else {
                return Ok(false);
            };
            self.cursor = Self::cursor(permutation, self.scope);
            return Ok(true);
        };
        let permutation = self
            .layout
            .permutations()
            .get(usize::from(leaf.permutation()));
        for entry_key in leaf.entries_from(from) {
            if self.scope.is_none_or(|scope| scope == entry_key.key[0]) {
                let (tid, key) = (entry_key.tid, entry_key.key);
                let fingerprint = permutation.map(|permutation| permutation.restore(&key));
                rows.push(Row { tid, fingerprint });
            }
        }
        let beyond = |scope: u64| leaf.high_key().is_some_and(|high| high.key[0] > scope);
        if self.scope.is_some_and(beyond) {
            self.cursor.stop();
        }
        tree.store.unlock_keep_pin(leaf.page);
        Ok(true)
    }
}
