//! Adding entries, and splitting pages to make room for them.

use crate::inner::{self, Inner, InnerMut, InnerRef};
use crate::key::{Block, EntryKey};
use crate::leaf::{Leaf, LeafMut, LeafRef};
use crate::leaf_cache;
use crate::meta::{FreeList, MetaMut, MetaRef, Root};
use crate::page::{Kind, Page, PageRef, PageView, Result, corrupt};
use crate::store::{PageGuard, PageStore};
use crate::tree::Tree;

/// Entries whose leaves are found together: as many as an index has tables by default.
const PREFETCH_DEPTH: usize = 4;

impl<'s, S: PageStore, const N: usize> Tree<'s, S, N> {
    /// Finds and prefetches the leaves to which entries will be added, as many as the leaf cache
    /// keeps. Does nothing without one.
    pub fn prepare(&self, entry_keys: impl Iterator<Item = EntryKey<N>>) -> Result<()> {
        let mut entry_keys = entry_keys.take(leaf_cache::TABLES).fuse();
        while self.leaves.is_some() {
            let wanted: [_; PREFETCH_DEPTH] = std::array::from_fn(|_| {
                entry_keys
                    .next()
                    .map(|entry_key| (entry_key, entry_key.key))
            });
            if wanted[0].is_none() {
                break;
            }
            self.leaves_of(&wanted, |leaf| {
                self.store.read_ahead(leaf);
                self.store.prefetch_for_write(leaf);
            })?;
        }
        Ok(())
    }

    /// Adds an entry.
    pub fn insert(&self, entry_key: &EntryKey<N>) -> Result<()> {
        loop {
            let known = self.leaf_of(entry_key, &entry_key.key)?;
            let mut leaf: Leaf<_, N> =
                self.find(entry_key, 0, Some(known), |block| self.store.write(block))?;
            if leaf.block() != known {
                self.remember(entry_key.table, &entry_key.key, leaf.block());
            }
            if let Some(append) = leaf.append(&entry_key.key, entry_key.tid) {
                self.store.write_logged(&mut leaf.page, &append.patches());
                return Ok(());
            }
            self.split(leaf.page, entry_key)?;
        }
    }

    /// Splits a page, in which `entry_key` belongs, and adds the new page to the parent in the same
    /// record, so that no half-done split exists at any time. Room in the parent is made first.
    fn split(&self, mut left: S::Write<'s>, entry_key: &EntryKey<N>) -> Result<()> {
        let level = PageRef::<N>::new(&left).level();
        let Some(mut parent) = self.lock_parent(&left, entry_key)? else {
            return self.split_root(left, entry_key);
        };
        let slot = parent.search(entry_key);
        if parent.child(slot) != left.block() {
            return corrupt(parent.block(), "downlink to another page");
        }
        let split = Split::<N>::of(&left, entry_key);
        let parent = &mut parent.page;
        let (mut right, mut list) = match self.take_free(level)? {
            Some(free) => (free.page, Some((free.meta_page, free.rest))),
            None => (self.store.allocate(), None),
        };
        let new = right.block();
        let edit = |left: &mut Page, right: &mut Page, parent: &mut Page| {
            split.carry_out(left, right, new);
            InnerMut::unchecked(parent).insert(slot + 1, &split.separator, new);
        };
        let (left, right) = (&mut left, &mut right);
        match &mut list {
            Some((meta_page, rest)) => self.store.change(
                [left, right, parent, meta_page],
                |[left, right, parent, meta_page]| {
                    edit(left, right, parent);
                    MetaMut::new(meta_page).set_free_list(level, *rest);
                },
            ),
            None => (self.store).change([left, right, parent], |[left, right, parent]| {
                edit(left, right, parent)
            }),
        }
        Ok(())
    }

    /// Locks a free page of a level, together with the meta page, whose list it leaves; `None` if
    /// there is none.
    fn take_free(&self, level: u16) -> Result<Option<FreePage<S::Write<'s>>>> {
        let first = |meta_page: &Page| MetaRef::new(meta_page).free_list(level).first;
        if first(&self.store.read(0)).is_none() {
            return Ok(None);
        }
        let meta_page = self.store.write(0);
        let FreeList { first, count } = MetaRef::new(&meta_page).free_list(level);
        let Some(block) = first else {
            return Ok(None);
        };
        // Other holders have followed an outdated link, and release it at once.
        let page = PageView::<_, N>::new(self.store.write(block));
        page.check_header(block, Kind::Free)?;
        let rest = FreeList {
            first: page.right_link(),
            count: count.saturating_sub(1),
        };
        if page.level() != level || rest.first.is_none() != (rest.count == 0) {
            return corrupt(block, "list of free pages is damaged");
        }
        Ok(Some(FreePage {
            page: page.page,
            meta_page,
            rest,
        }))
    }

    /// Splits the root and puts a new one above the two.
    fn split_root(&self, mut left: S::Write<'s>, entry_key: &EntryKey<N>) -> Result<()> {
        let mut right = self.store.allocate();
        let mut top = self.store.allocate();
        let mut meta_page = self.store.write(0);
        let (old, new) = (left.block(), right.block());
        let page = PageRef::<N>::new(&left);
        let root = Root {
            block: top.block(),
            level: page.level() + 1,
        };
        let first = page.low_key();
        let split = Split::<N>::of(&left, entry_key);
        self.store.change(
            [&mut left, &mut right, &mut top, &mut meta_page],
            |[left, right, top, meta_page]| {
                split.carry_out(left, right, new);
                let mut top = InnerMut::format_at(top, root.level, &first);
                top.push(&first, old);
                top.push(&split.separator, new);
                MetaMut::new(meta_page).set_root(root);
            },
        );
        Ok(())
    }

    /// Locks the parent of a locked page and makes room in it; `None` if the page is the root.
    fn lock_parent(
        &self,
        child: &S::Write<'s>,
        entry_key: &EntryKey<N>,
    ) -> Result<Option<Inner<S::Write<'s>, N>>> {
        let level = PageRef::<N>::new(child).level();
        loop {
            // While the child is locked the root stays the root: to split it takes its lock.
            let root = self.refresh_root()?;
            if root.level == level {
                return match root.block == child.block() {
                    true => Ok(None),
                    false => corrupt(child.block(), "page beside the root"),
                };
            }
            let parent = self.lock_inner(entry_key, level + 1)?;
            if parent.count() < inner::capacity::<N>() {
                return Ok(Some(parent));
            }
            self.split(parent.page, entry_key)?;
        }
    }
}

/// A free page, for a split.
struct FreePage<W> {
    page: W,
    meta_page: W,
    /// The list without it.
    rest: FreeList,
}

/// Division of a page by a split.
struct Split<const N: usize> {
    /// Start of the right page.
    separator: EntryKey<N>,
    /// For an inner page: how many entries stay.
    kept: Option<usize>,
}

impl<const N: usize> Split<N> {
    /// The split of a full page that makes room for an entry at `entry_key`.
    fn of(page: &Page, entry_key: &EntryKey<N>) -> Self {
        match PageRef::<N>::new(page).level() {
            0 => Split {
                separator: Self::leaf_separator(&LeafRef::unchecked(page), entry_key),
                kept: None,
            },
            _ => {
                let inner = InnerRef::unchecked(page);
                let kept = inner.count() / 2;
                Split {
                    separator: inner.separator(kept),
                    kept: Some(kept),
                }
            }
        }
    }

    fn leaf_separator(leaf: &LeafRef<'_, N>, entry_key: &EntryKey<N>) -> EntryKey<N> {
        let mut entries: Vec<EntryKey<N>> = leaf.entries().collect();
        let middle = entries.len() / 2;
        let greatest = entries.iter().max().copied().unwrap_or(*entry_key);
        if greatest < *entry_key && entries.iter().all(|entry| entry.key == entry_key.key) {
            // Equal fingerprints come in the order of their rows: leave full pages behind.
            return *entry_key;
        }
        let (lower, &mut right, _) = entries.select_nth_unstable(middle);
        let left = lower.iter().max().copied().unwrap_or(right);
        EntryKey::separator(&left, &right)
    }

    /// Moves the upper part to a new page and links it in.
    fn carry_out(&self, left: &mut Page, right: &mut Page, block: Block) {
        match self.kept {
            None => LeafMut::unchecked(left).split_into(right, block, &self.separator),
            Some(kept) => InnerMut::<N>::unchecked(left).split_into(right, block, kept),
        }
    }
}
