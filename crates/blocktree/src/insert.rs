//! Adding entries, and splitting pages to make room for them.

use crate::inner;
use crate::key::Position;
use crate::leaf::{self, Append};
use crate::meta::{self, Root};
use crate::page::{self, Corruption, Kind, Page, Result};
use crate::store::{Held, PageStore};
use crate::tree::Tree;

impl<'s, S: PageStore, const N: usize> Tree<'s, S, N> {
    /// Adds an entry.
    pub fn insert(&self, position: &Position<N>) -> Result<()> {
        loop {
            let mut leaf = self.lock(position, 0)?;
            if page::table(&leaf) != position.table {
                return Err(Corruption {
                    block: leaf.block(),
                    what: "leaf of another table",
                });
            }
            if let Some(append) = Append::new(&leaf, &position.key, position.tid) {
                self.store.patch(&mut leaf, &append.patches());
                return Ok(());
            }
            self.split(leaf, position)?;
        }
    }

    /// Splits a page, in which `position` belongs, and adds the new page to the parent in the same
    /// record, so that no half-done split exists at any time. Room in the parent is made first.
    fn split(&self, mut left: S::Write<'s>, position: &Position<N>) -> Result<()> {
        let level = page::level(&left);
        let Some(mut parent) = self.lock_parent(&left, position)? else {
            return self.split_root(left, position);
        };
        let slot = inner::search(&parent, position);
        if inner::child::<N>(&parent, slot) != left.block() {
            return Err(Corruption {
                block: parent.block(),
                what: "downlink to another page",
            });
        }
        let mut right = self.store.allocate();
        let new = right.block();
        let split = Split::<N>::of(&left, position);
        debug_assert!(level == page::level(&left));
        self.store.change(
            [&mut left, &mut right, &mut parent],
            |[left, right, parent]| {
                split.carry_out(left, right, new);
                inner::insert(parent, slot + 1, &split.separator, new);
            },
        );
        Ok(())
    }

    /// Splits the root and puts a new one above the two.
    fn split_root(&self, mut left: S::Write<'s>, position: &Position<N>) -> Result<()> {
        let mut right = self.store.allocate();
        let mut top = self.store.allocate();
        let mut meta_page = self.store.write(0);
        let (old, new) = (left.block(), right.block());
        let root = Root {
            block: top.block(),
            level: page::level(&left) + 1,
        };
        let first = Position::<N>::start_of(page::table(&left));
        let split = Split::<N>::of(&left, position);
        self.store.change(
            [&mut left, &mut right, &mut top, &mut meta_page],
            |[left, right, top, meta_page]| {
                split.carry_out(left, right, new);
                inner::format::<N>(top, root.level, first.table);
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
        position: &Position<N>,
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
            let parent = self.lock(position, level + 1)?;
            if inner::count::<N>(&parent) < inner::capacity::<N>() {
                return Ok(Some(parent));
            }
            self.split(parent, position)?;
        }
    }
}

/// How a page is split.
struct Split<const N: usize> {
    /// Where the right page starts.
    separator: Position<N>,
    /// For an inner page: how many entries stay.
    kept: usize,
}

impl<const N: usize> Split<N> {
    /// The split of a full page that makes room for an entry at `position`.
    fn of(page: &Page, position: &Position<N>) -> Self {
        if page::kind(page) == Some(Kind::Inner) {
            let kept = inner::count::<N>(page) / 2;
            return Split {
                separator: inner::separator(page, kept),
                kept,
            };
        }
        let mut entries: Vec<Position<N>> = (0..leaf::count::<N>(page))
            .map(|i| leaf::position(page, i))
            .collect();
        let middle = entries.len() / 2;
        let greatest = entries.iter().max().copied().unwrap_or(*position);
        if greatest < *position && entries.iter().all(|entry| entry.key == position.key) {
            // Equal fingerprints come in the order of their rows: leave full pages behind.
            return Split {
                separator: *position,
                kept: 0,
            };
        }
        let (lower, &mut right, _) = entries.select_nth_unstable(middle);
        let left = lower.iter().max().copied().unwrap_or(right);
        Split {
            separator: Position::separator(&left, &right),
            kept: 0,
        }
    }

    /// Moves what belongs right to a new page and links it in.
    fn carry_out(&self, left: &mut Page, right: &mut Page, right_block: u32) {
        let after = page::high::<N>(left).zip(page::right(left));
        if page::kind(left) == Some(Kind::Inner) {
            inner::format::<N>(right, page::level(left), self.separator.table);
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
            leaf::format::<N>(right, table);
            leaf::retain(left, |key, tid| {
                let stays = Position {
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
