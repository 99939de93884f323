//! Cursors along the pages of a level, and scans of all rows.

use crate::block_layout::BlockLayout;
use crate::inner::Inner;
use crate::key::{Block, EntryKey, Key, Tid};
use crate::leaf::Leaf;
use crate::page::{Entries, PageView, Result};
use crate::store::{PageGuard, ReadPages};
use crate::tree::Tree;
use std::rc::Rc;

/// The next page to read: the entry key that belongs on it, and the page to try first, without
/// which the way is from the root. `None`: all have been read.
pub(crate) type NextPage<const N: usize> = Option<(EntryKey<N>, Option<Block>)>;

/// Cursor along the pages of a level, or the leaves of one permutation, from left to right. Between
/// steps it holds no page.
#[derive(Clone, Copy, Debug)]
pub struct LevelCursor<const N: usize> {
    level: u16,
    next: NextPage<N>,
}

impl<const N: usize> LevelCursor<N> {
    /// Along the leaves of a permutation.
    pub fn new(permutation: u16) -> Self {
        Self::at(EntryKey::start_of(permutation))
    }

    /// Reads from the leaf of an entry key to the last leaf of its permutation.
    pub(crate) fn at(entry_key: EntryKey<N>) -> Self {
        let next = Some((entry_key, None));
        LevelCursor { level: 0, next }
    }

    /// The next page, locked by `take`, and the entry key from which it has not been read.
    fn advance<S: ReadPages, P: PageGuard, E: Entries>(
        &mut self,
        tree: &Tree<'_, S, N>,
        take: impl Fn(Block) -> P,
    ) -> Result<Option<(PageView<P, N, E>, EntryKey<N>)>> {
        let Some((entry_key, hint)) = self.next else {
            return Ok(None);
        };
        let page = tree.find(&entry_key, self.level, hint, take)?;
        self.next = match page.right_sibling() {
            Some((high, right)) if self.level > 0 || high.permutation == entry_key.permutation => {
                Some((high, Some(right)))
            }
            _ => None,
        };
        Ok(Some((page, entry_key)))
    }

    /// The next leaf, locked by `take`, and the entry key from which it has not been read: entries
    /// before it were on a leaf that has been merged into this one since. `None` after the last.
    pub fn step<S: ReadPages, P: PageGuard>(
        &mut self,
        tree: &Tree<'_, S, N>,
        take: impl Fn(Block) -> P,
    ) -> Result<Option<(Leaf<P, N>, EntryKey<N>)>> {
        self.advance(tree, take)
    }

    fn stop(&mut self) {
        self.next = None;
    }
}

impl<S: ReadPages, const N: usize> Tree<'_, S, N> {
    /// Calls a function with each inner page of a level, locked for reading, from left to right.
    pub(crate) fn each_inner_page(
        &self,
        level: u16,
        mut each: impl FnMut(Inner<S::Read<'_>, N>) -> Result<()>,
    ) -> Result<()> {
        let next = Some((EntryKey::start_of(0), None));
        let mut cursor = LevelCursor::<N> { level, next };
        while let Some((page, _)) = cursor.advance(self, |block| self.store.read(block))? {
            each(page)?;
            self.store.check_interrupts();
        }
        Ok(())
    }
}

/// A row of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<const N: usize> {
    /// Its address.
    pub tid: Tid,
    /// Its fingerprint, behind its scope; `None` if it has none.
    pub fingerprint: Option<Key<N>>,
}

/// All rows of an index, or of a scope, those without a fingerprint too: each stands once in the
/// first permutation or in that of the nulls.
#[derive(Clone, Debug)]
pub struct FullScan<const N: usize> {
    layout: Rc<BlockLayout<N>>,
    cursor: LevelCursor<N>,
    scope: Option<u64>,
    /// The permutation of the nulls, while it is still to come.
    null_permutation: Option<u16>,
}

impl<const N: usize> FullScan<N> {
    /// Starts at the first row, or at the first row of a scope if the keys have scopes.
    pub fn new(layout: Rc<BlockLayout<N>>, scope: Option<u64>) -> Self {
        debug_assert!(scope.is_none() || layout.scope_words() > 0);
        FullScan {
            cursor: Self::cursor(0, scope),
            scope,
            null_permutation: Some(layout.null_permutation()),
            layout,
        }
    }

    /// The rows without a fingerprint only.
    pub fn nulls(layout: Rc<BlockLayout<N>>, scope: Option<u64>) -> Self {
        FullScan {
            cursor: Self::cursor(layout.null_permutation(), scope),
            ..Self::new(layout, scope).without_nulls()
        }
    }

    /// Leaves out the rows that have no fingerprint.
    pub fn without_nulls(mut self) -> Self {
        self.null_permutation = None;
        self
    }

    fn cursor(permutation: u16, scope: Option<u64>) -> LevelCursor<N> {
        let mut key = [0; N];
        key[0] = scope.unwrap_or(0);
        LevelCursor::at(EntryKey::before_key(permutation, key))
    }

    /// Reads one more leaf and appends its rows. False: there was none left.
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
