//! Merging neighbouring pages, so that what vacuums empty is used again.
//!
//! Lanin and Shasha ("A symmetric concurrent B-tree algorithm", FJCC 1986) merge to the left, as is
//! done here: the right page's entries move into the left one, and the right page is taken out of
//! the tree, all in one log record.

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

/// Entries that two neighbours can be merged with.
trait Mergeable: Entries {
    /// The most entries of the page that two neighbours would make; none if they are damaged.
    fn together<P: Deref<Target = Page>, const N: usize>(
        left: &PageView<P, N, Self>,
        right: &PageView<P, N, Self>,
        fill: Fill,
    ) -> usize
    where
        Self: Sized;

    /// Adds the entries of a page to those of its left neighbour, and takes over its right sibling.
    fn merge<const N: usize>(left: &mut Page, right: &Page);
}

impl Mergeable for LeafEntries {
    fn together<P: Deref<Target = Page>, const N: usize>(
        left: &Leaf<P, N>,
        right: &Leaf<P, N>,
        fill: Fill,
    ) -> usize {
        // The page leaves out of all keys what its range allows.
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
    fn together<P: Deref<Target = Page>, const N: usize>(
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
    /// Merges two neighbours of a level, if together they are no fuller than pages of a new tree,
    /// and frees the right one. Returns how many entries the left one has then; `None` if that
    /// cannot be done now: if they have different parents, or a scan has a pin on the right one.
    ///
    /// Callers hold no lock, and only one vacuum calls it at a time.
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
        // A scan that pins the right page relies on its rows being on it or further right. Waiting
        // for it with the left page locked could deadlock.
        let Some(right) = self.store.try_cleanup_lock(right) else {
            return Ok(None);
        };
        let mut right = PageView::<_, N, E>::open_on(right, level)?;
        let sum = left.count() + right.count();
        let separator = right.low_key();
        if left.permutation() != separator.permutation && level == 0
            || sum > E::together(&left, &right, fill)
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

    /// Merges what neighbours there are on the levels above the leaves. Returns how many pages
    /// have been freed.
    pub(crate) fn merge_inner_pages(&self, fill: Fill) -> Result<u64> {
        let mut freed = 0;
        for level in 1..self.refresh_root()?.level {
            let mut candidate = MergeCandidate::new(level, fill);
            self.each_inner_page(level, |page| {
                let passed = Passed {
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

    /// The number of free pages on all levels.
    pub fn free_pages(&self) -> u64 {
        let meta_page = MetaView::new(self.store.read(0));
        (0..FREE_LISTS as u16)
            .map(|level| u64::from(meta_page.free_list(level).count))
            .sum()
    }
}

/// Page that a vacuum has passed.
#[derive(Clone, Copy)]
pub(crate) struct Passed<const N: usize> {
    pub block: Block,
    /// Its entries.
    pub count: usize,
    /// The shape of a leaf.
    pub shape: Option<Shape<N>>,
}

/// Merges the pages of a level that a vacuum passes, from left to right, as long as they fit.
pub(crate) struct MergeCandidate<const N: usize> {
    level: u16,
    fill: Fill,
    before: Option<Passed<N>>,
}

impl<const N: usize> MergeCandidate<N> {
    pub fn new(level: u16, fill: Fill) -> Self {
        MergeCandidate {
            level,
            fill,
            before: None,
        }
    }

    /// Passes a page, with nothing locked. Returns whether it was merged into the page before it.
    pub fn pass<S: WritePages>(&mut self, tree: &Tree<'_, S, N>, page: Passed<N>) -> Result<bool> {
        if let Some(left) = &mut self.before {
            // A leaf of both may have to hold more of each key. That shows when they are locked.
            let most = match left.shape.zip(page.shape) {
                Some((left, right)) => self.fill.of_leaf(left.with_all_of(right)),
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
                // Or one that takes more.
                left.shape = (left.shape.zip(page.shape)).map(|(a, b)| a.with_all_of(b));
                return Ok(true);
            }
        }
        self.before = Some(page);
        Ok(false)
    }
}
