//! Merging neighbouring pages, so that what vacuums empty is used again.
//!
//! Lanin and Shasha ("A symmetric concurrent B-tree algorithm", FJCC 1986) merge to the left, as is
//! done here: the right page's entries move into the left one, and the right page is taken out of
//! the tree, all in one log record.

use crate::build::Fill;
use crate::inner;
use crate::key::Block;
use crate::leaf;
use crate::level_cursor::LevelCursor;
use crate::meta::{self, FREE_LISTS, FreeList};
use crate::page::{self, Kind, Page, Result};
use crate::store::{PageGuard, PageStore};
use crate::tree::Tree;

impl<S: PageStore, const N: usize> Tree<'_, S, N> {
    /// Merges two neighbours of a level, if together they are no fuller than pages of a new tree,
    /// and frees the right one. Returns how many entries the left one has then; `None` if that
    /// cannot be done now: if they have different parents, or somebody stands on the right one.
    ///
    /// To be called by one vacuum at a time, holding nothing.
    pub(crate) fn merge(
        &self,
        level: u16,
        left: Block,
        right: Block,
        fill: Fill,
    ) -> Result<Option<usize>> {
        let entries = |page: &Page| match level {
            0 => leaf::count::<N>(page),
            _ => inner::count::<N>(page),
        };
        let most = match level {
            0 => fill.leaf_entries::<N>(),
            _ => fill.inner_entries::<N>(),
        };
        if usize::from(level) >= FREE_LISTS {
            return Ok(None);
        }
        let mut left = self.store.write(left);
        if page::kind(&left) == Some(Kind::Free) || page::right(&left) != Some(right) {
            return Ok(None);
        }
        self.expect(&left, level)?;
        // A scan that pins the right page relies on its rows being on it or further right. Waiting
        // for it with the left page locked could deadlock.
        let Some(mut right) = self.store.try_cleanup_lock(right) else {
            return Ok(None);
        };
        self.expect(&right, level)?;
        let sum = entries(&left) + entries(&right);
        let separator = page::low::<N>(&right);
        if sum > most || page::table(&left) != separator.table && level == 0 {
            return Ok(None);
        }
        let mut parent = self.lock(&separator, level + 1)?;
        let slot = inner::search(&parent, &separator);
        let siblings = slot > 0
            && inner::separator(&parent, slot) == separator
            && inner::child::<N>(&parent, slot) == right.block()
            && inner::child::<N>(&parent, slot - 1) == left.block();
        if !siblings {
            return Ok(None);
        }
        let mut meta_page = self.store.write(0);
        let FreeList { first, count } = meta::free_list(&meta_page, level);
        let freed = right.block();
        self.store.change(
            [&mut left, &mut right, &mut parent, &mut meta_page],
            |[left, right, parent, meta_page]| {
                carry_over::<N>(left, right);
                page::free::<N>(right, level, first);
                inner::remove::<N>(parent, slot);
                let list = FreeList {
                    first: Some(freed),
                    count: count + 1,
                };
                meta::put_free_list(meta_page, level, list);
            },
        );
        Ok(Some(sum))
    }

    /// Merges what neighbours there are on the levels above the leaves. Returns how many pages
    /// have been freed.
    pub(crate) fn merge_inner_pages(&self, fill: Fill) -> Result<u64> {
        let mut freed = 0;
        for level in 1..self.refresh_root()?.level {
            let mut cursor = LevelCursor::<N>::on_level(level);
            let mut candidate = MergeCandidate::new(level, fill);
            while let Some((page, _)) = cursor.step(self, |block| self.store.read(block))? {
                let (block, count) = (page.block(), inner::count::<N>(&page));
                drop(page);
                self.store.vacuum_delay();
                freed += u64::from(candidate.pass(self, block, count)?);
            }
        }
        Ok(freed)
    }

    /// The number of free pages on all levels.
    pub fn free_pages(&self) -> u64 {
        let meta_page = self.store.read(0);
        (0..FREE_LISTS as u16)
            .map(|level| u64::from(meta::free_list(&meta_page, level).count))
            .sum()
    }
}

/// Moves all of a page into its left neighbour.
fn carry_over<const N: usize>(left: &mut Page, right: &Page) {
    if page::kind(right) == Some(Kind::Inner) {
        for i in 0..inner::count::<N>(right) {
            let end = inner::count::<N>(left);
            let separator = inner::separator::<N>(right, i);
            inner::insert(left, end, &separator, inner::child::<N>(right, i));
        }
    } else {
        for i in 0..leaf::count::<N>(right) {
            leaf::push::<N>(left, &leaf::key(right, i), leaf::tid::<N>(right, i));
        }
    }
    page::put_high(left, page::high::<N>(right).zip(page::right(right)));
}

/// Merges the pages of a level that a vacuum passes, from left to right, as long as they fit.
pub(crate) struct MergeCandidate {
    level: u16,
    fill: Fill,
    /// The page before, and its entries.
    before: Option<(Block, usize)>,
}

impl MergeCandidate {
    pub fn new(level: u16, fill: Fill) -> Self {
        MergeCandidate {
            level,
            fill,
            before: None,
        }
    }

    /// Passes a page of `count` entries, with nothing locked. Returns whether it was merged into
    /// the page before it.
    pub fn pass<S: PageStore, const N: usize>(
        &mut self,
        tree: &Tree<'_, S, N>,
        block: Block,
        count: usize,
    ) -> Result<bool> {
        let most = match self.level {
            0 => self.fill.leaf_entries::<N>(),
            _ => self.fill.inner_entries::<N>(),
        };
        if let Some((left, entries)) = self.before
            && entries + count <= most
            && let Some(sum) = tree.merge(self.level, left, block, self.fill)?
        {
            self.before = Some((left, sum));
            return Ok(true);
        }
        self.before = Some((block, count));
        Ok(false)
    }
}
