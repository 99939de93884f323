//! Insertion of entries into the tree, and page splits that make room for them. An entry has a key
//! and a row address, and belongs to one permutation (ordered copy of all keys in the index). It is
//! added to the leaf whose range covers it. A log record is a record of the write-ahead log with
//! changes of one or more pages. After a crash, either all changes of a log record are there or
//! none.

use crate::empty_search::EmptySearch;
use crate::inner::{self, Inner, InnerMut, InnerRef};
use crate::key::{Block, EntryKey};
use crate::leaf::{Append, Leaf, LeafMut, LeafRef};
use crate::leaf_cache::{self, LeafCache};
use crate::meta::{FreeList, MetaMut, MetaRef, Root};
use crate::page::{Kind, Page, PageRef, PageView, Result, corrupt};
use crate::store::{PAGES_PER_RECORD, PageChange, PageGuard, PrefetchPages, WritePages};
use crate::tree::Tree;

/// Maximum number of entries in a group. The leaves of a group are located together and changed by
/// one log record. An index has this number of permutations by default, so a row usually has one
/// group of entries.
const GROUP: usize = PAGES_PER_RECORD;

/// Locked leaf, and the bytes to write on it to append an entry.
type LockedAppend<W, const N: usize> = (Leaf<W, N>, Append<N>);

impl<'s, S: WritePages + PrefetchPages, const N: usize> Tree<'s, S, N> {
    /// Adds the entries of one row. `entry_keys` has at most one entry key for each permutation.
    /// One log record adds up to [`PAGES_PER_RECORD`] entries. Entries whose leaves are full, or
    /// are locked by another process, have log records of their own. So after a crash, some
    /// permutations may have the row and others not.
    ///
    /// If the last search proves that no other row is near this row, stores that in the leaf cache
    /// ([`crate::empty_search`]).
    pub fn insert_row(
        &self,
        mut entry_keys: impl Iterator<Item = EntryKey<N>> + Clone,
    ) -> Result<()> {
        self.prepare(entry_keys.clone())?;
        let mut search = (self.leaves.and_then(LeafCache::take_empty))
            .filter(|search| search.has_looked_for(entry_keys.clone()));
        loop {
            let mut group = [None; GROUP];
            for slot in &mut group {
                if let Some(entry_key) = entry_keys.next() {
                    *slot = Some((entry_key, self.leaf_of(&entry_key, &entry_key.key)?));
                }
            }
            if group[0].is_none() {
                break;
            }
            self.insert_group(&group, &mut search)?;
        }
        let version_of = |leaf| self.store.version(&self.store.read(leaf));
        if let (Some(leaves), Some(search)) = (self.leaves, search)
            && let Some(row) = search.lone_row(version_of)
        {
            leaves.remember_lone_row(row);
        }
        Ok(())
    }

    /// Adds a group of entries. Each element of `group` is `None`, or has an entry and the block of
    /// the leaf that probably covers the entry. `search` is the search before this insertion, if it
    /// looked for this row and found no row. Sets `search` to `None` if an entry needs a log record
    /// of its own, because the versions of leaves are not compared for such an entry.
    fn insert_group(
        &self,
        group: &[Option<(EntryKey<N>, Block)>; GROUP],
        search: &mut Option<EmptySearch>,
    ) -> Result<()> {
        let added = self.append_together(group, search)?;
        for ((entry_key, block), added) in group.iter().flatten().zip(added) {
            if !added {
                // This changes the leaf without a comparison of its version. So the search cannot
                // prove any more that no other process has added a row to the leaf.
                *search = None;
                self.insert_from(entry_key, *block)?;
            }
        }
        Ok(())
    }

    /// Appends as many entries of a group as possible by one log record. Skips an entry if its leaf
    /// is full, stores row addresses in fewer bytes than this address needs, does not cover the
    /// entry, or already receives another entry of the group. Also skips an entry if another
    /// process has locked its leaf and this process holds another lock, because waiting could then
    /// deadlock.
    ///
    /// The elements of `group` that are `None` must be at its end. Element `i` of the returned
    /// array states whether entry `i` was added. Compares the versions of the leaves with those in
    /// `search`, and stores the new versions there.
    fn append_together(
        &self,
        group: &[Option<(EntryKey<N>, Block)>; GROUP],
        search: &mut Option<EmptySearch>,
    ) -> Result<[bool; GROUP]> {
        let mut locked: [Option<LockedAppend<S::Write<'s>, N>>; GROUP] = [const { None }; GROUP];
        let (mut any, mut blocks) = (false, [0; GROUP]);
        for (i, (entry_key, block)) in group.iter().flatten().enumerate() {
            // Check this explicitly: in a table that only this session can access there are no
            // locks, so `try_write` would return the same page twice.
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
                if let Some(search) = search {
                    search.compare(*block, self.store.version(&leaf.page));
                }
                locked[i] = Some((leaf, append));
                (any, blocks[i]) = (true, *block);
            }
        }
        let added = locked.each_ref().map(Option::is_some);
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
        if let Some(search) = search {
            let leaves = locked.iter().flatten().map(|(leaf, _)| leaf);
            search.appended(leaves.map(|leaf| (leaf.block(), self.store.version(&leaf.page))));
        }
        Ok(added)
    }

    /// Locates the leaves of a row's entries, stores them in the leaf cache and prefetches them.
    /// The leaf cache has a limited number of slots. If there are more entries than slots, handles
    /// only the first ones. Does nothing without a leaf cache.
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

    /// Adds any number of entries of one permutation, such as the elements of a set. Handles
    /// [`PAGES_PER_RECORD`] entries at a time: locates and prefetches their leaves together, then
    /// adds the entries by one log record if possible.
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
            self.insert_group(&group, &mut None)?;
            self.store.check_interrupts();
        }
    }

    /// Adds one entry to its leaf. Splits the leaf if it is full.
    pub fn insert(&self, entry_key: &EntryKey<N>) -> Result<()> {
        self.leaves.and_then(LeafCache::take_empty);
        let known = self.leaf_of(entry_key, &entry_key.key)?;
        self.insert_from(entry_key, known)
    }

    /// Adds one entry. `known` is the block of the leaf that probably covers it.
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

    /// Splits the full page `left` so that `entry_key` can be inserted: moves its upper entries to
    /// a new page. One log record contains the moved entries and the new page's entry in the
    /// parent, so there is never a half-finished split. If the parent is full, splits the parent
    /// first. If `left` is the root, makes a new root.
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

    /// Locks the first page in the free list of a level, and the meta page, which has the list. The
    /// caller removes the page from the list. `None` if the level has no free page.
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
        // Another holder of this page's lock has followed an outdated link and releases the lock at
        // once, so waiting cannot deadlock.
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

    /// Splits the root `left` so that `entry_key` can be inserted. Makes a new root, whose child
    /// pages are the two halves.
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

    /// Locks the parent of the locked page `child`. If the parent is full, splits it first, so that
    /// it has room for one more entry. `child` must cover `entry_key`, by which the parent is
    /// found. Returns `None` if `child` is the root.
    fn lock_parent(
        &self,
        child: &S::Write<'s>,
        entry_key: &EntryKey<N>,
    ) -> Result<Option<Inner<S::Write<'s>, N>>> {
        let level = PageRef::<N>::new(child).level();
        loop {
            // The root cannot change while the child is locked, because splitting the root takes
            // the root's lock.
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

/// Locked free page that a split can use.
struct FreePage<W> {
    /// Lock on the free page.
    page: W,
    /// Lock on the meta page.
    meta_page: W,
    /// Free list of the level after this page has been removed from it.
    rest: FreeList,
}

/// Position at which a split divides a page.
struct Split<const N: usize> {
    /// Low key of the new right page.
    separator: EntryKey<N>,
    /// For an inner page, the number of entries that stay on the left page. `None` for a leaf,
    /// whose entries are compared with `separator` instead.
    kept: Option<usize>,
}

impl<const N: usize> Split<N> {
    /// Chooses where to divide the full page at `block`. `entry_key` is the entry key that will be
    /// inserted after the split.
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

    /// Returns the low key of the new right leaf for a split of the leaf at `block`. `entry_key` is
    /// the entry key that will be inserted after the split.
    fn leaf_separator(
        leaf: &LeafRef<'_, N>,
        block: Block,
        entry_key: &EntryKey<N>,
    ) -> Result<EntryKey<N>> {
        let (low, high) = (leaf.low_key(), leaf.high_key());
        let mut entries: Vec<EntryKey<N>> = leaf.entries().collect();
        // After the split, both leaves omit the key bytes that are equal in their ranges. An entry
        // outside the range would lose such bytes.
        let in_range = |entry: &EntryKey<N>| low <= *entry && high.is_none_or(|high| *entry < high);
        if !leaf.covers_its_range() || !entries.iter().all(in_range) {
            return corrupt(block, "entry out of its page's range");
        }
        let greatest = entries.iter().max().copied().unwrap_or(*entry_key);
        if greatest < *entry_key && entries.iter().all(|entry| entry.key == entry_key.key) {
            // Rows with the same fingerprint usually arrive in the order of their addresses.
            // Splitting at the new entry keeps the left leaf full.
            return Ok(*entry_key);
        }
        // Keys that only increase are always inserted into the last leaf of a permutation. Leave
        // the left leaf nearly full there. Its range is then narrow, so it omits more bytes of each
        // key and has more room.
        let is_last = high.is_none_or(|high| high.permutation != low.permutation);
        let middle = match is_last && greatest < *entry_key {
            true => entries.len() * 9 / 10,
            false => entries.len() / 2,
        };
        let (lower, &mut right, _) = entries.select_nth_unstable(middle);
        let left = lower.iter().max().copied().unwrap_or(right);
        Ok(EntryKey::separator(&left, &right))
    }

    /// Moves the upper entries of `left` to the new page `right` at `block`, and makes `right` the
    /// right sibling of `left`.
    fn carry_out(&self, left: &mut Page, right: &mut Page, block: Block) {
        match self.kept {
            None => LeafMut::unchecked(left).split_into(right, block, &self.separator),
            Some(kept) => InnerMut::<N>::unchecked(left).split_into(right, block, kept),
        }
    }
}
