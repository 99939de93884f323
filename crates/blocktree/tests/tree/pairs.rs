//! All pairs, against comparing every row with every other.
use crate::model::{Index, Model, random_rows, some_key};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::Fill;
use neardup_blocktree::key::{EntryKey, Key, Tid, distance};
use neardup_blocktree::pairs::{KeyOrderScan, Pair, PairPlan, Pairs};
use neardup_blocktree::tree::Tree;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;

type Found = Vec<(Tid, Tid, u32)>;

/// The pairs of a step-wise search, each with its lower row first, sorted.
fn found<const N: usize>(pairs: &[Pair<N>]) -> Found {
    let mut found: Found = (pairs.iter())
        .map(|pair| {
            let [a, b] = pair.rows;
            (a.min(b), a.max(b), pair.distance)
        })
        .collect();
    found.sort_unstable();
    found
}

fn search<const N: usize>(
    index: &Index<N>,
    radius: u32,
    rows: f64,
    memory: usize,
    resolve: impl Fn(Tid) -> Option<Tid>,
) -> Vec<Pair<N>> {
    let plan = PairPlan::new(&index.layout, radius, rows);
    let mut pairs = Pairs::new(index.layout.clone(), plan, memory, false);
    let (tree, mut all) = (index.tree(), Vec::new());
    loop {
        let before = all.len();
        let mut resolve = |tid| resolve(tid);
        let more = (pairs.step(&tree, &mut |_| true, &mut resolve, &mut |pair| {
            all.push(pair)
        }))
        .unwrap();
        assert!(
            all.len() - before < 6_000,
            "a step gives no more than a batch"
        );
        if !more {
            return all;
        }
    }
}

/// The same by two searches that share ranges, in any order.
fn search_by_ranges<const N: usize>(
    index: &Index<N>,
    plan: &PairPlan<N>,
    memory: usize,
    most: usize,
    rng: &mut StdRng,
) -> Vec<Pair<N>> {
    let (tree, mut all) = (index.tree(), Vec::new());
    let mut ranges = plan.ranges(&tree, most).unwrap();
    assert!(ranges.len() <= most.max(1) * plan.passes.len());
    ranges.shuffle(rng);
    let search = || Pairs::new(index.layout.clone(), plan.clone(), memory, false);
    let mut searches = [search(), search()];
    for range in ranges {
        let pairs = &mut searches[rng.random_range(0..2)];
        pairs.begin_range(range);
        while (pairs.step(&tree, &mut |_| true, &mut Some, &mut |pair| all.push(pair))).unwrap() {}
    }
    all
}

fn expected<const N: usize>(model: &Model<N>, radius: u32, scope_words: usize) -> Found {
    let rows: Vec<(Tid, Key<N>)> = (model.iter())
        .filter_map(|(tid, key)| Some((*tid, (*key)?)))
        .collect();
    let mut pairs = Vec::new();
    for (i, (tid, key)) in rows.iter().enumerate() {
        for (other_tid, other) in &rows[i + 1..] {
            let distance = distance(key, other, scope_words);
            if distance <= radius && key[..scope_words] == other[..scope_words] {
                pairs.push((*tid, *other_tid, distance));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

fn assert_pairs<const N: usize>(layout: BlockLayout<N>, seed: u64, count: u32, scopes: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let scope_words = layout.scope_words();
    let mut model = random_rows::<N>(&mut rng, count);
    if scope_words > 0 {
        for key in model.values_mut().flatten() {
            key[0] = rng.random_range(0..scopes) << rng.random_range(0..2);
        }
    }
    let index = Index::build(layout, &model, 1 << 20);
    for _ in 0..4 {
        let radius = match rng.random_range(0..4) {
            0 => index.layout.radius(),
            1 => rng.random_range(0..=index.layout.radius()),
            2 => rng.random_range(0..20),
            _ => rng.random_range(0..80 * N as u32),
        };
        // Whatever the estimate of the number of rows and the memory, the answer is the same.
        let rows = [1.0, 1e3, 1e5, 1e7, 1e10][rng.random_range(0..5)];
        let memory = [0, 100_000, 1 << 22][rng.random_range(0..3)];
        let pairs = search(&index, radius, rows, memory, Some);
        for pair in &pairs {
            let key = |row: usize| model[&pair.rows[row]];
            assert_eq!([key(0), key(1)], pair.fingerprints.map(Some));
        }
        let expected = expected(&model, radius, scope_words);
        assert!(
            found(&pairs) == expected,
            "radius {radius}, rows {rows}, memory {memory}: {} of {} pairs",
            pairs.len(),
            expected.len()
        );
        let plan = PairPlan::new(&index.layout, radius, rows);
        let most = [1, 2, 5, 60][rng.random_range(0..4)];
        let pairs = search_by_ranges(&index, &plan, memory, most, &mut rng);
        assert!(
            found(&pairs) == expected,
            "radius {radius}, rows {rows}, memory {memory}, {most} ranges: {} of {} pairs",
            pairs.len(),
            expected.len()
        );
    }
}

proptest! {
    #![proptest_config(super::cases(24))]

    #[test]
    fn narrow_keys(
        layout in super::any_design::<1>(), seed: u64, count in 0..1500u32,
    ) {
        assert_pairs(layout, seed, count, 0);
    }

    #[test]
    fn wide_keys(layout in super::any_design::<4>(), seed: u64, count in 0..800u32) {
        assert_pairs(layout, seed, count, 0);
    }

    #[test]
    fn within_scopes(
        (guaranteed, more) in (0..=3u32, 1..=2u32), seed: u64, count in 0..1000u32,
        scopes in prop::sample::select(vec![1, 2, 40, 3000]),
    ) {
        let layout = BlockLayout::<2>::in_scope(true, guaranteed, guaranteed + more).unwrap();
        assert_pairs(layout, seed, count, scopes);
    }
}

/// Keys that often share their first bits, so that groups span leaves and chunks.
fn crowded(rng: &mut StdRng, count: u32) -> Model<1> {
    let centers: Vec<u64> = (0..5).map(|_| rng.random()).collect();
    (0..count)
        .map(|i| {
            let tid = Tid {
                block: i,
                offset: 1,
            };
            let center = centers[rng.random_range(0..centers.len())];
            let key = center ^ (rng.random::<u64>() & rng.random::<u64>() & 0xffff_ffff_0000_ff00);
            (tid, Some([key]))
        })
        .collect()
}

#[test]
fn groups_that_span_chunks() {
    let mut rng = StdRng::seed_from_u64(21);
    let model = crowded(&mut rng, 12_000);
    for (guaranteed, blocks) in [(3, 4), (2, 4), (1, 2)] {
        let index = Index::build(
            BlockLayout::new(guaranteed, blocks).unwrap(),
            &model,
            1 << 20,
        );
        for radius in [3, 5, 9] {
            let expected = expected(&model, radius, 0);
            assert!(expected.len() > 100);
            for memory in [0, 1 << 16, 1 << 24] {
                let pairs = search(&index, radius, 12e3, memory, Some);
                assert!(
                    found(&pairs) == expected,
                    "{guaranteed} {blocks} {radius} {memory}"
                );
                let plan = PairPlan::new(&index.layout, radius, 12e3);
                let pairs = search_by_ranges(&index, &plan, memory, 40, &mut rng);
                assert!(
                    found(&pairs) == expected,
                    "{guaranteed} {blocks} {radius} {memory}, ranges"
                );
            }
        }
    }
}

#[test]
fn rows_that_are_not_wanted_are_asked_for_once_in_a_pass_and_in_no_pair() {
    let mut rng = StdRng::seed_from_u64(22);
    let model = crowded(&mut rng, 3_000);
    let index = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 20);
    let alive: Model<1> = (model.iter())
        .filter(|(tid, _)| !tid.block.is_multiple_of(3))
        .map(|(tid, key)| (*tid, *key))
        .collect();
    let asked = std::cell::RefCell::new(std::collections::HashMap::new());
    let moved = |tid: Tid| {
        *asked.borrow_mut().entry(tid).or_insert(0) += 1;
        (!tid.block.is_multiple_of(3)).then_some(Tid { offset: 7, ..tid })
    };
    let pairs = search(&index, 3, 3e3, 1 << 22, moved);
    let mut expected = expected(&alive, 3, 0);
    (expected.iter_mut()).for_each(|(a, b, _)| (a.offset, b.offset) = (7, 7));
    assert!(!expected.is_empty() && found(&pairs) == expected);
    assert!(asked.borrow().values().all(|&times| times <= 4));
}

#[test]
fn distinct_fingerprints_meet_though_their_rows_are_many() {
    let mut rng = StdRng::seed_from_u64(23);
    let centre: u64 = rng.random();
    // 100,000 rows have one fingerprint: 5,000 million pairs, were they looked at one by one.
    let mut model: Model<1> = (0..100_000)
        .map(|i| {
            (
                Tid {
                    block: i,
                    offset: 1,
                },
                Some([centre]),
            )
        })
        .collect();
    for i in 0..500 {
        let key = [centre ^ (1 << rng.random_range(0..64)) ^ (1 << rng.random_range(0..64))];
        model.insert(
            Tid {
                block: i,
                offset: 2,
            },
            Some(key),
        );
    }
    let keys: BTreeSet<u64> = model.values().flatten().map(|key| key[0]).collect();
    let expected: BTreeSet<(u64, u64)> = (keys.iter())
        .flat_map(|a| keys.range(a + 1..).map(move |b| (*a, *b)))
        .filter(|(a, b)| (a ^ b).count_ones() <= 3)
        .collect();
    let index = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 24);
    for memory in [0, 1 << 22] {
        let plan = PairPlan::new(&index.layout, 3, 1e5);
        let mut pairs = Pairs::new(index.layout.clone(), plan, memory, true);
        let (tree, mut found, mut emitted) = (index.tree(), BTreeSet::new(), 0);
        let mut emit = |pair: Pair<1>| {
            let [[a], [b]] = pair.fingerprints;
            found.insert((a.min(b), a.max(b)));
            emitted += 1;
        };
        while pairs
            .step(&tree, &mut |_| true, &mut Some, &mut emit)
            .unwrap()
        {}
        assert!(found == expected);
        assert!(
            emitted < 4 * expected.len(),
            "{emitted} of {}",
            expected.len()
        );
    }
}

#[test]
fn pairs_of_equal_rows_stream() {
    let model: Model<1> = (0..100_000)
        .map(|i| {
            (
                Tid {
                    block: i,
                    offset: 1,
                },
                Some([7]),
            )
        })
        .collect();
    let index = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 24);
    let plan = PairPlan::new(&index.layout, 3, 1e5);
    let mut pairs = Pairs::new(index.layout.clone(), plan, 1 << 22, false);
    let (tree, mut emitted) = (index.tree(), 0);
    for _ in 0..50 {
        assert!(
            pairs
                .step(&tree, &mut |_| true, &mut Some, &mut |_| emitted += 1)
                .unwrap()
        );
    }
    assert!((50 * 1_024..50 * 6_000).contains(&emitted));
}

#[test]
fn each_pair_once_while_others_insert_and_vacuum() {
    let mut rng = StdRng::seed_from_u64(24);
    let model = random_rows::<16>(&mut rng, 700);
    for radius in [1, 30] {
        let index = Index::build(BlockLayout::<16>::new(1, 3).unwrap(), &model, 1 << 20);
        let expected = expected(&model, radius, 0);
        assert!(expected.len() > 50);
        let (store, meta) = (&index.store, index.meta);
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let model = &model;
                scope.spawn(move || {
                    let layout = BlockLayout::<16>::new(1, 3).unwrap();
                    let mut rng = StdRng::seed_from_u64(thread);
                    let known: Vec<Key<16>> = model.values().flatten().copied().collect();
                    let tree = Tree::new(store, meta.root);
                    for i in 0..2_000 {
                        let tid = Tid {
                            block: 1_000_000 * (thread as u32 + 1) + i,
                            offset: 1,
                        };
                        let key = some_key(&mut rng, &known);
                        for (number, permutation) in layout.permutations().iter().enumerate() {
                            let key = permutation.permute(&key);
                            tree.insert(&EntryKey::new(number as u16, key, tid))
                                .unwrap();
                        }
                    }
                });
            }
            scope.spawn(move || {
                let tree = Tree::<_, 16>::new(store, meta.root);
                let null_permutation = BlockLayout::<16>::new(1, 3).unwrap().null_permutation();
                for _ in 0..20 {
                    // Merges pages that the inserters have split, and are splitting.
                    let dead = |tid: Tid| tid.block > 1_000_000;
                    tree.vacuum(null_permutation, Fill::default(), dead)
                        .unwrap();
                }
            });
            for round in 0..6 {
                let (rows, memory) = ([1.0, 1e4, 1e8][round % 3], [0, 1 << 21][round % 2]);
                // What others insert is not seen, as by a snapshot.
                let seen = |tid: Tid| (tid.block < 1_000_000).then_some(tid);
                let pairs = search(&index, radius, rows, memory, seen);
                assert!(found(&pairs) == expected, "radius {radius}, round {round}");
                // Ranges whose borders merges may take away meanwhile.
                let plan = PairPlan::new(&index.layout, radius, rows);
                let mut rng = StdRng::seed_from_u64(round as u64);
                let mut pairs = search_by_ranges(&index, &plan, memory, 9, &mut rng);
                pairs.retain(|pair| pair.rows.into_iter().all(|tid| seen(tid).is_some()));
                assert!(
                    found(&pairs) == expected,
                    "radius {radius}, round {round}, ranges"
                );
            }
        });
    }
}

/// A search with unresolved pairs asks for no row in its first pairs: then come all pairs of the
/// entries that are wanted, and others of these few.
#[test]
fn a_trusting_search_asks_for_rows_in_many_pairs() {
    let mut rng = StdRng::seed_from_u64(27);
    let mut model = random_rows::<1>(&mut rng, 3_000);
    // As many versions of a row leave behind: entries with one fingerprint.
    let versions = 700;
    model.extend((0..versions).map(|block| (Tid { block, offset: 77 }, Some([42]))));
    let index = Index::build(BlockLayout::new(2, 3).unwrap(), &model, 1 << 20);
    let is_wanted = |tid: Tid| tid.offset != 77 || tid.block == versions / 2;
    let wanted: Model<1> = (model.iter())
        .filter(|(tid, _)| is_wanted(**tid))
        .map(|(tid, key)| (*tid, *key))
        .collect();
    let all = expected(&model, 2, 0).len();
    for trusted in [0, 1, 16, u32::MAX] {
        let plan = PairPlan::new(&index.layout, 2, 3e3);
        let memory = 1 << 16;
        let mut pairs =
            Pairs::new(index.layout.clone(), plan, memory, false).with_unresolved_pairs(trusted);
        let (tree, mut given, mut asked) = (index.tree(), Vec::new(), 0);
        let mut resolve = |tid| {
            asked += 1;
            is_wanted(tid).then_some(tid)
        };
        while (pairs.step(&tree, &mut |_| true, &mut resolve, &mut |pair| {
            given.push(pair)
        }))
        .unwrap()
        {}
        let unwanted = (given.iter())
            .filter(|pair| !pair.rows.into_iter().all(is_wanted))
            .count();
        given.retain(|pair| pair.rows.into_iter().all(is_wanted));
        assert_eq!(found(&given), expected(&wanted, 2, 0), "{trusted}");
        match trusted {
            0 => assert_eq!(unwanted, 0),
            u32::MAX => assert_eq!((unwanted + given.len(), asked), (all, 0)),
            // Of each part of a permutation, by each of its entries.
            _ => assert!(
                unwanted <= 6 * trusted as usize * versions as usize,
                "{unwanted}"
            ),
        }
    }
}

/// Entries that are not wanted are in no pair, and cost no comparison.
#[test]
fn only_wanted_entries_are_compared() {
    let mut rng = StdRng::seed_from_u64(28);
    let mut model = crowded(&mut rng, 4_000);
    let equal = 60_000;
    model.extend((0..equal).map(|block| (Tid { block, offset: 77 }, Some([42]))));
    let index = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 24);
    let is_wanted = |tid: Tid| match tid.offset {
        77 => tid.block.is_multiple_of(20_000),
        _ => !tid.block.is_multiple_of(3),
    };
    let mut chosen = model.clone();
    chosen.retain(|tid, _| is_wanted(*tid));
    for memory in [0, 1 << 24] {
        let plan = PairPlan::new(&index.layout, 3, 1e5);
        let mut pairs = Pairs::new(index.layout.clone(), plan, memory, false);
        let (tree, mut given) = (index.tree(), Vec::new());
        let (mut wanted, mut resolve) = (is_wanted, Some);
        let pauses = index.store.pauses();
        let mut emit = |pair| given.push(pair);
        while pairs
            .step(&tree, &mut wanted, &mut resolve, &mut emit)
            .unwrap()
        {}
        assert_eq!(found(&given), expected(&chosen, 3, 0));
        let pauses = index.store.pauses() - pauses;
        assert!(pauses < 2_000, "{pauses} pauses");
    }
}

/// Invisible versions of one row are compared in one pass, and with few others.
#[test]
fn equal_rows_that_nobody_sees_take_little_work() {
    let versions = 60_000;
    let model: Model<1> = (0..versions)
        .map(|block| (Tid { block, offset: 1 }, Some([42])))
        .collect();
    let index = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 24);
    let is_seen = |tid: Tid| tid.block >= versions - 2;
    for memory in [1 << 20, 1 << 24] {
        let plan = PairPlan::new(&index.layout, 3, 1e5);
        assert!(plan.passes.len() > 1);
        let mut pairs =
            Pairs::new(index.layout.clone(), plan, memory, false).with_unresolved_pairs(16);
        let (tree, mut given) = (index.tree(), Vec::new());
        let mut resolve = |tid| is_seen(tid).then_some(tid);
        let pauses = index.store.pauses();
        let mut emit = |pair| given.push(pair);
        while pairs
            .step(&tree, &mut |_| true, &mut resolve, &mut emit)
            .unwrap()
        {}
        given.retain(|pair| pair.rows.into_iter().all(is_seen));
        assert_eq!(given.len(), 1);
        let pauses = index.store.pauses() - pauses;
        assert!(pauses < 2_000, "{pauses} pauses");
    }
}

#[test]
fn damage_is_an_error() {
    let mut rng = StdRng::seed_from_u64(25);
    let model = random_rows::<1>(&mut rng, 3_000);
    let index = Index::build(BlockLayout::new(2, 3).unwrap(), &model, 1 << 20);
    for block in 1..index.store.blocks() {
        // No page's kind.
        index
            .store
            .damage(block, neardup_blocktree::page::PAGE_SIZE - 2, &[0, 0]);
    }
    let plan = PairPlan::new(&index.layout, 2, 3e3);
    let mut pairs = Pairs::new(index.layout.clone(), plan, 0, false);
    assert!(
        pairs
            .step(&index.tree(), &mut |_| true, &mut Some, &mut |_| ())
            .is_err()
    );
}

#[test]
fn rows_with_equal_fingerprints_follow_each_other() {
    let mut rng = StdRng::seed_from_u64(26);
    let model = crowded(&mut rng, 5_000);
    let mut rows = model.clone();
    rows.extend((0..2_000).map(|i| {
        (
            Tid {
                block: i,
                offset: 9,
            },
            Some([i as u64 % 3]),
        )
    }));
    let index = Index::build(BlockLayout::new(2, 4).unwrap(), &rows, 1 << 20);
    let (tree, mut emitted) = (index.tree(), Vec::new());
    let mut cursor = KeyOrderScan::new(index.layout.clone());
    while cursor
        .step(&tree, &mut |key, tid| emitted.push((key, tid)))
        .unwrap()
    {}
    let permutation = &index.layout.permutations()[0];
    assert!(emitted.is_sorted_by_key(|(key, tid)| (permutation.permute(key), *tid)));
    emitted.sort_unstable_by_key(|(_, tid)| *tid);
    let expected: Vec<_> = rows.iter().map(|(tid, key)| (key.unwrap(), *tid)).collect();
    assert!(emitted == expected);
}
