//! Merging neighbouring pages, so that what vacuums empty is used again.
//!
//! Lanin and Shasha ("A symmetric concurrent B-tree algorithm", FJCC 1986) merge to the left, as is
//! done here: the right page's entries move into the left one, and the right page is taken out of
//! the tree, all in one log record.

use crate::build::Fill;
use crate::inner::{InnerEntries, InnerMut};
use crate::key::Block;
use crate::leaf::LeafEntries;
use crate::meta::{FREE_LISTS, MetaMut, MetaView};
use crate::page::{Entries, Kind, PageView, Result};
use crate::store::PageStore;
use crate::tree::Tree;

impl<S: PageStore, const N: usize> Tree<'_, S, N> {
    /// Merges two neighbours of a level, if together they are no fuller than pages of a new tree,
    /// and frees the right one. Returns how many entries the left one has then; `None` if that
    /// cannot be done now: if they have different parents, or a scan has a pin on the right one.
    ///
    /// To be called by one vacuum at a time, holding nothing.
    fn merge<E: Entries>(
        &self,
        level: u16,
        left: Block,
        right: Block,
        fill: Fill,
    ) -> Result<Option<usize>> {
        if usize::from(level) >= FREE_LISTS {
            return Ok(None);
        }
        let mut left = PageView::<_, N, E>::unchecked(self.store.write(left));
        if left.kind() == Some(Kind::Free) || left.right_link() != Some(right) {
            return Ok(None);
        }
        left.check_on(level)?;
        // A scan that pins the right page relies on its rows being on it or further right. Waiting
        // for it with the left page locked could deadlock.
        let Some(right) = self.store.try_cleanup_lock(right) else {
            return Ok(None);
        };
        let mut right = PageView::<_, N, E>::open_on(right, level)?;
        let sum = left.count() + right.count();
        let separator = right.low_key();
        if sum > fill.entries::<N>(level) || left.table() != separator.table && level == 0 {
            return Ok(None);
        }
        let mut parent = self.lock_inner(&separator, level + 1)?;
        let slot = parent.search(&separator);
        let siblings = slot > 0
            && parent.separator(slot) == separator
            && parent.child(slot) == right.block()
            && parent.child(slot - 1) == left.block();
        if !siblings {
            return Ok(None);
        }
        let mut meta_page = self.store.write(0);
        let freed = right.block();
        self.store.change(
            [
                &mut left.page,
                &mut right.page,
                &mut parent.page,
                &mut meta_page,
            ],
            |[left, right, parent, meta_page]| {
                let from = PageView::<_, N, E>::unchecked(&*right);
                PageView::unchecked(left).append_from(&from, 0);
                MetaMut::new(meta_page).add_free::<N>(right, freed, level);
                InnerMut::<N>::unchecked(parent).remove(slot);
            },
        );
        Ok(Some(sum))
    }

    /// Merges what neighbours there are on the levels above the leaves. Returns how many pages
    /// have been freed.
    pub(crate) fn merge_inner_pages(&self, fill: Fill) -> Result<u64> {
        let mut freed = 0;
        for level in 1..self.refresh_root()?.level {
            let mut candidate = MergeCandidate::new(level, fill);
            self.each_inner_page(level, |page| {
                let (block, count) = (page.block(), page.count());
                drop(page);
                self.store.vacuum_delay();
                freed += u64::from(candidate.pass(self, block, count)?);
                Ok(())
            })?;
        }
        Ok(freed)
    }

    /// The number of free pages on all levels.
    pub fn free_pages(&self) -> u64 {
        let meta_page = MetaView::new(self.store.read(0));
        (0..FREE_LISTS as u16)
            .map(|level| u64::from(meta_page.free_list(level).count))
            .sum()
    }
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
        if let Some((left, entries)) = self.before
            && entries + count <= self.fill.entries::<N>(self.level)
            && let Some(sum) = match self.level {
                0 => tree.merge::<LeafEntries>(0, left, block, self.fill)?,
                level => tree.merge::<InnerEntries>(level, left, block, self.fill)?,
            }
        {
            self.before = Some((left, sum));
            return Ok(true);
        }
        self.before = Some((block, count));
        Ok(false)
    }
}
