//! A B-link tree (Lehman and Yao, ACM TODS 6, 1981) over a store: finding the page where a
//! position belongs.

use crate::inner;
use crate::key::{Block, Position};
use crate::leaf;
use crate::meta::{self, Root};
use crate::page::{self, Corruption, Kind, Page, Result};
use crate::store::{Held, PageStore};
use std::cell::Cell;

/// The most levels a sound tree can have, by far; beyond it links go in circles.
const MAX_LEVEL: u16 = 16;

/// A tree over the pages of a store.
pub struct Tree<'s, S: PageStore, const N: usize> {
    pub(crate) store: &'s S,
    root: Cell<Root>,
}

impl<'s, S: PageStore, const N: usize> Tree<'s, S, N> {
    /// The tree whose root once stood, or stands, where `root` says. An old root still leads
    /// everywhere, by right links.
    pub fn new(store: &'s S, root: Root) -> Self {
        Tree {
            store,
            root: Cell::new(root),
        }
    }

    /// The newest root that this tree has come across, worth keeping for next time.
    pub fn root(&self) -> Root {
        self.root.get()
    }

    /// Reads the root's place anew.
    pub(crate) fn refresh_root(&self) -> Result<Root> {
        let root = meta::root(&self.store.read(0))?;
        if root.level == 0 || root.level > MAX_LEVEL {
            return Err(Corruption {
                block: 0,
                what: "the root's level is impossible",
            });
        }
        self.root.set(root);
        Ok(root)
    }

    /// The block on a level (below the root's) where a position was when its parent was looked at.
    /// It may have moved right since.
    pub(crate) fn descend(&self, position: &Position<N>, level: u16) -> Result<Block> {
        let mut root = self.root.get();
        if root.level <= level {
            root = self.refresh_root()?;
        }
        'from_root: loop {
            let (mut block, mut at) = (root.block, root.level);
            let mut rightwards = Rightwards::<N>::default();
            while at > level {
                let page = self.store.read_inner(block);
                self.expect(&page, at)?;
                if page::is_left_of(&page, position) {
                    if block == root.block {
                        // The root has been split. Its old self would do, but the way from the
                        // new one is shorter. (A root on the newest meta page has no right link.)
                        drop(page);
                        let old = root;
                        root = self.refresh_root()?;
                        if root == old {
                            let what = "the root has a right link";
                            return Err(Corruption { block, what });
                        }
                        continue 'from_root;
                    }
                    block = rightwards.next(&page, block)?;
                    drop(page);
                    self.store.pause();
                } else {
                    block = inner::child::<N>(&page, inner::search(&page, position));
                    at -= 1;
                    rightwards = Rightwards::<N>::default();
                }
            }
            return Ok(block);
        }
    }

    /// The number of leaves, about, on which the entries from one position to another stand. Exact
    /// if one inner page leads to all of them; else they are many, and what is told is how many
    /// there would be below pages of the usual fill.
    pub fn leaves_between(&self, from: &Position<N>, to: &Position<N>) -> Result<f64> {
        let mut level = self.root.get().level;
        let mut block = self.root.get().block;
        let mut rightwards = Rightwards::<N>::default();
        loop {
            let page = self.store.read_inner(block);
            self.expect(&page, level)?;
            if page::is_left_of(&page, from) {
                block = rightwards.next(&page, block)?;
                drop(page);
                self.store.pause();
                continue;
            }
            let first = inner::search(&page, from);
            let last = if page::is_left_of(&page, to) {
                inner::count::<N>(&page)
            } else {
                inner::search(&page, to)
            };
            if level == 1 {
                return Ok((last - first + 1) as f64);
            }
            if first < last {
                let each = inner::usual_count::<N>().powi(i32::from(level) - 1);
                return Ok((last - first) as f64 * each);
            }
            block = inner::child::<N>(&page, first);
            level -= 1;
            rightwards = Rightwards::default();
        }
    }

    /// Locks for changing the page on a level where a position belongs.
    pub(crate) fn lock(&self, position: &Position<N>, level: u16) -> Result<S::Write<'s>> {
        let root = self.root.get();
        let mut block = if root.level == level {
            root.block
        } else {
            self.descend(position, level)?
        };
        let mut rightwards = Rightwards::<N>::default();
        loop {
            let page = self.store.write(block);
            self.expect(&page, level)?;
            if !page::is_left_of(&page, position) {
                return Ok(page);
            }
            block = rightwards.next(&page, page.block())?;
            drop(page);
            self.store.pause();
        }
    }

    /// Whether an entry is there. Its leaf is left like one whose rows are about to be used.
    pub fn holds(&self, position: &Position<N>) -> Result<bool> {
        let mut block = self.descend(position, 0)?;
        let mut rightwards = Rightwards::<N>::default();
        loop {
            let leaf = self.store.read(block);
            self.expect(&leaf, 0)?;
            if !page::is_left_of(&leaf, position) {
                let holds =
                    (0..leaf::count::<N>(&leaf)).any(|i| leaf::position(&leaf, i) == *position);
                self.store.leave(leaf);
                return Ok(holds);
            }
            block = rightwards.next(&leaf, block)?;
            drop(leaf);
            self.store.pause();
        }
    }

    /// Checks that a page is what stands on that level.
    pub(crate) fn expect(&self, page: &impl Held, level: u16) -> Result<()> {
        let kind = if level == 0 { Kind::Leaf } else { Kind::Inner };
        page::expect::<N>(page, page.block(), kind)?;
        if page::level(page) != level {
            return Err(Corruption {
                block: page.block(),
                what: "page on an unexpected level",
            });
        }
        Ok(())
    }
}

/// A way along right links. High keys must grow on it, so that it ends even if damaged links lead
/// in a circle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rightwards<const N: usize>(Option<Position<N>>);

impl<const N: usize> Default for Rightwards<N> {
    fn default() -> Self {
        Rightwards(None)
    }
}

impl<const N: usize> Rightwards<N> {
    /// Where a page's right link leads.
    #[inline]
    pub fn next(&mut self, page: &Page, block: Block) -> Result<Block> {
        let (Some(high), Some(right)) = (page::high::<N>(page), page::right(page)) else {
            return Err(Corruption {
                block,
                what: "a right link is missing",
            });
        };
        if self.0.is_some_and(|last| high <= last) {
            return Err(Corruption {
                block,
                what: "right links lead backwards",
            });
        }
        self.0 = Some(high);
        Ok(right)
    }
}
