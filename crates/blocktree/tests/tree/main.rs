//! The tree over a store in memory: against a model, under threads, with crashes, with damage.

mod bands;
mod bloat;
mod clusters;
mod corruption;
mod info;
mod inner_copies;
mod interleavings;
mod knn;
mod mem_store;
mod model;
mod pairs;
mod repeated_passages;
mod scopes;
mod sets;
mod shapes;
mod spilled_bytes;
mod spilled_lists;
mod validation;

use mem_store::Crash;
use model::{Index, Model, random_rows, some_key};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::Fill;
use neardup_blocktree::key::{EntryKey, Key, Tid, distance};
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::store::ReadPages;
use neardup_blocktree::tree::Tree;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::rc::Rc;

/// Settings of a property test with a number of cases, or with that of a variable: an emulated
/// machine is slow.
fn cases(usual: u32) -> ProptestConfig {
    let wanted = std::env::var("NEARDUP_TEST_TREE_CASES").ok();
    let wanted = wanted.map(|cases| cases.parse().expect("NEARDUP_TEST_TREE_CASES is a number"));
    ProptestConfig::with_cases(wanted.unwrap_or(usual))
}

fn any_design<const N: usize>() -> impl Strategy<Value = BlockLayout<N>> {
    (0..=4u32, 1..=3u32).prop_filter_map("no layout", |(radius, more)| {
        BlockLayout::new(radius, radius + more).ok()
    })
}

/// Random operations on an index with keys of `N` words. Wide keys make small pages, hence trees
/// of several levels with few rows.
fn random_operations<const N: usize>(layout: BlockLayout<N>, seed: u64, start: u32, steps: u32) {
    random_operations_of(layout, [u64::MAX; N], seed, start, steps);
}

/// [`random_operations`] with fingerprints that have only these bits.
fn random_operations_of<const N: usize>(
    layout: BlockLayout<N>,
    mask: Key<N>,
    seed: u64,
    start: u32,
    steps: u32,
) {
    let mut rng = StdRng::seed_from_u64(seed);
    let masked = |key: Key<N>| std::array::from_fn(|word| key[word] & mask[word]);
    let mut model = random_rows::<N>(&mut rng, start);
    for key in model.values_mut().flatten() {
        *key = masked(*key);
    }
    let index = Index::build(
        layout,
        &model,
        if seed.is_multiple_of(2) { 0 } else { 1 << 24 },
    );
    index.assert_equals(&model, &mut rng, 4);
    let mut next = 1_000_000;
    for _ in 0..steps {
        let tree = index.tree();
        if rng.random_bool(0.2) {
            let share = [0.01, 0.5, 1.0][rng.random_range(0..3)];
            let mut dead = Vec::new();
            model.retain(|tid, _| {
                let stays = !rng.random_bool(share);
                if !stays {
                    dead.push(*tid);
                }
                stays
            });
            let stats = index.vacuum(|tid| dead.binary_search(&tid).is_ok());
            assert_eq!(stats.rows, model.len() as u64);
            if rng.random_bool(0.5) {
                index.compact([5, u32::MAX][rng.random_range(0..2)]);
            }
        } else {
            let known: Vec<Key<N>> = model.values().flatten().copied().collect();
            let far_rows = [0.0, 0.0, 0.01, 0.9][rng.random_range(0..4)];
            let same = rng.random_bool(0.2).then(|| some_key(&mut rng, &known));
            for _ in 0..rng.random_range(1..200) {
                // Now and then a row that takes a long address.
                let far = rng.random_bool(far_rows);
                let tid = Tid {
                    block: if far { next + (1 << 30) } else { next },
                    offset: 1,
                };
                next += 1;
                let key = masked(same.unwrap_or_else(|| some_key(&mut rng, &known)));
                let fingerprint = rng.random_bool(0.95).then_some(key);
                index.insert(&tree, tid, fingerprint);
                model.insert(tid, fingerprint);
            }
        }
        index.assert_equals(&model, &mut rng, 2);
    }
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn narrow_keys_equal_the_model(layout in any_design::<1>(), seed: u64, start in 0..3000u32) {
        random_operations(layout, seed, start, 12);
    }

    #[test]
    fn keys_that_begin_alike_equal_the_model(
        narrow in any_design::<1>(), wide in any_design::<4>(), seed: u64, start in 0..4000u32,
        bits in 4..40u32, shift in 0..60u32,
    ) {
        // Few bits that differ, so that leaves leave out all that they may, or parts of it.
        let bits = ((1u64 << bits) - 1).rotate_left(shift);
        random_operations_of(narrow, [bits], seed, start, 8);
        let mut mask = [0; 4];
        mask[seed as usize % 4] = bits;
        mask[3] |= 0xffff;
        random_operations_of(wide, mask, seed, start, 8);
    }

    #[test]
    fn wide_keys_equal_the_model(layout in any_design::<16>(), seed: u64, start in 0..1500u32) {
        random_operations(layout, seed, start, 12);
    }
}

#[test]
fn a_tree_of_three_levels_grows_from_nothing() {
    let mut rng = StdRng::seed_from_u64(1);
    let layout = BlockLayout::<16>::new(1, 2).unwrap();
    let index = Index::build(layout, &Model::new(), 1 << 20);
    let tree = index.tree();
    let mut model = Model::new();
    for i in 0..60_000u32 {
        let tid = Tid {
            block: i,
            offset: 1,
        };
        // A third are equal: their leaves are split between rows.
        let key = if i % 3 == 0 {
            [7; 16]
        } else {
            std::array::from_fn(|_| rng.random())
        };
        index.insert(&tree, tid, Some(key));
        model.insert(tid, Some(key));
    }
    assert!(tree.root().level >= 2, "{:?}", tree.root());
    index.assert_equals(&model, &mut rng, 8);
    // Equal fingerprints inserted in the order of their rows leave full pages.
    let equal_leaves = 20_000 / 59 * 2;
    let random_leaves = 40_000 / 29 * 2;
    assert!(index.check().leaves < equal_leaves + random_leaves + 100);
}

#[test]
fn little_memory_builds_the_same_pages() {
    let mut rng = StdRng::seed_from_u64(2);
    let model = random_rows::<1>(&mut rng, 30_000);
    let layout = || BlockLayout::new(3, 5).unwrap();
    let (small, large) = (
        Index::build(layout(), &model, 0),
        Index::build(layout(), &model, 1 << 30),
    );
    assert_eq!(small.store.blocks(), large.store.blocks());
    for block in 0..small.store.blocks() {
        let page = *small.store.read(block);
        assert!(page == *large.store.read(block), "block {block}");
    }
    small.assert_equals(&model, &mut rng, 50);
}

#[test]
fn the_nearest_of_many_come_in_order_and_all_of_them() {
    let mut rng = StdRng::seed_from_u64(8);
    let mut model = random_rows::<1>(&mut rng, 20_000);
    for i in 0..12_000 {
        // More at one distance than a ring keeps.
        model.insert(
            Tid {
                block: 9_000_000 + i,
                offset: 1,
            },
            Some([0x5555]),
        );
    }
    let index = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 24);
    for query in [[0u64], [0x5555], [rng.random()]] {
        let mut expected: Vec<(u32, Tid)> = (model.iter())
            .filter_map(|(tid, key)| Some((distance(key.as_ref()?, &query, 0), *tid)))
            .collect();
        expected.sort_unstable();
        for rows in [1.0, 3e4, 1e8] {
            let found = index.nearest(&query, rows, usize::MAX);
            let differing = found
                .iter()
                .zip(&expected)
                .position(|(found, row)| found != row);
            assert_eq!(
                (differing, found.len()),
                (None, expected.len()),
                "rows {rows}"
            );
        }
    }
}

#[test]
fn one_mask_on_everything_changes_nothing() {
    let mut rng = StdRng::seed_from_u64(3);
    let model = random_rows::<1>(&mut rng, 5_000);
    let mask: u64 = rng.random();
    let masked: Model<1> = model
        .iter()
        .map(|(tid, key)| (*tid, key.map(|key| [key[0] ^ mask])))
        .collect();
    let plain = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 20);
    let other = Index::build(BlockLayout::new(3, 4).unwrap(), &masked, 1 << 20);
    let known: Vec<Key<1>> = model.values().flatten().copied().collect();
    for _ in 0..200 {
        let query = some_key(&mut rng, &known);
        let radius = rng.random_range(0..16);
        let tids = |found: Vec<(Tid, Key<1>, u32)>| -> Vec<Tid> {
            found.into_iter().map(|(tid, _, _)| tid).collect()
        };
        assert_eq!(
            tids(plain.search(&query, radius, 5e3)),
            tids(other.search(&[query[0] ^ mask], radius, 1e8))
        );
    }
}

#[test]
fn threads_insert_search_and_vacuum_together() {
    let layout = BlockLayout::<16>::new(1, 3).unwrap();
    let mut rng = StdRng::seed_from_u64(4);
    let model = random_rows::<16>(&mut rng, 2_000);
    let index = Index::build(layout, &model, 1 << 20);
    let (store, meta, null_permutation) =
        (&index.store, index.meta, index.layout.null_permutation());
    // These rows stay: a search must find each of them, once, at any time.
    let fixed: Vec<(Tid, Key<16>)> = model
        .iter()
        .filter_map(|(tid, key)| Some((*tid, (*key)?)))
        .collect();
    let added: Vec<Model<16>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u32)
            .map(|thread| {
                scope.spawn(move || {
                    let layout = BlockLayout::<16>::new(1, 3).unwrap();
                    let mut rng = StdRng::seed_from_u64(100 + u64::from(thread));
                    let tree = Tree::new(store, meta.root);
                    let mut added = Model::new();
                    for i in 0..4_000 {
                        let tid = Tid {
                            block: 1_000_000 * (thread + 1) + i,
                            offset: 1,
                        };
                        let key = some_key::<16>(&mut rng, &[]);
                        let entries =
                            (0..)
                                .zip(layout.permutations())
                                .map(|(number, permutation)| {
                                    EntryKey::new(number, permutation.permute(&key), tid)
                                });
                        tree.insert_row(entries).unwrap();
                        added.insert(tid, Some(key));
                    }
                    added
                })
            })
            .collect();
        scope.spawn(move || {
            let tree = Tree::<_, 16>::new(store, meta.root);
            for _ in 0..20 {
                // Rows of the third writer with an odd number.
                tree.vacuum(null_permutation, Fill::default(), |tid| {
                    tid.block > 3_000_000 && tid.block % 2 == 1
                })
                .unwrap();
            }
        });
        scope.spawn(|| {
            let layout = BlockLayout::<16>::new(1, 3).unwrap();
            let tree = Tree::<_, 16>::new(store, meta.root);
            for _ in 0..20 {
                let mut seen = vec![0; fixed.len()];
                let count = |_, tid, key: &_| {
                    let found = fixed.binary_search_by_key(&tid, |(tid, _)| *tid);
                    if let Ok(at) = found {
                        assert_eq!(*key, fixed[at].1);
                        seen[at] += 1;
                    }
                };
                tree.check_shared(&layout, count).unwrap();
                let permutations = layout.permutations().len();
                assert!(seen.iter().all(|&times| times == permutations));
            }
        });
        scope.spawn(|| {
            let layout = Rc::new(BlockLayout::<16>::new(1, 3).unwrap());
            let mut rng = StdRng::seed_from_u64(5);
            let tree = Tree::new(store, meta.root);
            for _ in 0..600 {
                let (tid, key) = fixed[rng.random_range(0..fixed.len())];
                let radius = [0, 1, 40][rng.random_range(0..3)];
                let plan = Rc::new(Plan::new(&layout, radius, 1e6));
                let mut scan = Scan::new(layout.clone(), plan, key);
                let mut matches = Vec::new();
                while scan.step(&tree, &mut matches).unwrap() {}
                assert_eq!(matches.iter().filter(|m| m.tid == tid).count(), 1);
                matches.sort_unstable_by_key(|m| m.tid);
                assert!(
                    matches.windows(2).all(|pair| pair[0].tid < pair[1].tid),
                    "seen twice"
                );
            }
        });
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    let dead = |tid: Tid| tid.block > 3_000_000 && tid.block % 2 == 1;
    index.vacuum(dead);
    let mut model = model;
    model.extend(added.into_iter().flatten().filter(|(tid, _)| !dead(*tid)));
    index.assert_equals(&model, &mut rng, 20);
}

#[test]
fn splits_between_the_steps_of_a_search_hide_nothing() {
    // Leaves of 29 entries, which a search looks up some time before it reads them.
    let layout = BlockLayout::<16>::new(3, 4).unwrap();
    let mut rng = StdRng::seed_from_u64(7);
    let center: Key<16> = std::array::from_fn(|_| rng.random());
    let near = |rng: &mut StdRng| {
        let mut key = center;
        for _ in 0..3 {
            key[rng.random_range(0..16)] ^= 1 << rng.random_range(0..64);
        }
        key
    };
    for rounds in 0..8 {
        let rows = (0..400).map(|i| {
            (
                Tid {
                    block: i,
                    offset: 1,
                },
                Some(near(&mut rng)),
            )
        });
        let model: Model<16> = rows.collect();
        let index = Index::build(layout.clone(), &model, 1 << 20);
        let plan = Rc::new(Plan::new(&index.layout, 3, 1e9));
        assert_eq!(plan.probes.len(), 4);
        let (tree, inserting) = (index.tree(), index.tree());
        let mut scan = Scan::new(index.layout.clone(), plan, center);
        let (mut matches, mut next) = (Vec::new(), 1_000);
        while scan.step(&tree, &mut matches).unwrap() {
            // A search that is outrun would never end.
            for _ in 0..30 * rounds * u32::from(next < 3_000) {
                let tid = Tid {
                    block: next,
                    offset: 1,
                };
                index.insert(&inserting, tid, Some(near(&mut rng)));
                next += 1;
            }
        }
        let mut found: Vec<Tid> = matches.iter().map(|row| row.tid).collect();
        found.sort_unstable();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "seen twice");
        let there = found.iter().filter(|tid| tid.block < 1_000).count();
        assert_eq!(there, model.len(), "round {rounds}");
    }
}

#[test]
fn a_crash_at_any_change_loses_no_row_that_was_there() {
    let mut rng = StdRng::seed_from_u64(6);
    let start = random_rows::<16>(&mut rng, 300);
    for fuse in 0..400 {
        let mut model = start.clone();
        let index = Index::build(BlockLayout::<16>::new(1, 2).unwrap(), &model, 1 << 20);
        index.store.crash_after(fuse);
        let mut broken = None;
        for i in 0..200 {
            let tid = Tid {
                block: 5_000 + i,
                offset: 1,
            };
            let key = [rng.random(); 16];
            let insert =
                std::panic::AssertUnwindSafe(|| index.insert(&index.tree(), tid, Some(key)));
            match std::panic::catch_unwind(insert) {
                Ok(()) => {
                    model.insert(tid, Some(key));
                }
                Err(crash) if crash.is::<Crash>() => {
                    broken = Some(tid);
                    break;
                }
                Err(other) => std::panic::resume_unwind(other),
            }
        }
        index.store.crash_after(-1);
        if let Some(broken) = broken {
            // The row of the transaction that died may be in some permutations; vacuum takes it
            // away.
            index.vacuum(|tid| tid == broken);
        }
        index.assert_equals(&model, &mut rng, 2);
    }
}
