//! Inner cache: copies of inner pages in the memory of a backend. Searches and insertions descend
//! through the copies from the root to a leaf, without pinning or locking the inner pages.
//!
//! A backend that searches or inserts many rows descends once for each row and each permutation
//! (ordered copy of all keys). A copy may be outdated, like a link that was read earlier or a leaf
//! in the leaf cache. The leaf's own range shows whether it is the right one (`Tree::find`). If it
//! is not, the copy is dropped.

use crate::inner::InnerRef;
use crate::key::{Block, EntryKey};
use crate::page::Page;
use std::cell::{Cell, RefCell};

/// Number of permutations for which the inner cache and the leaf cache remember a leaf. They
/// remember none for permutations whose number is not below this limit. With a higher limit,
/// lookups in the caches would take longer than they save.
pub(crate) const CACHED_PERMUTATIONS: usize = 32;

/// Maximum number of page copies. When it is reached, no further page is copied, and descents read
/// the pages without a copy from the store. The copies take 2 MB, which is enough for about 10
/// million rows with four permutations.
const MOST: usize = 256;

/// Number of descents before the cache starts to copy pages. A transaction of a few rows reads most
/// pages only once, so the copies would cost more than they save.
const BEFORE_COPIES: u32 = 16;

/// Copies of the inner pages of one index. The cache is valid as long as no page is moved to
/// another block.
#[derive(Debug, Default)]
pub(crate) struct InnerCache {
    /// Block number and copy of each copied page, sorted by block number. A copy is a `Vec` of one
    /// page, because its allocation can fail without a panic.
    copies: RefCell<Vec<(Block, Vec<Page>)>>,
    /// Number of descents so far, saturating.
    descents: Cell<u32>,
    /// Result of the last descent through page copies in each permutation, indexed by the number of
    /// the permutation: the leaf, and the block of the inner page whose copy has the link to
    /// that leaf. Both blocks are 0 before the first such descent.
    last: [Cell<(Block, Block)>; CACHED_PERMUTATIONS],
}

impl InnerCache {
    /// Counts a descent. Returns whether this descent should copy pages.
    pub(crate) fn counts(&self) -> bool {
        let descents = self.descents.get().saturating_add(1);
        self.descents.set(descents);
        descents > BEFORE_COPIES
    }

    /// Looks up the copy of the inner page at `block`. Returns the block of the child page that
    /// covers the entry key, or `None` if there is no copy. If the copied page does not cover the
    /// entry key, drops the copy and returns `None`.
    pub(crate) fn child<const N: usize>(
        &self,
        block: Block,
        entry_key: &EntryKey<N>,
    ) -> Option<Block> {
        let mut copies = self.copies.borrow_mut();
        let index = copies.binary_search_by_key(&block, |(block, _)| *block);
        let index = index.ok()?;
        let page = InnerRef::<N>::unchecked(copies[index].1.first()?);
        if page.low_key() <= *entry_key && !page.is_left_of(entry_key) {
            return Some(page.child_of(entry_key));
        }
        copies.remove(index);
        None
    }

    /// Stores a copy of the inner page at `block`, unless the cache is full or memory cannot be
    /// allocated. The caller must have checked that the page is not corrupt.
    pub(crate) fn keep(&self, block: Block, page: &Page) {
        let mut copies = self.copies.borrow_mut();
        if copies.len() < MOST
            && let Err(index) = copies.binary_search_by_key(&block, |(block, _)| *block)
        {
            let mut copy = Vec::new();
            if copies.try_reserve(1).is_ok() && copy.try_reserve_exact(1).is_ok() {
                copy.push(*page);
                copies.insert(index, (block, copy));
            }
        }
    }

    /// Records the result of a descent in a permutation: the copy of the inner page at block `from`
    /// has a link to `leaf`.
    pub(crate) fn led_to(&self, permutation: u16, leaf: Block, from: Block) {
        if let Some(last) = self.last.get(usize::from(permutation)) {
            last.set((leaf, from));
        }
    }

    /// Drops the copy of the inner page that led to `leaf` in a permutation. The caller calls this
    /// when `leaf` does not cover the wanted key, which means that the copy is outdated. Does
    /// nothing if a copy has led to another leaf of the permutation since then.
    #[cold]
    pub(crate) fn misled(&self, permutation: u16, leaf: Block) {
        if let Some(last) = self.last.get(usize::from(permutation))
            && last.get().0 == leaf
        {
            self.forget_page(last.get().1);
        }
    }

    /// Drops the copy of the inner page at block `page`, if there is one.
    pub(crate) fn forget_page(&self, page: Block) {
        self.copies.borrow_mut().retain(|(block, _)| *block != page);
    }

    /// Drops the copies of all pages.
    pub(crate) fn forget(&self) {
        self.copies.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inner::InnerMut;
    use crate::key::Tid;
    use crate::page::PAGE_SIZE;

    fn entry_key(word: u64) -> EntryKey<1> {
        EntryKey::new(0, [word], Tid::new(0, 0))
    }

    /// Returns an inner page for the keys from 10 on. Its child pages start at 10 (block 100) and
    /// at 20 (block 200).
    fn page() -> Page {
        let mut page = [0; PAGE_SIZE];
        let mut inner = InnerMut::<1>::format_at(&mut page, 1, &entry_key(10));
        inner.push(&entry_key(10), 100);
        inner.push(&entry_key(20), 200);
        page
    }

    #[test]
    fn a_copy_leads_on_until_it_misleads() {
        let cache = InnerCache::default();
        assert_eq!(cache.child(5, &entry_key(15)), None);
        cache.keep(5, &page());
        assert_eq!(cache.child(5, &entry_key(15)), Some(100));
        assert_eq!(cache.child(5, &entry_key(25)), Some(200));
        cache.led_to(0, 200, 5);
        // A leaf to which the copy did not lead last, and another permutation: the copy stays.
        cache.misled(0, 100);
        cache.misled(1, 200);
        assert_eq!(cache.child(5, &entry_key(25)), Some(200));
        cache.misled(0, 200);
        assert_eq!(cache.child(5, &entry_key(25)), None);
    }

    #[test]
    fn a_copy_that_does_not_cover_a_key_is_dropped() {
        let cache = InnerCache::default();
        cache.keep(5, &page());
        assert_eq!(cache.child(5, &entry_key(9)), None);
        assert_eq!(cache.child(5, &entry_key(15)), None);
    }

    #[test]
    fn copies_are_few() {
        let cache = InnerCache::default();
        for block in 0..2 * MOST as Block {
            cache.keep(block, &page());
        }
        assert_eq!(cache.copies.borrow().len(), MOST);
        cache.forget();
        assert_eq!(cache.child(0, &entry_key(15)), None);
    }

    #[test]
    fn a_short_transaction_makes_no_copies() {
        let cache = InnerCache::default();
        let counted = (0..BEFORE_COPIES + 3).filter(|_| cache.counts());
        assert_eq!(counted.count(), 3);
    }
}
