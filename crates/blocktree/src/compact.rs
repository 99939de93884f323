//! Compaction of an index: moves pages from the end of the file into unused pages, so that VACUUM
//! can truncate the file. A free list has the unused pages of one level, which page splits reuse.

use crate::inner::InnerMut;
use crate::key::{Block, EntryKey};
use crate::meta::{FREE_LISTS, FreeList, MetaMut, Root};
use crate::page::{PAGE_SIZE, Page, PageMut, PageRef, Result, corrupt};
use crate::store::WritePages;
use crate::tree::Tree;

/// Set of blocks, as a bitmap.
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
    /// Number of blocks that the index still needs. The caller can truncate the file to this size.
    pub end: Block,
    /// Unused pages below `end` that are in no free list. [`Tree::add_free_pages`] adds them to
    /// one.
    pub holes: Vec<Block>,
    /// True if another call would move no further page. False if `may_continue` stopped the
    /// compaction.
    pub is_complete: bool,
}

impl<S: WritePages, const N: usize> Tree<'_, S, N> {
    /// Returns the number of pages in use, including the meta page. Pages that other processes add
    /// meanwhile may be missing from the count.
    pub fn used_pages(&self) -> Result<u64> {
        let mut pages = 1;
        for level in 1..=self.refresh_root()?.level {
            self.each_inner_page(level, |page| {
                pages += 1;
                if level == 1 {
                    pages += page.count() as u64;
                }
                Ok(())
            })?;
        }
        Ok(pages)
    }

    /// Moves the pages at the end of an index of `blocks` blocks into unused pages with lower block
    /// numbers. Stops early when `may_continue` returns false.
    ///
    /// The caller must have exclusive access to the index, because another process could hold a
    /// link to a page that is then truncated. After a crash at any moment the tree is intact.
    /// Unused pages may then be in no free list, and the next call finds them.
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
        // In descending order, so that `pop` takes the lowest block first.
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

    /// Adds the unused pages in `holes`, which [`Tree::compact`] returned, to the free list of the
    /// leaves. Other processes may use the index meanwhile, because only outdated links lead to
    /// these pages.
    pub fn add_free_pages(&self, holes: &[Block]) {
        for &hole in holes {
            self.store.vacuum_delay();
            self.add_free_page(hole);
        }
    }

    /// Returns the blocks of all pages in use in an index of `blocks` blocks.
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
                return corrupt(block, "used twice, or beyond the end");
            }
            used.set(block);
            Ok(())
        };
        set(0)?;
        for level in 1..=self.refresh_root()?.level {
            self.each_inner_page(level, |page| {
                set(page.block())?;
                match level {
                    1 => page.entries().try_for_each(|(_, leaf)| set(leaf)),
                    _ => Ok(()),
                }
            })?;
        }
        Ok(used)
    }

    /// Empties the free lists, because compaction moves pages into the free pages.
    fn forget_free_pages(&self) {
        let mut meta_page = self.store.write(0);
        self.store.change([&mut meta_page], |[meta_page]| {
            let mut meta_page = MetaMut::new(meta_page);
            for level in 0..FREE_LISTS as u16 {
                meta_page.set_free_list(level, FreeList::default());
            }
        });
    }

    /// Adds an unused page, whatever it contains, to the free list of the leaves.
    fn add_free_page(&self, block: Block) {
        let mut page = self.store.write_new(block);
        let mut meta_page = self.store.write(0);
        self.store
            .change([&mut page, &mut meta_page], |[page, meta_page]| {
                MetaMut::new(meta_page).add_free::<N>(page, block, 0);
            });
    }

    /// Moves the page at block `from` to the unused block `to`, so that block `from` can be
    /// truncated. If the vacuum is cancelled before the truncation, block `from` remains.
    ///
    /// Other processes may remember the block of the first page of a level, because it is or was
    /// the root. So the old block of such a page becomes a free page. A process that reads it sees
    /// that the page has moved.
    fn relocate(&self, from: Block, to: Block) -> Result<()> {
        let mut copy: Box<Page> = Box::new([0; PAGE_SIZE]);
        copy.copy_from_slice(&*self.store.read(from));
        let page = PageRef::<N>::new(&copy);
        let (level, low) = (page.level(), page.low_key());
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
                    PageMut::<N>::new(old).free(level, None);
                    MetaMut::new(meta_page).set_root(root);
                },
            );
            drop(old);
            drop(meta_page);
            self.refresh_root()?;
            return Ok(());
        }
        // `left` is the page whose right link leads to the moved page. The first page of a level
        // has no such page, and its own old block is changed instead.
        let left = self.left_neighbour(&low, level)?;
        let mut other = self.store.write(left.unwrap_or(from));
        let mut parent = self.lock_inner(&low, level + 1)?;
        let slot = parent.search(&low);
        let right_link = PageRef::<N>::new(&other).right_link();
        if parent.child(slot) != from || left.is_some() && right_link != Some(from) {
            return corrupt(from, "not where links to it say");
        }
        let mut target = self.store.write_new(to);
        self.store.change(
            [&mut other, &mut parent.page, &mut target],
            |[other, parent, target]| {
                target.copy_from_slice(&*copy);
                InnerMut::<N>::unchecked(parent).set_child(slot, to);
                let mut other = PageMut::<N>::new(other);
                match left {
                    Some(_) => other.set_right_link(Some(to)),
                    None => other.free(level, None),
                }
            },
        );
        Ok(())
    }

    /// Returns the page on `level` whose high key is `low`, the low key of another page. `None` if
    /// that other page is the first of its level.
    fn left_neighbour(&self, low: &EntryKey<N>, level: u16) -> Result<Option<Block>> {
        let Root {
            mut block,
            level: mut at,
        } = self.refresh_root()?;
        let mut any = false;
        while at > level {
            let page = self.read_inner(block, at)?;
            // Take the last entry whose separator is below `low`. The separator of entry 0 equals
            // `low` only on the first page of a level, because otherwise an entry further left was
            // taken one level up.
            let slot = page.search(low);
            let slot = match page.separator(slot) == *low {
                true => slot.checked_sub(1),
                false => Some(slot),
            };
            any |= slot.is_some();
            block = page.child(slot.unwrap_or(0));
            at -= 1;
        }
        Ok(any.then_some(block))
    }
}
