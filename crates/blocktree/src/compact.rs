//! Moving pages from the end of an index into its unused pages, so that the end can be cut off.

use crate::inner;
use crate::key::{Block, EntryKey};
use crate::level_cursor::LevelCursor;
use crate::meta::{self, FREE_LISTS, FreeList, Root};
use crate::page::{self, Corruption, Page, Result};
use crate::store::{PageGuard, PageStore};
use crate::tree::Tree;

/// One bit for each block.
struct Blocks(Vec<u64>);

impl Blocks {
    fn contains(&self, block: Block) -> bool {
        self.0[block as usize / 64] >> (block % 64) & 1 == 1
    }

    fn set(&mut self, block: Block) {
        self.0[block as usize / 64] |= 1 << (block % 64);
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// Outcome of [`Tree::compact`].
#[derive(Clone, Debug)]
pub struct Compacted {
    /// The blocks that are needed; the rest can be cut off.
    pub end: Block,
    /// Unused pages before the end, which are in no list of free ones: see
    /// [`Tree::add_free_pages`].
    pub holes: Vec<Block>,
    /// It has ended by itself: calling it again would move nothing.
    pub is_complete: bool,
}

impl<S: PageStore, const N: usize> Tree<'_, S, N> {
    /// The number of pages in use, the meta page among them. Those that others add meanwhile may be
    /// counted or not.
    pub fn used_pages(&self) -> Result<u64> {
        let mut pages = 1;
        for level in 1..=self.refresh_root()?.level {
            let mut cursor = LevelCursor::<N>::on_level(level);
            while let Some((page, _)) = cursor.step(self, |block| self.store.read(block))? {
                pages += 1;
                if level == 1 {
                    pages += inner::count::<N>(&page) as u64;
                }
                drop(page);
                self.store.check_interrupts();
            }
        }
        Ok(pages)
    }

    /// Moves the pages at the end of an index of `blocks` blocks into unused ones before them, as
    /// long as `may_continue` says so.
    ///
    /// To be called while nobody else uses the index, since somebody might hold a link to a page
    /// that is cut off. A crash at any moment leaves the tree whole; pages that are in no list of
    /// free ones then are found the next time.
    pub fn compact(
        &self,
        blocks: Block,
        mut may_continue: impl FnMut() -> bool,
    ) -> Result<Compacted> {
        let mut used = self.used_blocks(blocks)?;
        let needed = used.count();
        self.forget_free_pages();
        let mut holes = Vec::new();
        if holes.try_reserve((blocks - needed) as usize).is_err() {
            self.store.out_of_memory();
        }
        // The lowest is taken first.
        holes.extend((0..blocks).rev().filter(|&block| !used.contains(block)));
        let mut end = blocks;
        let mut is_complete = true;
        while end > needed {
            let last = end - 1;
            if used.contains(last) {
                let Some(&hole) = holes.last().filter(|&&hole| hole < last) else {
                    break;
                };
                if !may_continue() {
                    is_complete = false;
                    break;
                }
                self.relocate(last, hole)?;
                used.set(hole);
                holes.pop();
                self.store.check_interrupts();
            }
            end = last;
        }
        holes.retain(|&hole| hole < end);
        Ok(Compacted {
            end,
            holes,
            is_complete,
        })
    }

    /// Puts what [`Tree::compact`] has left unused among the free leaves. Others may use the index
    /// meanwhile: until then nobody can come across these pages but by an old link.
    pub fn add_free_pages(&self, holes: &[Block]) {
        for &hole in holes {
            self.store.vacuum_delay();
            self.add_free_page(hole);
        }
    }

    fn used_blocks(&self, blocks: Block) -> Result<Blocks> {
        let mut words = Vec::new();
        let length = (blocks as usize).div_ceil(64);
        if words.try_reserve_exact(length).is_err() {
            self.store.out_of_memory();
        }
        words.resize(length, 0);
        let mut used = Blocks(words);
        let mut set = |block: Block| {
            if block >= blocks || used.contains(block) {
                let what = "used twice, or beyond the end";
                return Err(Corruption { block, what });
            }
            used.set(block);
            Ok(())
        };
        set(0)?;
        for level in 1..=self.refresh_root()?.level {
            let mut cursor = LevelCursor::<N>::on_level(level);
            while let Some((page, _)) = cursor.step(self, |block| self.store.read(block))? {
                set(page.block())?;
                if level == 1 {
                    (0..inner::count::<N>(&page))
                        .try_for_each(|i| set(inner::child::<N>(&page, i)))?;
                }
                drop(page);
                self.store.check_interrupts();
            }
        }
        Ok(used)
    }

    fn forget_free_pages(&self) {
        let mut meta_page = self.store.write(0);
        self.store.change([&mut meta_page], |[meta_page]| {
            for level in 0..FREE_LISTS as u16 {
                meta::put_free_list(meta_page, level, FreeList::default());
            }
        });
    }

    /// Puts an unused page, whatever it was, among the free leaves.
    fn add_free_page(&self, block: Block) {
        let mut page = self.store.write_new(block);
        let mut meta_page = self.store.write(0);
        let FreeList { first, count } = meta::free_list(&meta_page, 0);
        self.store
            .change([&mut page, &mut meta_page], |[page, meta_page]| {
                page::free::<N>(page, 0, first);
                let list = FreeList {
                    first: Some(block),
                    count: count + 1,
                };
                meta::put_free_list(meta_page, 0, list);
            });
    }

    /// Moves a page into an unused one. What was there is to be cut off. That may not come to pass,
    /// if the vacuum is cancelled; so the first page of a level, which is the root or was it once
    /// and may be remembered, is freed where it was: who goes there sees that it has moved.
    fn relocate(&self, from: Block, to: Block) -> Result<()> {
        let mut copy: Box<Page> = Box::new([0; page::PAGE_SIZE]);
        copy.copy_from_slice(&*self.store.read(from));
        let (level, low) = (page::level(&copy), page::low::<N>(&copy));
        let root = self.refresh_root()?;
        if root.block == from {
            let mut old = self.store.write(from);
            let mut target = self.store.write_new(to);
            let mut meta_page = self.store.write(0);
            let root = Root { block: to, ..root };
            self.store.change(
                [&mut old, &mut target, &mut meta_page],
                |[old, target, meta_page]| {
                    target.copy_from_slice(&*copy);
                    page::free::<N>(old, level, None);
                    meta::put_root(meta_page, root);
                },
            );
            drop(old);
            drop(meta_page);
            self.refresh_root()?;
            return Ok(());
        }
        let mut left = (self.left_neighbour(&low, level)?).map(|left| self.store.write(left));
        let mut old = left.is_none().then(|| self.store.write(from));
        let mut parent = self.lock(&low, level + 1)?;
        let slot = inner::search(&parent, &low);
        let linked = (left.as_ref()).is_none_or(|left| page::right(left) == Some(from));
        if inner::child::<N>(&parent, slot) != from || !linked {
            let what = "not where links to it say";
            return Err(Corruption { block: from, what });
        }
        let mut target = self.store.write_new(to);
        let edit = |target: &mut Page, parent: &mut Page| {
            target.copy_from_slice(&*copy);
            inner::put_child::<N>(parent, slot, to);
        };
        if let Some(left) = &mut left {
            self.store.change(
                [left, &mut parent, &mut target],
                |[left, parent, target]| {
                    edit(target, parent);
                    page::put_right(left, Some(to));
                },
            );
        }
        if let Some(old) = &mut old {
            self.store
                .change([old, &mut parent, &mut target], |[old, parent, target]| {
                    edit(target, parent);
                    page::free::<N>(old, level, None);
                });
        }
        Ok(())
    }

    /// The page that ends where another starts; `None` for the first of a level.
    fn left_neighbour(&self, low: &EntryKey<N>, level: u16) -> Result<Option<Block>> {
        let Root {
            mut block,
            level: mut at,
        } = self.refresh_root()?;
        let mut any = false;
        while at > level {
            let page = self.store.read(block);
            self.expect(&page, at)?;
            // The last entry that starts before it. The first of a page may start with it: then
            // so does the page, and an entry to the left of the page's would have been taken.
            let slot = inner::search(&page, low);
            let slot = match inner::separator::<N>(&page, slot) == *low {
                true => slot.checked_sub(1),
                false => Some(slot),
            };
            any |= slot.is_some();
            block = inner::child::<N>(&page, slot.unwrap_or(0));
            at -= 1;
        }
        Ok(any.then_some(block))
    }
}
