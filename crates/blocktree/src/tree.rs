//! A B-link tree (Lehman and Yao, ACM TODS 6, 1981) over a store: finding the page where an
//! entry key belongs.

use crate::inner::{self, Inner};
use crate::inner_cache::InnerCache;
use crate::key::{Block, EntryKey, Key};
use crate::leaf::Leaf;
use crate::leaf_cache::LeafCache;
use crate::meta::{MetaView, Root};
use crate::page::{Corruption, Entries, Kind, PageView, Result, corrupt};
use crate::store::{PageGuard, ReadPages, WritePages};
use std::cell::Cell;

/// The most levels a sound tree can have, by far; beyond it links go in circles.
const MAX_LEVEL: u16 = 16;

/// Steps to the right from where a link or a guess led, before the way from the root is taken.
/// Values that are spread unevenly lie further off than the guess has it; so does a page that was
/// used again at the left end of its level.
const MOST_STEPS: u32 = 4;

/// A tree over the pages of a store.
pub struct Tree<'s, S: ReadPages, const N: usize> {
    pub(crate) store: &'s S,
    root: Cell<Root>,
    pub(crate) leaves: Option<&'s LeafCache>,
}

impl<'s, S: ReadPages, const N: usize> Tree<'s, S, N> {
    /// The tree whose root once stood, or stands, where `root` says. An old root still leads
    /// everywhere, by right links.
    pub fn new(store: &'s S, root: Root) -> Self {
        Tree {
            store,
            root: Cell::new(root),
            leaves: None,
        }
    }

    /// The same tree with a memory for leaves. No page may be moved to another block as long as the
    /// memory is used.
    pub fn with_leaf_cache(self, leaves: &'s LeafCache) -> Self {
        Tree {
            leaves: Some(leaves),
            ..self
        }
    }

    /// The leaf of a key, as it is remembered.
    #[inline]
    fn remembered(&self, permutation: u16, key: &Key<N>) -> Option<Block> {
        self.leaves?.get(permutation, key)
    }

    /// Remembers the leaf of a key.
    #[inline]
    pub(crate) fn remember(&self, permutation: u16, key: &Key<N>, leaf: Block) {
        if let Some(leaves) = self.leaves {
            leaves.remember(permutation, key, leaf);
        }
    }

    /// The leaf where a permutation has, or had, a key; or about where, if it is remembered. A
    /// start for [`Tree::find`].
    #[inline]
    pub(crate) fn leaf_of(&self, entry_key: &EntryKey<N>, key: &Key<N>) -> Result<Block> {
        if let Some(leaf) = self.remembered(entry_key.permutation, key) {
            return Ok(leaf);
        }
        let leaf = self.descend(entry_key, 0)?;
        self.remember(entry_key.permutation, key, leaf);
        Ok(leaf)
    }

    /// [`Tree::leaf_of`] for several keys, with one access to the root for all of them. A leaf
    /// that was not cached is passed to `on_found`.
    #[inline]
    pub(crate) fn leaves_of<const M: usize>(
        &self,
        wanted: &[Option<(EntryKey<N>, Key<N>)>; M],
        on_found: impl Fn(Block),
    ) -> Result<[Option<Block>; M]> {
        let mut leaves = wanted.each_ref().map(|wanted| {
            let (entry_key, key) = wanted.as_ref()?;
            self.remembered(entry_key.permutation, key)
        });
        if leaves
            .iter()
            .zip(wanted)
            .all(|(leaf, wanted)| leaf.is_some() == wanted.is_some())
        {
            return Ok(leaves);
        }
        if let Some(cache) = self.leaves
            && cache.inner.counts()
        {
            for (leaf, wanted) in leaves.iter_mut().zip(wanted) {
                if let (None, Some((entry_key, key))) = (*leaf, wanted) {
                    let found = self.descend_by_copies(entry_key, &cache.inner)?;
                    on_found(found);
                    self.remember(entry_key.permutation, key, found);
                    *leaf = Some(found);
                }
            }
            return Ok(leaves);
        }
        let root = self.root.get();
        let below = {
            let page = Inner::unchecked(self.store.read_inner(root.block));
            // Where the root does not cover a key, the descent finds out why.
            wanted.each_ref().map(|wanted| {
                let (entry_key, _) = wanted.as_ref()?;
                let position = self.check_position(entry_key, &page, root.level);
                matches!(position, Ok(PositionCheck::Covers))
                    .then(|| (page.child_of(entry_key), root.level - 1))
            })
        };
        for ((leaf, wanted), below) in leaves.iter_mut().zip(wanted).zip(below) {
            if let (None, Some((entry_key, key))) = (*leaf, wanted) {
                let found = self.descend_from(entry_key, 0, below)?;
                on_found(found);
                self.remember(entry_key.permutation, key, found);
                *leaf = Some(found);
            }
        }
        Ok(leaves)
    }

    /// Descends as [`Tree::descend`] to a leaf, by copies of inner pages where there are some.
    /// Pages that cover the key are copied on the way.
    fn descend_by_copies(&self, entry_key: &EntryKey<N>, copies: &InnerCache) -> Result<Block> {
        let root = self.root.get();
        let (mut block, mut from) = (root.block, root.block);
        for level in (1..=root.level).rev() {
            let above = core::mem::replace(&mut from, block);
            block = match copies.child(from, entry_key) {
                Some(child) => child,
                None => {
                    let page = Inner::unchecked(self.store.read_inner(from));
                    let position = self.check_position(entry_key, &page, level);
                    if !matches!(position, Ok(PositionCheck::Covers)) {
                        // The way without copies finds out why.
                        drop(page);
                        copies.forget_page(above);
                        return self.descend(entry_key, 0);
                    }
                    copies.keep(from, &page.page);
                    page.child_of(entry_key)
                }
            };
        }
        copies.led_to(entry_key.permutation, block, from);
        Ok(block)
    }

    /// The newest root that this tree has come across, worth keeping for next time.
    pub fn root(&self) -> Root {
        self.root.get()
    }

    /// Reads the root's block again.
    pub(crate) fn refresh_root(&self) -> Result<Root> {
        let root = MetaView::new(self.store.read(0)).root()?;
        if root.level == 0 || root.level > MAX_LEVEL {
            return corrupt(0, "the root's level is impossible");
        }
        self.root.set(root);
        Ok(root)
    }

    /// The root, refreshed if the remembered one is not above a level.
    fn root_above(&self, level: u16) -> Result<Root> {
        match self.root.get() {
            root if root.level > level => Ok(root),
            _ => self.refresh_root(),
        }
    }

    /// Reads the root that has replaced another one; if none has, the defect is an error.
    fn next_root(&self, old: Root, defect: Corruption) -> Result<Root> {
        let root = self.refresh_root()?;
        if root == old { Err(defect) } else { Ok(root) }
    }

    /// The block on a level (below the root's) where an entry key was when its parent was read. It
    /// may have moved right since, or left, when pages were merged: see [`Tree::find`].
    pub(crate) fn descend(&self, entry_key: &EntryKey<N>, level: u16) -> Result<Block> {
        self.descend_from(entry_key, level, None)
    }

    /// Descends as [`Tree::descend`] does; `start` is a page below the root to begin at, with its
    /// level.
    fn descend_from(
        &self,
        entry_key: &EntryKey<N>,
        level: u16,
        mut start: Option<(Block, u16)>,
    ) -> Result<Block> {
        let mut root = self.root_above(level)?;
        let mut restarts = Restarts::default();
        'from_root: loop {
            let (mut block, mut at) = start.take().unwrap_or((root.block, root.level));
            let mut move_right = MoveRight::<N>::default();
            while at > level {
                let page = Inner::unchecked(self.store.read_inner(block));
                let position = match self.check_position(entry_key, &page, at) {
                    // The root that was remembered has been moved to another block. A free page
                    // may have taken its place, whose other holders wait for nothing.
                    Err(damage) if block == root.block => {
                        drop(page);
                        root = self.next_root(root, damage)?;
                        continue 'from_root;
                    }
                    Ok(PositionCheck::MoveRight) if move_right.leads_back(page.high_key()) => {
                        PositionCheck::Stale
                    }
                    position => position?,
                };
                match position {
                    PositionCheck::Covers => {
                        block = page.child_of(entry_key);
                        at -= 1;
                        move_right = MoveRight::default();
                        continue;
                    }
                    // The root has been split. Its old self would do, but the way from the new one
                    // is shorter. (A root on the newest meta page has no right link.)
                    PositionCheck::MoveRight if block == root.block => {
                        drop(page);
                        let what = "the root has a right link";
                        root = self.next_root(root, Corruption { block, what })?;
                        continue 'from_root;
                    }
                    PositionCheck::MoveRight => {
                        block = move_right.next(page.right_sibling(), block)?
                    }
                    PositionCheck::Stale => {
                        restarts.count(block)?;
                        drop(page);
                        self.store.check_interrupts();
                        root = self.refresh_root()?;
                        continue 'from_root;
                    }
                }
                drop(page);
                self.store.check_interrupts();
            }
            return Ok(block);
        }
    }

    /// The number of leaves, about, on which the entries from one position to another stand. Exact
    /// if one inner page leads to all of them; else they are many, and the result is their
    /// number below pages of the usual fill.
    pub fn leaves_between(&self, from: &EntryKey<N>, to: &EntryKey<N>) -> Result<f64> {
        let mut level = 1;
        loop {
            let page: Inner<_, N> =
                self.find(from, level, None, |block| self.store.read_inner(block))?;
            let first = page.search(from);
            if !page.is_left_of(to) {
                let others = (page.search(to) - first) as f64;
                return Ok(match level {
                    1 => others + 1.0,
                    _ => others * inner::usual_count::<N>().powi(i32::from(level) - 1),
                });
            }
            // The next level up knows how many pages there are in between. The root has none beside
            // it, unless it has just been split.
            let others = (page.count() - first) as f64;
            drop(page);
            level += 1;
            if level > self.root.get().level && self.refresh_root()?.level < level {
                return Ok(others);
            }
        }
    }

    /// Locks, by `take`, the page on a level where an entry key belongs. It first tries the page to
    /// which an earlier link led, if there is such a `hint`.
    #[inline]
    pub(crate) fn find<P: PageGuard, E: Entries>(
        &self,
        entry_key: &EntryKey<N>,
        level: u16,
        hint: Option<Block>,
        take: impl Fn(Block) -> P,
    ) -> Result<PageView<P, N, E>> {
        let mut block = match hint {
            Some(block) => block,
            None => self.descend(entry_key, level)?,
        };
        let mut move_right = MoveRight::<N>::default();
        let mut restarts = Restarts::default();
        let mut steps = if hint.is_some() { MOST_STEPS } else { u32::MAX };
        loop {
            let page = PageView::<P, N, E>::unchecked(take(block));
            let position = self.check_position(entry_key, &page, level)?;
            if level == 0
                && hint == Some(block)
                && !matches!(position, PositionCheck::Covers)
                && let Some(leaves) = self.leaves
            {
                leaves.inner.misled(entry_key.permutation, block);
            }
            let position = match position {
                PositionCheck::MoveRight if move_right.leads_back(page.high_key()) => {
                    PositionCheck::Stale
                }
                position => position,
            };
            match position {
                PositionCheck::Covers => return Ok(page),
                PositionCheck::MoveRight if steps == 0 => {
                    drop(page);
                    block = self.descend(entry_key, level)?;
                    move_right = MoveRight::default();
                    steps = u32::MAX;
                }
                PositionCheck::MoveRight => {
                    block = move_right.next(page.right_sibling(), block)?;
                    drop(page);
                    steps -= 1;
                }
                PositionCheck::Stale => {
                    restarts.count(block)?;
                    drop(page);
                    block = self.descend(entry_key, level)?;
                    move_right = MoveRight::default();
                }
            }
            self.store.check_interrupts();
        }
    }

    /// Returns whether an entry exists. Its leaf is released with [`ReadPages::unlock_keep_pin`].
    pub fn holds(&self, entry_key: &EntryKey<N>) -> Result<bool> {
        let leaf: Leaf<_, N> = self.find(entry_key, 0, None, |block| self.store.read(block))?;
        // Addresses differ, keys hardly ever: the first comparison tells nearly all apart.
        let is_here = |i| leaf.tid(i) == entry_key.tid && leaf.key(i) == entry_key.key;
        let holds = (0..leaf.count()).any(is_here);
        self.store.unlock_keep_pin(leaf.page);
        Ok(holds)
    }

    /// Checks whether an entry key belongs to the page that a link named for it.
    ///
    /// Between the reads of the link and of the page a vacuum may have taken the page out of the
    /// tree, and a split may have put it at another position of its level since. Pages know where
    /// they start, so that this shows, and the descent restarts from the root.
    #[inline]
    fn check_position<E: Entries>(
        &self,
        entry_key: &EntryKey<N>,
        page: &PageView<impl PageGuard, N, E>,
        level: u16,
    ) -> Result<PositionCheck> {
        if page.kind() == Some(Kind::Free) && page.level() == level {
            return Ok(PositionCheck::Stale);
        }
        page.check_on(level)?;
        if page.low_key() > *entry_key {
            return Ok(PositionCheck::Stale);
        }
        if page.is_left_of(entry_key) {
            return Ok(PositionCheck::MoveRight);
        }
        if level == 0 && page.permutation() != entry_key.permutation {
            return corrupt(page.block(), "leaf of another permutation");
        }
        Ok(PositionCheck::Covers)
    }

    /// Returns whether a leaf to which a link or a guess led is the one where an entry key belongs.
    #[inline]
    pub(crate) fn covers(
        &self,
        entry_key: &EntryKey<N>,
        leaf: &Leaf<impl PageGuard, N>,
    ) -> Result<bool> {
        let position = self.check_position(entry_key, leaf, 0)?;
        Ok(matches!(position, PositionCheck::Covers))
    }

    /// Reads an inner page that must be on a level.
    pub(crate) fn read_inner(&self, block: Block, level: u16) -> Result<Inner<S::Read<'s>, N>> {
        PageView::open_on(self.store.read(block), level)
    }
}

impl<'s, S: WritePages, const N: usize> Tree<'s, S, N> {
    /// Locks the inner page on a level where an entry key belongs, for a change.
    pub(crate) fn lock_inner(
        &self,
        entry_key: &EntryKey<N>,
        level: u16,
    ) -> Result<Inner<S::Write<'s>, N>> {
        let root = self.root.get();
        let hint = (root.level == level).then_some(root.block);
        self.find(entry_key, level, hint, |block| self.store.write(block))
    }
}

/// Relation of an entry key to a page.
enum PositionCheck {
    /// On it.
    Covers,
    /// Further right.
    MoveRight,
    /// The page is not the one that was meant.
    Stale,
}

/// Number of stale pages met in one search, with a limit: for each a vacuum must have come between
/// two accesses, but a damaged link leads to stale pages for ever.
#[derive(Default)]
struct Restarts(u32);

impl Restarts {
    fn count(&mut self, block: Block) -> Result<()> {
        self.0 += 1;
        if self.0 > 1_000 {
            return corrupt(block, "not where links to it say");
        }
        Ok(())
    }
}

/// A way along right links. High keys must grow on it, so that it ends even if damaged links lead
/// in a circle. Between two accesses the page to the right may have been taken away, and used again
/// further left.
#[derive(Clone, Copy, Debug)]
struct MoveRight<const N: usize>(Option<EntryKey<N>>);

impl<const N: usize> Default for MoveRight<N> {
    fn default() -> Self {
        MoveRight(None)
    }
}

impl<const N: usize> MoveRight<N> {
    /// Returns whether a page with this high key ends no further right than the one before it on
    /// the way.
    #[inline]
    fn leads_back(&self, high_key: Option<EntryKey<N>>) -> bool {
        (self.0.zip(high_key)).is_some_and(|(last, high)| high <= last)
    }

    /// The block of a page's right sibling.
    #[inline]
    fn next(&mut self, sibling: Option<(EntryKey<N>, Block)>, block: Block) -> Result<Block> {
        let Some((high, right)) = sibling else {
            return corrupt(block, "a right link is missing");
        };
        self.0 = Some(high);
        Ok(right)
    }
}
