//! Merges neighbouring pages of the tree that VACUUM has left nearly empty, so that their space can
//! be reused.
//!
//! Pages are merged to the left (Lanin and Shasha, "A symmetric concurrent B-tree algorithm", FJCC
//! 1986): the entries of the right page move to the left page, and the right page leaves the tree.
//! Both happen in one log record.

use crate::build::Fill;
use crate::inner::{Inner, InnerEntries, InnerMut, InnerRef};
use crate::key::Block;
use crate::leaf::{Leaf, LeafEntries, LeafMut, LeafRef};
use crate::meta::{FREE_LISTS, MetaMut, MetaView};
use crate::page::{Entries, Kind, Page, PageView, Result};
use crate::shape::Shape;
use crate::store::WritePages;
use crate::tree::Tree;
use std::ops::Deref;

/// Trait for the entries of pages that can be merged with a neighbour. The marker types for the
/// entries of leaves and of inner pages implement it.
trait Mergeable: Entries {
    /// Returns the maximum number of entries of a page that replaces the neighbours `left` and
    /// `right`, if it may be filled up to `fill`. 0 if the pages are damaged.
    fn merged_capacity<P: Deref<Target = Page>, const N: usize>(
        left: &PageView<P, N, Self>,
        right: &PageView<P, N, Self>,
        fill: Fill,
    ) -> usize
    where
        Self: Sized;

    /// Appends the entries of `right` to its left neighbour `left`. The right sibling of `right`
    /// becomes the right sibling of `left`.
    fn merge<const N: usize>(left: &mut Page, right: &Page);
}

impl Mergeable for LeafEntries {
    fn merged_capacity<P: Deref<Target = Page>, const N: usize>(
        left: &Leaf<P, N>,
        right: &Leaf<P, N>,
        fill: Fill,
    ) -> usize {
        // A merged leaf omits the key bytes that are equal in its range, so the ranges must be
        // right.
        let sound = left.low_key() < right.low_key()
            && left.high_key() == Some(right.low_key())
            && left.covers_its_range()
            && right.covers_its_range();
        match sound {
            true => fill.of_leaf(left.shape_with(right)),
            false => 0,
        }
    }

    fn merge<const N: usize>(left: &mut Page, right: &Page) {
        LeafMut::<N>::unchecked(left).merge(&LeafRef::unchecked(right));
    }
}

impl Mergeable for InnerEntries {
    fn merged_capacity<P: Deref<Target = Page>, const N: usize>(
        _: &Inner<P, N>,
        _: &Inner<P, N>,
        fill: Fill,
    ) -> usize {
        fill.of_inner::<N>()
    }

    fn merge<const N: usize>(left: &mut Page, right: &Page) {
        InnerMut::<N>::unchecked(left).append_from(&InnerRef::unchecked(right), 0);
    }
}

impl<S: WritePages, const N: usize> Tree<'_, S, N> {
    /// Merges two neighbours of a level if the merged page is not fuller than `fill` permits. Frees
    /// the right page. Returns the number of entries of the merged page. Returns `None` if the
    /// pages are not merged. Possible reasons are that they are too full, are no longer neighbours
    /// or have different parents, or that the right page is locked or pinned. Does not merge pages
    /// on a level without a free list.
    ///
    /// The caller holds no lock. Only one vacuum may call this at a time.
    fn merge<E: Mergeable>(
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
        // A scan that has pinned the right page relies on finding its rows on this page or further
        // right. Waiting for the pin while the left page is locked could deadlock.
        let Some(right) = self.store.try_cleanup_lock(right) else {
            return Ok(None);
        };
        let mut right = PageView::<_, N, E>::open_on(right, level)?;
        let sum = left.count() + right.count();
        let separator = right.low_key();
        if left.permutation() != separator.permutation && level == 0
            || sum > E::merged_capacity(&left, &right, fill)
        {
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
                E::merge::<N>(left, right);
                MetaMut::new(meta_page).add_free::<N>(right, freed, level);
                InnerMut::<N>::unchecked(parent).remove(slot);
            },
        );
        Ok(Some(sum))
    }

    /// Merges neighbouring inner pages on all levels, if their entries fit on one page filled up to
    /// `fill`. Returns the number of freed pages.
    pub(crate) fn merge_inner_pages(&self, fill: Fill) -> Result<u64> {
        let mut freed = 0;
        for level in 1..self.refresh_root()?.level {
            let mut candidate = NeighbourMerger::new(level, fill);
            self.each_inner_page(level, |page| {
                let passed = VisitedPage {
                    block: page.block(),
                    count: page.count(),
                    shape: None,
                };
                drop(page);
                self.store.vacuum_delay();
                freed += u64::from(candidate.pass(self, passed)?);
                Ok(())
            })?;
        }
        Ok(freed)
    }

    /// Returns the number of free pages on all levels.
    pub fn free_pages(&self) -> u64 {
        let meta_page = MetaView::new(self.store.read(0));
        (0..FREE_LISTS as u16)
            .map(|level| u64::from(meta_page.free_list(level).count))
            .sum()
    }
}

/// Page that a vacuum has visited on its way along a level.
#[derive(Clone, Copy)]
pub(crate) struct VisitedPage<const N: usize> {
    pub block: Block,
    pub count: usize,
    /// Shape of the page if it is a leaf. `None` for an inner page.
    pub shape: Option<Shape<N>>,
}

/// Merges neighbouring pages of one level while a vacuum visits the level from left to right. Two
/// pages are merged if their entries fit on one page filled up to `fill`.
pub(crate) struct NeighbourMerger<const N: usize> {
    /// Level of the visited pages, 0 for leaves.
    level: u16,
    fill: Fill,
    /// Previously visited page, into which the next one may be merged.
    before: Option<VisitedPage<N>>,
}

impl<const N: usize> NeighbourMerger<N> {
    pub fn new(level: u16, fill: Fill) -> Self {
        NeighbourMerger {
            level,
            fill,
            before: None,
        }
    }

    /// Visits the next page. The caller must not hold a lock on a page. Returns whether the page
    /// was merged into the previously visited page.
    pub fn pass<S: WritePages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        page: VisitedPage<N>,
    ) -> Result<bool> {
        if let Some(left) = &mut self.before {
            // This is an estimate without locks: a merged leaf has a wider range and may omit fewer
            // bytes of each key. [`Tree::merge`] checks it again under locks.
            let most = match left.shape.zip(page.shape) {
                Some((left, right)) => self.fill.of_leaf(left.widest_of(right)),
                None => self.fill.of_inner::<N>(),
            };
            if left.count + page.count <= most
                && let Some(sum) = match self.level {
                    0 => tree.merge::<LeafEntries>(0, left.block, page.block, self.fill)?,
                    level => {
                        tree.merge::<InnerEntries>(level, left.block, page.block, self.fill)?
                    }
                }
            {
                left.count = sum;
                // The actual shape of the merged leaf may need more bytes per entry than this
                // estimate.
                left.shape = (left.shape.zip(page.shape)).map(|(a, b)| a.widest_of(b));
                return Ok(true);
            }
        }
        self.before = Some(page);
        Ok(false)
    }
}
