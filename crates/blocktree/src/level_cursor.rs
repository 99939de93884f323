//! Cursors that read the pages of one level of the tree from left to right. Level 0 has the leaves.
//! A cursor keeps its position as an entry key, so pages may be split or merged between its steps.
//! An entry key consists of a permutation, a key and a row address, and determines the order of all
//! entries in the tree.

use crate::inner::Inner;
use crate::key::{Block, EntryKey};
use crate::leaf::Leaf;
use crate::page::{Entries, PageView, Result};
use crate::store::{PageGuard, ReadPages};
use crate::tree::Tree;

/// Position of a cursor: the first entry key that has not been read, and the block of the page that
/// probably covers it. The block is `None` if the cursor must descend from the root. The position
/// is `None` if all pages have been read.
pub(crate) type NextPage<const N: usize> = Option<(EntryKey<N>, Option<Block>)>;

/// Cursor that reads the pages of one level of the tree, or the leaves of one permutation (ordered
/// copy of all keys), from left to right. Holds no lock and no pin between steps.
#[derive(Clone, Copy, Debug)]
pub struct LevelCursor<const N: usize> {
    level: u16,
    next: NextPage<N>,
}

impl<const N: usize> LevelCursor<N> {
    /// Creates a cursor that reads all leaves of a permutation.
    pub fn new(permutation: u16) -> Self {
        Self::at(EntryKey::start_of(permutation))
    }

    /// Creates a cursor that reads from the leaf of `entry_key` to the last leaf of its
    /// permutation.
    pub(crate) fn at(entry_key: EntryKey<N>) -> Self {
        let next = Some((entry_key, None));
        LevelCursor { level: 0, next }
    }

    /// Returns the next page, locked by `take`, and the first entry key on it that has not been
    /// read. `None` after the last page.
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

    /// Returns the next leaf, locked by `take`, and the first entry key that has not been read. The
    /// caller must skip lower entries of the leaf: it has read them on a leaf that was then merged
    /// into this one. `None` after the last leaf.
    pub fn step<S: ReadPages, P: PageGuard>(
        &mut self,
        tree: &Tree<'_, S, N>,
        take: impl Fn(Block) -> P,
    ) -> Result<Option<(Leaf<P, N>, EntryKey<N>)>> {
        self.advance(tree, take)
    }

    /// Ends the cursor early: it returns no more pages.
    pub(crate) fn stop(&mut self) {
        self.next = None;
    }
}

impl<S: ReadPages, const N: usize> Tree<'_, S, N> {
    /// Calls `each` with every inner page of a level, locked for reading, from left to right.
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
