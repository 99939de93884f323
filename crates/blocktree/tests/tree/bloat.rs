//! Space that deleted rows leave: pages are merged, used again, and given back.
use crate::mem_store::Crash;
use crate::model::{Index, Model, random_rows};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::full_scan::FullScan;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::leaf::LeafRef;
use neardup_blocktree::meta::MetaRef;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::store::ReadPages;
use neardup_blocktree::tree::Tree;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

fn tid(block: u32) -> Tid {
    Tid { block, offset: 1 }
}

/// Pages of the index if it were rebuilt.
fn fresh_pages<const N: usize>(index: &Index<N>, rows: &Model<N>) -> u32 {
    let layout = BlockLayout::new(index.layout.radius(), index.layout.blocks().len() as u32);
    Index::build(layout.unwrap(), rows, 1 << 24).store.blocks()
}

/// Values that fill other ranges in each round, the same in each, and ever greater ones.
fn value(shape: usize, round: u32, i: u32, rng: &mut StdRng) -> Key<16> {
    let mut key: Key<16> = std::array::from_fn(|_| rng.random());
    match shape {
        0 => key[0] = u64::from(round) << 56 | u64::from(i % 7) << 40,
        1 => (),
        2 => key = [u64::from(round * 100_000 + i); 16],
        _ => key = [7; 16],
    }
    key
}

#[test]
fn ten_rounds_of_new_rows_for_all_old_ones_keep_the_index_small() {
    for shape in 0..4 {
        let mut rng = StdRng::seed_from_u64(shape as u64);
        let rows = |round: u32, rng: &mut StdRng| -> Model<16> {
            (0..4_000)
                .map(|i| (tid(round * 10_000 + i), Some(value(shape, round, i, rng))))
                .collect()
        };
        let mut model = rows(0, &mut rng);
        let index = Index::build(BlockLayout::<16>::new(1, 2).unwrap(), &model, 1 << 20);
        let mut most = 0;
        for round in 1..=10 {
            let new = rows(round, &mut rng);
            let tree = index.tree();
            for (tid, key) in &new {
                index.insert(&tree, *tid, *key);
            }
            index.vacuum(|tid| model.contains_key(&tid));
            model = new;
            let used = index.tree().used_pages().unwrap();
            let fresh = fresh_pages(&index, &model);
            // The last leaf of a parent is not merged with the first of the next one.
            assert!(
                used < u64::from(fresh * 21 / 10),
                "{shape}: {used}, fresh {fresh}"
            );
            most = most.max(index.store.blocks());
            if round % 5 == 0 {
                index.compact(u32::MAX);
                assert_eq!(u64::from(index.store.blocks()), used);
            }
            index.assert_equals(&model, &mut rng, 2);
        }
        // Old and new rows together at half the density of a new tree, at worst.
        let fresh = fresh_pages(&index, &model);
        assert!(most < fresh * 45 / 10, "{shape}: {most}, fresh {fresh}");
        // Nothing is left but what an empty tree has.
        index.vacuum(|_| true);
        index.vacuum(|_| true);
        index.compact(u32::MAX);
        assert!(index.store.blocks() < fresh / 4, "{}", index.store.blocks());
        index.assert_equals(&Model::new(), &mut rng, 2);
    }
}

/// Rounds of inserts and deletes, each followed by a vacuum, leave the leaves in key order.
#[test]
fn a_vacuum_restores_the_order_of_leaves() {
    let mut rng = StdRng::seed_from_u64(2);
    let mut model = Model::<1>::new();
    for i in 0..20_000 {
        model.insert(tid(i), Some([rng.random()]));
    }
    let index = Index::build(BlockLayout::<1>::new(0, 1).unwrap(), &model, 1 << 20);
    for round in 1..6 {
        for i in 0..2_000 {
            let (tid, key) = (tid(round * 100_000 + i), Some([rng.random()]));
            index.insert(&index.tree(), tid, key);
            model.insert(tid, key);
        }
        let dead = |tid: Tid| tid.block % 12 == round;
        index.vacuum(dead);
        model.retain(|tid, _| !dead(*tid));
        let (mut sorted, mut entries) = (0, 0);
        for block in 1..index.store.blocks() {
            let page = index.store.read(block);
            if let Ok(leaf) = LeafRef::<1>::open(&page, block) {
                (sorted, entries) = (sorted + leaf.sorted(), entries + leaf.count());
            }
        }
        assert_eq!(entries, model.len());
        assert!(
            sorted * 20 >= entries * 19,
            "{round}: {sorted} of {entries} in order"
        );
    }
    index.assert_equals(&model, &mut rng, 2);
}

#[test]
fn a_scan_that_pauses_while_pages_move_sees_each_row_once() {
    let (mut freed, mut used) = (0, 0);
    for seed in 0..40 {
        let mut rng = StdRng::seed_from_u64(seed);
        let start = random_rows::<16>(&mut rng, 1_500);
        let stays = |tid: &Tid| tid.block < 1_000_000 && tid.offset.is_multiple_of(5);
        let stay: Model<16> = (start.iter().filter(|(tid, _)| stays(tid)))
            .map(|(tid, key)| (*tid, *key))
            .collect();
        let index = Index::build(BlockLayout::<16>::new(1, 2).unwrap(), &start, 1 << 20);
        let query = *stay.values().flatten().next().unwrap();
        let radius = [1, 1024, 1024][seed as usize % 3];
        let plan = Rc::new(Plan::new(&index.layout, radius, 1e3));
        let mut scan = Scan::new(index.layout.clone(), plan, query);
        let mut all = FullScan::new(index.layout.clone(), None);
        let (mut found, mut rows) = (Vec::new(), Vec::new());
        let mut expected = index.search(&query, radius, 1e3);
        expected.retain(|(tid, _, _)| stays(tid));
        // Trees of their own, which remember old roots.
        let (scanning, walking) = (index.tree(), index.tree());
        let (mut next, mut step, pause) = (1_000_000, 0, rng.random_range(1..20));
        loop {
            let more = scan.step(&scanning, &mut found).unwrap();
            let more_rows = all.step(&walking, &mut rows).unwrap();
            if !more && !more_rows {
                break;
            }
            step += 1;
            if step % pause > 0 {
                continue;
            }
            // Between two steps most rows go, so that leaves are merged, that of the next step
            // into the last one's perhaps; and as many come near one key, which takes the pages.
            freed += index.vacuum(|tid| !stays(&tid)).freed_pages;
            let (value, free) = (rng.random(), index.tree().free_pages());
            for _ in 0..rng.random_range(1..1_200) {
                let mut key: Key<16> = std::array::from_fn(|_| rng.random());
                (key[0], key[8]) = (value, value);
                index.insert(&index.tree(), tid(next), Some(key));
                next += 1;
            }
            used += free - index.tree().free_pages();
        }
        let mut found: Vec<_> = (found.iter())
            .filter(|row| stays(&row.tid))
            .map(|row| (row.tid, row.fingerprint, row.distance))
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "seed {seed}");
        let mut rows: Vec<_> = (rows.iter())
            .filter(|row| stays(&row.tid))
            .map(|row| (row.tid, row.fingerprint))
            .collect();
        rows.sort_unstable();
        let expected: Vec<_> = stay.iter().map(|(tid, key)| (*tid, *key)).collect();
        assert_eq!(rows, expected, "seed {seed}");
    }
    assert!(
        freed > 1_000 && used > 1_000,
        "{freed} pages freed, {used} used again"
    );
}

#[test]
fn leaves_looked_up_beforehand_may_be_merged_and_used_elsewhere() {
    let (mut freed, mut used) = (0, 0);
    for seed in 0..20 {
        let mut rng = StdRng::seed_from_u64(seed);
        let layout = BlockLayout::<16>::new(3, 4).unwrap();
        let center: Key<16> = std::array::from_fn(|_| rng.random());
        // Rows on both sides of the query in each permutation, most of them to go, so that the leaf
        // of the query becomes one with those before it.
        let around = |rng: &mut StdRng, bits: u32| {
            let mut key = center;
            for _ in 0..bits {
                key[rng.random_range(0..16)] ^= 1 << rng.random_range(0..64);
            }
            key
        };
        let mut start = Model::new();
        for i in 0..600 {
            start.insert(tid(i), Some(around(&mut rng, 64)));
        }
        for i in 0..8 {
            start.insert(tid(1_000 + i), Some(around(&mut rng, 3)));
        }
        let index = Index::build(layout, &start, 1 << 20);
        let plan = Rc::new(Plan::new(&index.layout, 3, 1e9));
        assert_eq!(plan.probes.len(), 4);
        let tree = index.tree();
        let mut scan = Scan::new(index.layout.clone(), plan, center);
        let (mut found, mut next) = (Vec::new(), 1_000_000);
        while scan.step(&tree, &mut found).unwrap() {
            let (free, value) = (index.tree().free_pages(), rng.random());
            freed += index
                .vacuum(|tid| !(1_000..2_000).contains(&tid.block))
                .freed_pages;
            let others = index.tree().free_pages();
            assert!(others >= free);
            for _ in 0..600 {
                let mut key: Key<16> = std::array::from_fn(|_| rng.random());
                (0..4).for_each(|block| key[4 * block] = value);
                index.insert(&index.tree(), tid(next), Some(key));
                next += 1;
            }
            used += others - index.tree().free_pages();
        }
        let mut found: Vec<Tid> = found.iter().map(|row| row.tid).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            (1_000..1_008).map(tid).collect::<Vec<_>>(),
            "seed {seed}"
        );
    }
    assert!(
        freed > 1_000 && used > 1_000,
        "{freed} pages freed, {used} used again"
    );
}

#[test]
fn a_crash_amid_merging_and_moving_leaves_the_tree_whole() {
    let mut rng = StdRng::seed_from_u64(3);
    let start = random_rows::<16>(&mut rng, 900);
    let dead = |tid: Tid| tid.block.is_multiple_of(2) && !tid.offset.is_multiple_of(7);
    let left: Model<16> = (start.iter())
        .filter(|(tid, _)| !dead(**tid))
        .map(|(tid, key)| (*tid, *key))
        .collect();
    let mut done = false;
    for fuse in (0..).step_by(3) {
        let index = Index::build(BlockLayout::<16>::new(1, 2).unwrap(), &start, 1 << 20);
        index.store.crash_after(fuse);
        let work = AssertUnwindSafe(|| {
            index.vacuum(dead);
            index.compact(u32::MAX);
        });
        let crashed = match catch_unwind(work) {
            Ok(()) => false,
            Err(crash) if crash.is::<Crash>() => true,
            Err(other) => resume_unwind(other),
        };
        index.store.crash_after(-1);
        // Every row is still there, those that were to go as well, whether the crash came early
        // or late. Pages may have been forgotten: the next time finds them.
        let tree = index.tree();
        tree.check(&index.layout, |_, _, _| ()).unwrap();
        let mut rows = index.all_rows();
        rows.retain(|(tid, _)| !dead(*tid));
        let expected: Vec<_> = left.iter().map(|(tid, key)| (*tid, *key)).collect();
        assert_eq!(rows, expected, "fuse {fuse}");
        index.vacuum(dead);
        index.compact(u32::MAX);
        index.assert_equals(&left, &mut rng, 1);
        if !crashed {
            done = true;
            break;
        }
    }
    assert!(done);
}

#[test]
fn a_root_that_has_been_moved_is_found_again() {
    let mut rng = StdRng::seed_from_u64(4);
    let model = random_rows::<16>(&mut rng, 3_000);
    let index = Index::build(BlockLayout::<16>::new(1, 2).unwrap(), &model, 1 << 20);
    let old = index.meta.root;
    index.vacuum(|tid| tid.block > 2);
    index.compact(u32::MAX);
    assert!(index.store.blocks() <= old.block);
    let new = MetaRef::new(&index.store.read(0)).root().unwrap();
    assert_ne!(new.block, old.block);
    // The end grows again over the former root's block.
    let mut rows: Vec<Tid> = (model.into_keys()).filter(|tid| tid.block <= 2).collect();
    for i in 9_000_000.. {
        let key = std::array::from_fn(|_| rng.random());
        index.insert(&Tree::new(&index.store, new), tid(i), Some(key));
        rows.push(tid(i));
        if index.store.blocks() > old.block + 1 {
            break;
        }
    }
    // A process that remembers the old root finds all rows and their leaves.
    let tree = Tree::<_, 16>::new(&index.store, old);
    index.insert(&tree, tid(9_999_999), Some([1; 16]));
    rows.push(tid(9_999_999));
    assert_ne!(tree.root().block, old.block);
    let tree = Tree::<_, 16>::new(&index.store, old);
    let mut found = Vec::new();
    let mut all = FullScan::new(index.layout.clone(), None);
    while all.step(&tree, &mut found).unwrap() {}
    let mut found: Vec<Tid> = found.iter().map(|row| row.tid).collect();
    found.sort_unstable();
    assert_eq!(found, rows);
}
