//! Adding entries, and splitting pages to make room for them.

use crate::empty_search::{EmptySearch, LoneRow};
use crate::inner::{self, Inner, InnerMut, InnerRef};
use crate::key::{Block, EntryKey};
use crate::leaf::{Append, Leaf, LeafMut, LeafRef};
use crate::leaf_cache::{self, LeafCache};
use crate::meta::{FreeList, MetaMut, MetaRef, Root};
use crate::page::{Kind, Page, PageRef, PageView, Result, corrupt};
use crate::store::{PAGES_PER_RECORD, PageChange, PageGuard, PrefetchPages, WritePages};
use crate::tree::Tree;

/// Entries whose leaves are found and changed together: as many as an index has permutations by
/// default.
const GROUP: usize = PAGES_PER_RECORD;

/// Locked leaf and the entry to add.
type LockedAppend<W, const N: usize> = (Leaf<W, N>, Append<N>);

impl<'s, S: WritePages + PrefetchPages, const N: usize> Tree<'s, S, N> {
    /// Adds the entries of a row, one for each of some permutations. Those of several permutations
    /// are added by one log record where nobody else holds their leaves and these have room; after
    /// a crash some permutations may have the row and others not.
    pub fn insert_row(
        &self,
        mut entry_keys: impl Iterator<Item = EntryKey<N>> + Clone,
    ) -> Result<()> {
        self.prepare(entry_keys.clone())?;
        let mut search = self.leaves.and_then(LeafCache::take_empty);
        loop {
            let mut group = [None; GROUP];
            for slot in &mut group {
                if let Some(entry_key) = entry_keys.next() {
                    *slot = Some((entry_key, self.leaf_of(&entry_key, &entry_key.key)?));
                }
            }
            if group[0].is_none() {
                return Ok(());
            }
            let lone_row = self.insert_group(&group, search.take())?;
            // All entries of the row must have been added in one moment.
            if let (Some(leaves), Some(row), None) =
                (self.leaves, lone_row, entry_keys.clone().next())
            {
                leaves.remember_lone_row(row);
            }
        }
    }

    /// Adds some entries, each with the block where its leaf was. Returns their row if a search
    /// that found nothing has read the leaves to which all of them were appended together, and
    /// these had not been changed since.
    fn insert_group(
        &self,
        group: &[Option<(EntryKey<N>, Block)>; GROUP],
        search: Option<EmptySearch>,
    ) -> Result<Option<LoneRow>> {
        let (added, lone_row) = self.append_together(group, search)?;
        for ((entry_key, block), added) in group.iter().flatten().zip(added) {
            if !added {
                self.insert_from(entry_key, *block)?;
            }
        }
        Ok(lone_row)
    }

    /// Adds those entries of a group, which has no gaps, for which that is possible without a
    /// split, without waiting for one leaf while another one is held, and one to each leaf. Returns
    /// which; and the row, as [`Tree::insert_group`] does.
    fn append_together(
        &self,
        group: &[Option<(EntryKey<N>, Block)>; GROUP],
        mut search: Option<EmptySearch>,
    ) -> Result<([bool; GROUP], Option<LoneRow>)> {
        let mut locked: [Option<LockedAppend<S::Write<'s>, N>>; GROUP] = [const { None }; GROUP];
        let (mut any, mut blocks) = (false, [0; GROUP]);
        for (i, (entry_key, block)) in group.iter().flatten().enumerate() {
            // In a table of this session alone the lock would be had.
            if blocks.contains(block) {
                continue;
            }
            let page = match any {
                true => self.store.try_write(*block),
                false => Some(self.store.write(*block)),
            };
            let Some(page) = page else { continue };
            let leaf = Leaf::unchecked(page);
            if self.covers(entry_key, &leaf)?
                && let Some(append) = leaf.append(*block, &entry_key.key, entry_key.tid)?
            {
                let version = || self.store.version(&leaf.page);
                search = search.filter(|search| search.has_read(entry_key, *block, version()));
                locked[i] = Some((leaf, append));
                (any, blocks[i]) = (true, *block);
            }
        }
        let added = locked.each_ref().map(Option::is_some);
        let (entries, together) = (group.iter().flatten(), added.iter().filter(|&&added| added));
        let entries = entries.count();
        let lone_row = search
            .filter(|_| together.count() == entries)
            .and_then(|search| search.lone_row(entries));
        if any {
            let changes = locked
                .iter_mut()
                .flatten()
                .map(|(leaf, append)| PageChange {
                    page: &mut leaf.page,
                    patches: append.patches(),
                });
            self.store.write_logged(&mut changes.collect::<Vec<_>>());
        }
        Ok((added, lone_row))
    }

    /// Finds and prefetches the leaves to which entries will be added, as many as the leaf cache
    /// keeps. Does nothing without one.
    fn prepare(&self, entry_keys: impl Iterator<Item = EntryKey<N>>) -> Result<()> {
        let mut entry_keys = entry_keys.take(leaf_cache::CACHED_PERMUTATIONS).fuse();
        while self.leaves.is_some() {
            let wanted: [_; GROUP] = std::array::from_fn(|_| {
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

    /// Adds several entries of one permutation. The leaves of some are found and prefetched
    /// together, and changed together as [`Tree::insert_row`] does it.
    pub fn insert_all(&self, entry_keys: impl Iterator<Item = EntryKey<N>>) -> Result<()> {
        let mut entry_keys = entry_keys.fuse();
        self.leaves.and_then(LeafCache::take_empty);
        loop {
            let some: [_; GROUP] = std::array::from_fn(|_| entry_keys.next());
            if some[0].is_none() {
                return Ok(());
            }
            let wanted = some.map(|entry_key| entry_key.map(|it| (it, it.key)));
            let leaves = self.leaves_of(&wanted, |leaf| self.store.prefetch_for_write(leaf))?;
            let mut group = [None; GROUP];
            for ((slot, entry_key), leaf) in group.iter_mut().zip(some).zip(leaves) {
                *slot = entry_key.zip(leaf);
            }
            self.insert_group(&group, None)?;
            self.store.check_interrupts();
        }
    }

    /// Adds an entry.
    pub fn insert(&self, entry_key: &EntryKey<N>) -> Result<()> {
        self.leaves.and_then(LeafCache::take_empty);
        let known = self.leaf_of(entry_key, &entry_key.key)?;
        self.insert_from(entry_key, known)
    }

    /// Adds an entry to the leaf where it belongs, about which is known where it was.
    fn insert_from(&self, entry_key: &EntryKey<N>, mut known: Block) -> Result<()> {
        loop {
            let mut leaf: Leaf<_, N> =
                self.find(entry_key, 0, Some(known), |block| self.store.write(block))?;
            if leaf.block() != known {
                self.remember(entry_key.permutation, &entry_key.key, leaf.block());
            }
            let append = leaf.append(leaf.block(), &entry_key.key, entry_key.tid)?;
            if let Some(append) = append {
                let (page, patches) = (&mut leaf.page, append.patches());
                self.store.write_logged(&mut [PageChange { page, patches }]);
                return Ok(());
            }
            known = match leaf.wider_shape(entry_key.tid) {
                Some(wider) => {
                    self.store.change([&mut leaf.page], |[leaf]| {
                        LeafMut::<N>::unchecked(leaf).reshape(wider);
                    });
                    leaf.block()
                }
                None => {
                    self.split(leaf.page, entry_key)?;
                    self.leaf_of(entry_key, &entry_key.key)?
                }
            };
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
        let split = Split::<N>::new(&left, left.block(), entry_key)?;
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
        let split = Split::<N>::new(&left, left.block(), entry_key)?;
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
    fn new(page: &Page, block: Block, entry_key: &EntryKey<N>) -> Result<Self> {
        if PageRef::<N>::new(page).level() == 0 {
            let separator = Self::leaf_separator(&LeafRef::unchecked(page), block, entry_key)?;
            let kept = None;
            return Ok(Split { separator, kept });
        }
        let inner = InnerRef::unchecked(page);
        let kept = inner.count() / 2;
        Ok(Split {
            separator: inner.separator(kept),
            kept: Some(kept),
        })
    }

    fn leaf_separator(
        leaf: &LeafRef<'_, N>,
        block: Block,
        entry_key: &EntryKey<N>,
    ) -> Result<EntryKey<N>> {
        let (low, high) = (leaf.low_key(), leaf.high_key());
        let mut entries: Vec<EntryKey<N>> = leaf.entries().collect();
        // Both pages leave out of their keys what their ranges allow, for these entries as well.
        let in_range = |entry: &EntryKey<N>| low <= *entry && high.is_none_or(|high| *entry < high);
        if !leaf.covers_its_range() || !entries.iter().all(in_range) {
            return corrupt(block, "entry out of its page's range");
        }
        let greatest = entries.iter().max().copied().unwrap_or(*entry_key);
        if greatest < *entry_key && entries.iter().all(|entry| entry.key == entry_key.key) {
            // Equal fingerprints are inserted in the order of their rows, so left pages stay full.
            return Ok(*entry_key);
        }
        // Ever greater keys come to the last leaf of a permutation. What it leaves behind has a
        // range of its own, so that it leaves out more of its keys and has room for more of them.
        let is_last = high.is_none_or(|high| high.permutation != low.permutation);
        let middle = match is_last && greatest < *entry_key {
            true => entries.len() * 9 / 10,
            false => entries.len() / 2,
        };
        let (lower, &mut right, _) = entries.select_nth_unstable(middle);
        let left = lower.iter().max().copied().unwrap_or(right);
        Ok(EntryKey::separator(&left, &right))
    }

    /// Moves the upper part to a new page and links it in.
    fn carry_out(&self, left: &mut Page, right: &mut Page, block: Block) {
        match self.kept {
            None => LeafMut::unchecked(left).split_into(right, block, &self.separator),
            Some(kept) => InnerMut::<N>::unchecked(left).split_into(right, block, kept),
        }
    }
}
