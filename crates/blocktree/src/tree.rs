//! A B-link tree (Lehman and Yao, ACM TODS 6, 1981) over a store: finding the page where a
//! position belongs.

use crate::inner;
use crate::key::{Block, Position};
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
            while at > level {
                let page = self.store.read(block);
                self.expect(&page, at)?;
                if page::is_left_of(&page, position) {
                    if block == root.block {
                        // The root has been split. Its old self would do, but the way from the
                        // new one is shorter. (A root on the newest meta page has no right link.)
                        drop(page);
                        root = self.refresh_root()?;
                        continue 'from_root;
                    }
                    block = next_right(&page, block)?;
                    drop(page);
                    self.store.pause();
                } else {
                    block = inner::child::<N>(&page, inner::search(&page, position));
                    at -= 1;
                }
            }
            return Ok(block);
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
        loop {
            let page = self.store.write(block);
            self.expect(&page, level)?;
            if !page::is_left_of(&page, position) {
                return Ok(page);
            }
            block = next_right(&page, page.block())?;
            drop(page);
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

/// The page to the right, of which a high key has told that it exists.
pub(crate) fn next_right(page: &Page, block: Block) -> Result<Block> {
    page::right(page)
        .filter(|&right| right != block)
        .ok_or(Corruption {
            block,
            what: "a right link is missing or leads to itself",
        })
}
