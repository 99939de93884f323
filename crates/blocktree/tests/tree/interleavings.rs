//! Steps of one backend that others come between: a store that lets them.
use crate::mem_store::{Crash, MemStore, Read, Write};
use crate::model::{Index, Model};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::key::{Block, EntryKey, Tid};
use neardup_blocktree::meta::MetaRef;
use neardup_blocktree::page::{Kind, Page, PageRef};
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::store::{PageChange, PrefetchPages, ReadPages, WritePages};
use neardup_blocktree::tree::Tree;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

type Between<'a> = Box<dyn FnMut(Block) + 'a>;

/// Calls a function before it locks a page for reading.
pub struct Met<'a> {
    pub store: &'a MemStore,
    pub between: RefCell<Option<Between<'a>>>,
}

impl ReadPages for Met<'_> {
    type Read<'b>
        = Read
    where
        Self: 'b;

    fn version(&self, page: &Page) -> Option<u64> {
        self.store.version(page)
    }
    fn read(&self, block: Block) -> Read {
        if let Some(mut between) = self.between.take() {
            between(block);
            self.between.replace(Some(between));
        }
        self.store.read(block)
    }
    fn check_interrupts(&self) {}
}

impl PrefetchPages for Met<'_> {}

impl WritePages for Met<'_> {
    type Write<'b>
        = Write
    where
        Self: 'b;

    fn write(&self, block: Block) -> Write {
        self.store.write(block)
    }
    fn try_write(&self, block: Block) -> Option<Write> {
        self.store.try_write(block)
    }
    fn write_new(&self, block: Block) -> Write {
        self.store.write_new(block)
    }
    fn cleanup_lock(&self, block: Block) -> Write {
        self.store.cleanup_lock(block)
    }
    fn try_cleanup_lock(&self, block: Block) -> Option<Write> {
        self.store.try_cleanup_lock(block)
    }
    fn allocate(&self) -> Write {
        self.store.allocate()
    }
    fn write_logged(&self, changes: &mut [PageChange<'_, Write>]) {
        self.store.write_logged(changes);
    }
    fn change<const P: usize>(&self, pages: [&mut Write; P], edit: impl FnOnce([&mut Page; P])) {
        self.store.change(pages, edit);
    }
}

fn tid(block: u32) -> Tid {
    Tid { block, offset: 1 }
}

/// A reader goes right from a page that has been split. Before it comes to the right page, a vacuum
/// merges that into the page it has left, and a split further left takes it.
#[test]
fn a_right_link_may_lead_to_a_page_that_is_used_further_left_by_now() {
    let at = |i: u64| i << 32;
    // One permutation, of several leaves, whose keys are the values themselves.
    let model: Model<1> = (0..4_000u64)
        .map(|i| (tid(i as u32), Some([at(i * 1_000)])))
        .collect();
    let index = Index::<1>::build(BlockLayout::new(0, 1).unwrap(), &model, 1 << 20);
    let root = index.meta.root;
    let (sought, row) = (at(2_400_000) + 7, tid(9_000_000));
    let entry_key = EntryKey {
        permutation: 0,
        key: [sought],
        tid: row,
    };
    index.insert(&index.tree(), row, Some([sought]));
    let stays = |tid: Tid| tid.block == 9_000_000 || tid.block < 1_200;
    let mut step = 0;
    let met = Met {
        store: &index.store,
        between: RefCell::new(None),
    };
    met.between.replace(Some(Box::new(|block| {
        if PageRef::<1>::new(&index.store.read(block)).kind() != Some(Kind::Leaf) {
            return;
        }
        step += 1;
        let tree = index.tree();
        match step {
            // The parent has been read. The leaf is split before it is.
            1 => {
                let before = PageRef::<1>::new(&index.store.read(block)).right_link();
                for i in 0.. {
                    index.insert(
                        &tree,
                        tid(5_000_000 + i),
                        Some([at(2_399_990) + u64::from(i)]),
                    );
                    if PageRef::<1>::new(&index.store.read(block)).right_link() != before {
                        break;
                    }
                }
            }
            // On the way to the right: nearly everything goes, and far left much comes.
            2 => {
                assert!(index.vacuum(|tid| !stays(tid)).freed_pages > 0);
                for i in 0..100_000 {
                    index.insert(
                        &tree,
                        tid(6_000_000 + i),
                        Some([at(100_000) + u64::from(i)]),
                    );
                    if PageRef::<1>::new(&index.store.read(block)).kind() == Some(Kind::Leaf) {
                        break;
                    }
                }
                assert_eq!(
                    PageRef::<1>::new(&index.store.read(block)).kind(),
                    Some(Kind::Leaf)
                );
            }
            _ => (),
        }
    })));
    let tree = Tree::<_, 1>::new(&met, root);
    assert_eq!(tree.has_entry(&entry_key), Ok(true));
    drop(met);
    assert!(step >= 2, "went right once");
}

/// A backend remembers a root whose block is a free leaf by now. While it asks the meta page where
/// the root is, it must not hold that leaf: who takes a free page holds the meta page meanwhile.
#[test]
fn nobody_holds_a_free_page_while_waiting_for_the_meta_page() {
    let model: Model<1> = (0..4_000u64)
        .map(|i| (tid(i as u32), Some([i << 40])))
        .collect();
    let index = Index::<1>::build(BlockLayout::new(0, 1).unwrap(), &model, 1 << 20);
    let old = index.meta.root;
    // Others move the root to the front and cut the end off, and the index grows again.
    index.vacuum(|tid| tid.block > 10);
    index.compact(u32::MAX);
    assert!(index.store.blocks() <= old.block);
    let new = MetaRef::new(&index.store.read(0)).root().unwrap();
    let mut i = 0;
    while index.store.blocks() <= old.block + 1 {
        let key = [0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i)];
        index.insert(
            &Tree::new(&index.store, new),
            tid(1_000_000 + i as u32),
            Some(key),
        );
        i += 1;
    }
    // A vacuum empties it.
    let tree = Tree::<_, 1>::new(&index.store, new);
    tree.vacuum(index.layout.null_permutation(), Default::default(), |tid| {
        tid.block > 10
    })
    .unwrap();
    let kind = PageRef::<1>::new(&index.store.read(old.block)).kind();
    assert_eq!(kind, Some(Kind::Free), "the old root's block is free");
    assert_eq!(PageRef::<1>::new(&index.store.read(old.block)).level(), 0);

    let met = Met {
        store: &index.store,
        between: RefCell::new(None),
    };
    met.between.replace(Some(Box::new(|block| {
        if block == 0 {
            // What a split does, without waiting for ever.
            let free = index.store.try_cleanup_lock(old.block);
            assert!(
                free.is_some(),
                "deadlock: the free page is held by who waits for the meta page"
            );
        }
    })));
    let tree = Tree::<_, 1>::new(&met, old);
    let entry_key = EntryKey {
        permutation: 0,
        key: [5 << 40],
        tid: tid(5),
    };
    assert_eq!(tree.has_entry(&entry_key), Ok(true));
}

/// A vacuum that truncates the index is cancelled when it has moved the root, and more, but has not
/// cut the end off. The block of the cached root still holds a page that looks like one.
#[test]
fn who_remembers_a_root_that_a_cancelled_vacuum_moved_loses_nothing() {
    for moves in [1, 5, 20, 60] {
        let model: Model<1> = (0..100_000u64)
            .map(|i| (tid(i as u32), Some([i << 40 | i])))
            .collect();
        let index = Index::<1>::build(BlockLayout::new(1, 2).unwrap(), &model, 1 << 20);
        let old = index.meta.root;
        index.vacuum(|tid| tid.block % 2 > 0);
        let mut moved = 0;
        let cancelled = catch_unwind(AssertUnwindSafe(|| {
            index.tree().compact(index.store.blocks(), || {
                moved += 1;
                if moved > moves {
                    resume_unwind(Box::new(Crash));
                }
                true
            })
        }));
        assert!(cancelled.is_err());
        let new = MetaRef::new(&index.store.read(0)).root().unwrap();
        assert_ne!(new, old, "the root has been moved");
        // Nobody cut anything off: the backend's check of the file's length says nothing.
        assert!(old.block < index.store.blocks());
        let (before, now) = (
            Tree::<_, 1>::new(&index.store, old),
            Tree::<_, 1>::new(&index.store, new),
        );
        let entry_key = |i: u64| EntryKey {
            permutation: 1,
            key: [i << 47],
            tid: tid(1_000_000 + i as u32),
        };
        let mut lost = 0;
        for i in 0..20_000 {
            if before.insert(&entry_key(i)).is_err() {
                lost += 1;
                break;
            }
            lost += u32::from(!now.has_entry(&entry_key(i)).unwrap());
        }
        assert_eq!(lost, 0, "after {moves} moves");
    }
}

/// A search of neighbouring prefixes has found its next leaves. Before it reads one, that leaf is
/// split, or a vacuum takes most rows away and merges leaves, whose pages are then used again.
#[test]
fn leaves_may_be_split_and_merged_before_they_are_read() {
    let value = |i: u64| [i.wrapping_mul(0x9e37_79b9_7f4a_7c15)];
    let (near, other) = (|i: u32| i < 600, 100_000);
    let query = value(7);
    let model: Model<1> = (0..60_000u32)
        .map(|i| match near(i) {
            // Within 8 bits, spread over all permutations and prefixes.
            true => {
                let flips = (0..8).map(|bit| 1 << (value(u64::from(8 * i + bit))[0] >> 58));
                (
                    tid(i),
                    Some([flips.fold(query[0], |key, flip: u64| key ^ flip)]),
                )
            }
            false => (tid(i), Some(value(u64::from(i) + 1_000))),
        })
        .collect();
    let (mut splits, mut merges) = (0, 0);
    // Leaves are found ahead by neighbouring prefixes, or the permutation is read whole.
    for (seed, is_whole) in (0..16).map(|seed| (seed / 2, seed % 2 == 1)) {
        let index = Index::<1>::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 20);
        let (mut turn, mut added) = (seed, other);
        let met = Met {
            store: &index.store,
            between: RefCell::new(None),
        };
        met.between.replace(Some(Box::new(|block| {
            let (kind, permutation, low, right) = {
                let page = index.store.read(block);
                let page = PageRef::<1>::new(&page);
                (
                    page.kind(),
                    page.permutation(),
                    page.low_key(),
                    page.right_link(),
                )
            };
            if kind != Some(Kind::Leaf) {
                return;
            }
            turn += 1;
            match turn % 11 {
                0 => merges += index.vacuum(|tid| !near(tid.block)).freed_pages,
                1..4 => {
                    let tree = index.tree();
                    for i in 0..700u64 {
                        let key = [low.key[0] + (i << 40)];
                        let key =
                            index.layout.permutations()[usize::from(permutation)].restore(&key);
                        index.insert(&tree, tid(added), Some(key));
                        added += 1;
                    }
                    let now = index.store.read(block);
                    splits += usize::from(PageRef::<1>::new(&now).right_link() != right);
                }
                _ => (),
            }
        })));
        // As among a million rows, so that prefixes are looked up.
        let radius = if is_whole { 64 } else { 8 };
        let plan = Rc::new(Plan::new(&index.layout, radius, 1e6));
        assert_eq!(plan.is_whole(), is_whole);
        assert!(is_whole || plan.probes.iter().any(|probe| probe.threshold > 0));
        let mut scan = Scan::new(index.layout.clone(), plan, query);
        scan.narrow(8);
        let tree = Tree::<_, 1>::new(&met, index.meta.root);
        let (mut rows, mut found) = (Vec::new(), BTreeSet::new());
        while scan.step(&tree, &mut rows).unwrap() {}
        for row in &rows {
            assert!(
                row.distance <= 8 && found.insert(row.tid),
                "{:?} twice",
                row.tid
            );
        }
        let of_model = found.iter().filter(|tid| tid.block < other).count();
        assert_eq!(of_model, 600);
    }
    assert!(
        splits > 20 && merges > 20,
        "{splits} splits, {merges} pages merged"
    );
}
