//! Adding entries, and splitting pages to make room for them.

use crate::inner;
use crate::key::{Block, EntryKey};
use crate::leaf::{self, Append};
use crate::leaf_cache;
use crate::meta::{self, FreeList, Root};
use crate::page::{self, Corruption, Kind, Page, Result};
use crate::store::{PageGuard, PageStore};
use crate::tree::Tree;

/// Entries whose leaves are looked up together: as many as an index has tables by default.
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
            self.leaves_of(&wanted, |leaf| self.store.prefetch_for_write(leaf))?;
        }
        Ok(())
    }

    /// Adds an entry.
    pub fn insert(&self, entry_key: &EntryKey<N>) -> Result<()> {
        loop {
            let known = self.leaf_of(entry_key, &entry_key.key)?;
            let mut leaf = self.find(entry_key, 0, Some(known), |block| self.store.write(block))?;
            if leaf.block() != known {
                self.remember(entry_key.table, &entry_key.key, leaf.block());
            }
            if let Some(append) = Append::new(&leaf, &entry_key.key, entry_key.tid) {
                self.store.write_logged(&mut leaf, &append.patches());
                return Ok(());
            }
            self.split(leaf, entry_key)?;
        }
    }

    /// Splits a page, in which `entry_key` belongs, and adds the new page to the parent in the same
    /// record, so that no half-done split exists at any time. Room in the parent is made first.
    fn split(&self, mut left: S::Write<'s>, entry_key: &EntryKey<N>) -> Result<()> {
        let level = page::level(&left);
        let Some(mut parent) = self.lock_parent(&left, entry_key)? else {
            return self.split_root(left, entry_key);
        };
        let slot = inner::search(&parent, entry_key);
        if inner::child::<N>(&parent, slot) != left.block() {
            return Err(Corruption {
                block: parent.block(),
                what: "downlink to another page",
            });
        }
        let split = Split::<N>::of(&left, entry_key);
        let edit = |left: &mut Page, right: &mut Page, parent: &mut Page, new: Block| {
            split.carry_out(left, right, new);
            inner::insert(parent, slot + 1, &split.separator, new);
        };
        match self.take_free(level)? {
            Some(mut taken) => {
                let new = taken.page.block();
                self.store.change(
                    [
                        &mut left,
                        &mut taken.page,
                        &mut parent,
                        &mut taken.meta_page,
                    ],
                    |[left, right, parent, meta_page]| {
                        edit(left, right, parent, new);
                        meta::put_free_list(meta_page, level, taken.rest);
                    },
                );
            }
            None => {
                let mut right = self.store.allocate();
                let new = right.block();
                self.store.change(
                    [&mut left, &mut right, &mut parent],
                    |[left, right, parent]| edit(left, right, parent, new),
                );
            }
        }
        Ok(())
    }

    /// Locks a free page of a level, together with the meta page that it is to be struck off from;
    /// `None` if there is none.
    fn take_free(&self, level: u16) -> Result<Option<Taken<S::Write<'s>>>> {
        if meta::free_list(&self.store.read(0), level).first.is_none() {
            return Ok(None);
        }
        let meta_page = self.store.write(0);
        let FreeList { first, count } = meta::free_list(&meta_page, level);
        let Some(block) = first else {
            return Ok(None);
        };
        // Only those hold it who followed an outdated link, and they release it at once.
        let page = self.store.write(block);
        page::expect::<N>(&page, block, Kind::Free)?;
        let rest = FreeList {
            first: page::right(&page),
            count: count.saturating_sub(1),
        };
        if page::level(&page) != level || rest.first.is_none() != (rest.count == 0) {
            let what = "list of free pages is damaged";
            return Err(Corruption { block, what });
        }
        Ok(Some(Taken {
            page,
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
        let root = Root {
            block: top.block(),
            level: page::level(&left) + 1,
        };
        let first = page::low::<N>(&left);
        let split = Split::<N>::of(&left, entry_key);
        self.store.change(
            [&mut left, &mut right, &mut top, &mut meta_page],
            |[left, right, top, meta_page]| {
                split.carry_out(left, right, new);
                inner::format(top, root.level, &first);
                inner::insert(top, 0, &first, old);
                inner::insert(top, 1, &split.separator, new);
                meta::put_root(meta_page, root);
            },
        );
        Ok(())
    }

    /// Locks the parent of a locked page and makes room in it; `None` if the page is the root.
    fn lock_parent(
        &self,
        child: &S::Write<'s>,
        entry_key: &EntryKey<N>,
    ) -> Result<Option<S::Write<'s>>> {
        let level = page::level(child);
        loop {
            // While the child is locked the root stays the root: to split it takes its lock.
            let root = self.refresh_root()?;
            if root.level == level {
                return match root.block == child.block() {
                    true => Ok(None),
                    false => Err(Corruption {
                        block: child.block(),
                        what: "page beside the root",
                    }),
                };
            }
            let parent = self.lock(entry_key, level + 1)?;
            if inner::count::<N>(&parent) < inner::capacity::<N>() {
                return Ok(Some(parent));
            }
            self.split(parent, entry_key)?;
        }
    }
}

/// A page that was free, for a split.
struct Taken<W> {
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
    kept: usize,
}

impl<const N: usize> Split<N> {
    /// The split of a full page that makes room for an entry at `entry_key`.
    fn of(page: &Page, entry_key: &EntryKey<N>) -> Self {
        if page::kind(page) == Some(Kind::Inner) {
            let kept = inner::count::<N>(page) / 2;
            return Split {
                separator: inner::separator(page, kept),
                kept,
            };
        }
        let mut entries: Vec<EntryKey<N>> = (0..leaf::count::<N>(page))
            .map(|i| leaf::entry_key(page, i))
            .collect();
        let middle = entries.len() / 2;
        let greatest = entries.iter().max().copied().unwrap_or(*entry_key);
        if greatest < *entry_key && entries.iter().all(|entry| entry.key == entry_key.key) {
            // Equal fingerprints come in the order of their rows: leave full pages behind.
            return Split {
                separator: *entry_key,
                kept: 0,
            };
        }
        let (lower, &mut right, _) = entries.select_nth_unstable(middle);
        let left = lower.iter().max().copied().unwrap_or(right);
        Split {
            separator: EntryKey::separator(&left, &right),
            kept: 0,
        }
    }

    /// Moves what belongs right to a new page and links it in.
    fn carry_out(&self, left: &mut Page, right: &mut Page, right_block: u32) {
        let after = page::high::<N>(left).zip(page::right(left));
        if page::kind(left) == Some(Kind::Inner) {
            inner::format(right, page::level(left), &self.separator);
            for (place, i) in (self.kept..inner::count::<N>(left)).enumerate() {
                inner::insert(
                    right,
                    place,
                    &inner::separator::<N>(left, i),
                    inner::child::<N>(left, i),
                );
            }
            inner::truncate::<N>(left, self.kept);
        } else {
            let table = page::table(left);
            leaf::format(right, &self.separator);
            leaf::retain(left, |key, tid| {
                let stays = EntryKey {
                    table,
                    key: *key,
                    tid,
                } < self.separator;
                if !stays {
                    leaf::push(right, key, tid);
                }
                stays
            });
        }
        page::put_high(right, after);
        page::put_high(left, Some((self.separator, right_block)));
    }
}
