//! B-link tree (Lehman and Yao, ACM TODS 6, 1981) over a page store: descends from the root to the
//! page that covers an entry key. An entry key consists of a permutation (ordered copy of all keys
//! in the index), a key and a row address. Each page covers a range of entry keys. Level 0 has the
//! leaves. Links lead from a page down to its child pages, and to its right sibling. Other
//! processes may split and merge pages, so a link may be outdated when it is followed. The search
//! then continues to the right or starts again from the root.

use crate::inner::{self, Inner};
use crate::inner_cache::InnerCache;
use crate::key::{Block, EntryKey, Key};
use crate::leaf::Leaf;
use crate::leaf_cache::LeafCache;
use crate::meta::{MetaView, Root};
use crate::page::{Corruption, Entries, Kind, PageView, Result, corrupt};
use crate::store::{PageGuard, ReadPages, WritePages};
use std::cell::Cell;

/// Maximum level of the root. A higher level on the meta page is reported as corruption, because no
/// intact tree is so high.
const MAX_LEVEL: u16 = 16;

/// Maximum number of right links that a search follows from a page that was only a hint. After that
/// number, it descends from the root instead. There are two reasons why the wanted page may be
/// further away. A hint may be a guess that assumes evenly distributed keys. Or the page may have
/// been removed and then reused further left on its level.
const MAX_STEPS_RIGHT: u32 = 4;

/// Tree over the pages of a store, with the last known location of its root.
pub struct Tree<'s, S: ReadPages, const N: usize> {
    pub(crate) store: &'s S,
    /// Last known root, which may be outdated.
    root: Cell<Root>,
    /// Leaf cache, if the tree uses one.
    pub(crate) leaves: Option<&'s LeafCache>,
}

impl<'s, S: ReadPages, const N: usize> Tree<'s, S, N> {
    /// Makes a tree with this root. An outdated root is sufficient, because right links lead from
    /// it to all pages of its level.
    pub fn new(store: &'s S, root: Root) -> Self {
        Tree {
            store,
            root: Cell::new(root),
            leaves: None,
        }
    }

    /// Adds a leaf cache to the tree. No page may be moved to another block while the cache is
    /// used.
    pub fn with_leaf_cache(self, leaves: &'s LeafCache) -> Self {
        Tree {
            leaves: Some(leaves),
            ..self
        }
    }

    /// Returns the leaf that the leaf cache has for a key in a permutation. `None` if it has no
    /// leaf for the key, or if the tree has no leaf cache.
    #[inline]
    fn remembered(&self, permutation: u16, key: &Key<N>) -> Option<Block> {
        self.leaves?.get(permutation, key)
    }

    /// Stores the leaf of a key in the leaf cache, if there is one.
    #[inline]
    pub(crate) fn remember(&self, permutation: u16, key: &Key<N>, leaf: Block) {
        if let Some(leaves) = self.leaves {
            leaves.remember(permutation, key, leaf);
        }
    }

    /// Stores `leaf` in the leaf cache as the leaf of `key`, if there is a leaf cache and the leaf
    /// covers the key.
    #[inline]
    pub(crate) fn remember_covering(&self, key: &Key<N>, leaf: &Leaf<impl PageGuard, N>) {
        let permutation = leaf.permutation();
        let entry_key = EntryKey::before_key(permutation, *key);
        if self.leaves.is_some() && leaf.low_key() <= entry_key && !leaf.is_left_of(&entry_key) {
            self.remember(permutation, key, leaf.block());
        }
    }

    /// Returns the leaf that probably covers `entry_key`: the leaf that the leaf cache has for
    /// `key`, or the result of a descent if the cache has none. The leaf may be outdated, so it is
    /// only a hint for [`Tree::find`], which checks it.
    #[inline]
    pub(crate) fn leaf_of(&self, entry_key: &EntryKey<N>, key: &Key<N>) -> Result<Block> {
        if let Some(leaf) = self.remembered(entry_key.permutation, key) {
            return Ok(leaf);
        }
        let leaf = self.descend(entry_key, 0)?;
        self.remember(entry_key.permutation, key, leaf);
        Ok(leaf)
    }

    /// Like [`Tree::leaf_of`], for several entry keys with only one access to the root. Each
    /// element of `wanted` has an entry key, and the key to look up in the leaf cache. The result
    /// has a leaf for each element of `wanted`, or `None` for an element that is `None`. Calls
    /// `on_found` with each leaf that was not in the leaf cache.
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
            // If the root does not cover an entry key, `descend_from` starts again and handles the
            // reason.
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

    /// Descends to the leaf of an entry key like [`Tree::descend`], but uses the copies of inner
    /// pages in the inner cache. Copies inner pages that it has to read from the store.
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
                        // The descent without copies handles the reason.
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

    /// Returns the last known root. Callers can keep it for [`Tree::new`].
    pub fn root(&self) -> Root {
        self.root.get()
    }

    /// Reads the location of the root from the meta page, stores it as the last known root, and
    /// returns it.
    pub(crate) fn refresh_root(&self) -> Result<Root> {
        let root = MetaView::new(self.store.read(0)).root()?;
        if root.level == 0 || root.level > MAX_LEVEL {
            return corrupt(0, "the root's level is impossible");
        }
        self.root.set(root);
        Ok(root)
    }

    /// Returns a root above `level`: the last known root, or the root on the meta page if the last
    /// known root is not above `level`.
    fn root_above(&self, level: u16) -> Result<Root> {
        match self.root.get() {
            root if root.level > level => Ok(root),
            _ => self.refresh_root(),
        }
    }

    /// Reads the current root after a descent found a defect in the root `old`. An outdated root is
    /// not an error, so the function returns the current root if it is another one. If `old` is
    /// still the root, returns `defect` as an error.
    fn next_root(&self, old: Root, defect: Corruption) -> Result<Root> {
        let root = self.refresh_root()?;
        if root == old { Err(defect) } else { Ok(root) }
    }

    /// Descends from the root and returns the block on `level` to which the links for an entry key
    /// lead. `level` must be below the level of the root. When the caller locks that block, the
    /// entry key may be on another page, because pages are split and merged: see [`Tree::find`].
    pub(crate) fn descend(&self, entry_key: &EntryKey<N>, level: u16) -> Result<Block> {
        self.descend_from(entry_key, level, None)
    }

    /// Descends like [`Tree::descend`], from the page `start` or from the root. `start` has the
    /// block and the level of a page below the root. If it is `None`, the descent begins at the
    /// root.
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
                    // The remembered root has been moved to another block. A free page may be at
                    // its old block; other holders of that page wait for nothing.
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
                    // The remembered root has been split. It still leads to the leaf, but the path
                    // from the new root is shorter. The current root has no right link.
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

    /// Estimates the number of leaves that contain the entries from `from` to `to`. The result is
    /// exact if all these leaves are children of one inner page. Otherwise it is computed from the
    /// typical number of entries of inner pages.
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
            // Too many leaves for one inner page: count the inner pages in between, one level up.
            // The root has no sibling, except if it has just been split.
            let others = (page.count() - first) as f64;
            drop(page);
            level += 1;
            if level > self.root.get().level && self.refresh_root()?.level < level {
                return Ok(others);
            }
        }
    }

    /// Returns the page on `level` that covers an entry key, locked by `take`. `hint` is the block
    /// of the page to try first, which an earlier link or a guess suggested. If `hint` is `None`,
    /// the search descends from the root.
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
        let mut steps = if hint.is_some() {
            MAX_STEPS_RIGHT
        } else {
            u32::MAX
        };
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

    /// Returns whether the tree has an entry with this entry key. Unlocks the leaf by
    /// [`ReadPages::unlock_keep_pin`], which may leave it pinned.
    pub fn has_entry(&self, entry_key: &EntryKey<N>) -> Result<bool> {
        let leaf: Leaf<_, N> = self.find(entry_key, 0, None, |block| self.store.read(block))?;
        // Row addresses are nearly always different, keys often are not, so compare addresses
        // first.
        let is_here = |i| leaf.tid(i) == entry_key.tid && leaf.key(i) == entry_key.key;
        let has_entry = (0..leaf.count()).any(is_here);
        self.store.unlock_keep_pin(leaf.page);
        Ok(has_entry)
    }

    /// Compares an entry key with the range of a page to which a link for this entry key led.
    /// Returns an error if the page is damaged or not on `level`.
    ///
    /// Between reading the link and reading the page, a vacuum may have removed the page from the
    /// tree, and a split may have reused it elsewhere on its level. The page's own low key shows
    /// this, and the descent restarts from the root.
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

    /// Returns whether a leaf that was found by a link or a guess covers an entry key.
    #[inline]
    pub(crate) fn covers(
        &self,
        entry_key: &EntryKey<N>,
        leaf: &Leaf<impl PageGuard, N>,
    ) -> Result<bool> {
        let position = self.check_position(entry_key, leaf, 0)?;
        Ok(matches!(position, PositionCheck::Covers))
    }

    /// Reads an inner page. Returns an error if the page is not on `level`.
    pub(crate) fn read_inner(&self, block: Block, level: u16) -> Result<Inner<S::Read<'s>, N>> {
        PageView::open_on(self.store.read(block), level)
    }
}

impl<'s, S: WritePages, const N: usize> Tree<'s, S, N> {
    /// Returns the inner page on `level` that covers an entry key, locked for changes.
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

/// Position of an entry key relative to a page.
enum PositionCheck {
    /// The page covers the entry key.
    Covers,
    /// The entry key belongs to a page further right.
    MoveRight,
    /// The page is free or begins above the entry key, so the link to it was outdated.
    Stale,
}

/// Number of outdated links that one search has followed. After more than 1,000 of them, the search
/// reports corruption. A link becomes outdated only if a vacuum removes a page between two page
/// accesses of the search, so such a high number means that a link is damaged.
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

/// High key of the last page on a path along right links. High keys must increase along the path,
/// so that it ends even if damaged links form a cycle. In an intact tree, a path may also lead
/// back, if the next page was meanwhile removed and reused further left.
#[derive(Clone, Copy, Debug)]
struct MoveRight<const N: usize>(Option<EntryKey<N>>);

impl<const N: usize> Default for MoveRight<N> {
    fn default() -> Self {
        MoveRight(None)
    }
}

impl<const N: usize> MoveRight<N> {
    /// Returns whether the path leads back at its next page, so that a search must not follow it
    /// further. This is so if the high key of the next page, `high_key`, is not above the high key
    /// of the previous page. False for the first page of the path, and for the last page of a
    /// level, which has no high key.
    #[inline]
    fn leads_back(&self, high_key: Option<EntryKey<N>>) -> bool {
        (self.0.zip(high_key)).is_some_and(|(last, high)| high <= last)
    }

    /// Continues the path from the page at `block` to its right sibling. `sibling` has the page's
    /// high key, which this function records, and the block of the right sibling, which it returns.
    /// Returns an error if `sibling` is `None`.
    #[inline]
    fn next(&mut self, sibling: Option<(EntryKey<N>, Block)>, block: Block) -> Result<Block> {
        let Some((high, right)) = sibling else {
            return corrupt(block, "a right link is missing");
        };
        self.0 = Some(high);
        Ok(right)
    }
}
