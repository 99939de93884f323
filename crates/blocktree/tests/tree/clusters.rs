//! Clusters against their definitions, in little memory and in much; and the pairs that are enough
//! to make them.
use crate::mem_store::MemStore;
use crate::model::{Index, Model};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::clusters::{Components, Star, UNRANKED};
use neardup_blocktree::crowded_centers::CrowdedCenters;
use neardup_blocktree::crowded_centers::Nearness;
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::pairs::{Pair, PairPlan, Pairs, Thinning};
use neardup_blocktree::sort::{Entry, ExternalSort};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const RADIUS: u32 = 3;

/// Some fingerprints that stand together in balls, all different, of a few scopes.
fn fingerprints(rng: &mut StdRng, count: usize) -> Vec<(Key<1>, u32)> {
    let mut all = BTreeSet::new();
    while all.len() < count {
        let center: u64 = rng
            .random_range(0..3u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = rng.random_range(0..5);
        let key = (0..bits).fold(center, |key, _| key ^ 1 << rng.random_range(0..40));
        all.insert(([key], rng.random_range(0..8) / 7));
    }
    all.into_iter().collect()
}

/// The ranks of representatives, by definition.
fn expected(nodes: &[(Key<1>, u32)], ranks: &[u32], connected: bool) -> Vec<u32> {
    let near = |a: usize, b: usize| {
        nodes[a].1 == nodes[b].1 && distance(&nodes[a].0, &nodes[b].0, 0) <= RADIUS
    };
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_unstable_by_key(|&node| ranks[node]);
    let mut of = vec![UNRANKED; nodes.len()];
    for &node in &order {
        if of[node] != UNRANKED {
            continue;
        }
        of[node] = ranks[node];
        let mut next = vec![node];
        while let Some(from) = next.pop() {
            for &other in &order {
                if of[other] == UNRANKED && near(from, other) {
                    of[other] = ranks[node];
                    if connected {
                        next.push(other);
                    }
                }
            }
        }
    }
    of
}

/// Entry of a crowded fingerprint in a scope.
fn crowded_entry(node: u32, key: &Key<1>, scope: u32) -> Entry<2> {
    Entry {
        key: [u64::from(node), key[0]],
        tid: u64::from(scope),
    }
}

/// Clusters made of the pairs of a thinned search.
fn clusters(
    nodes: &[(Key<1>, u32)],
    ranks: &[u32],
    thinning: Thinning,
    is_connected: bool,
    memory: [usize; 2],
    rows: f64,
) -> Vec<u32> {
    let model: Model<1> = (0..)
        .zip(nodes)
        .map(|(i, (key, _))| {
            let tid = Tid {
                block: i,
                offset: 1,
            };
            (tid, Some(*key))
        })
        .collect();
    let index = Index::build(BlockLayout::<1>::new(3, 4).unwrap(), &model, 1 << 20);
    let plan = PairPlan::new(&index.layout, RADIUS, rows);
    let mut pairs = Pairs::thinned(index.layout.clone(), plan, memory[0], thinning);
    let mut numbers: BTreeMap<Key<1>, Vec<u32>> = BTreeMap::new();
    for (i, (key, _)) in (0..).zip(nodes) {
        numbers.entry(*key).or_default().push(i);
    }
    let mut found: Vec<[Key<1>; 2]> = Vec::new();
    let tree = index.tree();
    while (pairs.step(&tree, &mut |_| true, &mut Some, &mut |pair| {
        found.push(pair.fingerprints)
    }))
    .unwrap()
    {}
    let mut degrees: BTreeMap<Key<1>, u32> = BTreeMap::new();
    for key in found.iter().flatten() {
        *degrees.entry(*key).or_default() += 1;
    }

    let store = MemStore::new();
    let mut files = &store;
    let count = nodes.len();
    let mut of = Paged::new(&mut files, count, memory[1], |_| UNRANKED);
    for (node, &rank) in (0..).zip(ranks) {
        of.set(&mut files, node, rank);
    }
    let mut star = Star::<&MemStore, 2>::new(memory[1]);
    let mut connected = Components::new(&mut files, count as u32, memory[1]);
    for [a, b] in found {
        for &a in &numbers[&a] {
            for &b in &numbers[&b] {
                if nodes[a as usize].1 == nodes[b as usize].1 {
                    let ranked = |node: u32| (node, ranks[node as usize]);
                    star.add_pair(&mut files, ranked(a), ranked(b));
                    connected.connect(&mut files, a, b);
                }
            }
        }
    }
    match thinning {
        _ if is_connected => connected.finish(&mut files, &mut of),
        Thinning::Forest => unreachable!("a star needs more pairs"),
        Thinning::Degree(most) => {
            for (node, (key, scope)) in (0..).zip(nodes) {
                if degrees.get(key).is_some_and(|&degree| degree > most) {
                    star.add_crowded(
                        &mut files,
                        ranks[node as usize],
                        crowded_entry(node, key, *scope),
                    );
                }
            }
            let nearness = Nearness {
                radius: RADIUS,
                scope_words: 0,
            };
            let mut centers = CrowdedCenters::new(memory[1], nearness);
            star.finish(&mut files, &mut of, &mut centers, &mut || ());
        }
    }
    (0..count as u32)
        .map(|node| of.get(&mut files, node))
        .collect()
}

proptest! {
    #![proptest_config(super::cases(64))]
    #[test]
    fn as_by_definition(
        seed in any::<u64>(), count in 1..600usize, most in 0..40u32,
        memory in prop::sample::select(vec![[0, 0], [1 << 22, 0], [0, 1 << 22]]),
        rows in prop::sample::select(vec![1.0, 1e4, 1e9]),
    ) {
        let mut rng = StdRng::seed_from_u64(seed);
        let nodes = fingerprints(&mut rng, count);
        let mut ranks: Vec<u32> = (0..count as u32).collect();
        for i in (1..count).rev() {
            ranks.swap(i, rng.random_range(0..=i));
        }
        let found = clusters(&nodes, &ranks, Thinning::Degree(most), false, memory, rows);
        prop_assert_eq!(found, expected(&nodes, &ranks, false));
        let found = clusters(&nodes, &ranks, Thinning::Degree(u32::MAX), true, memory, rows);
        prop_assert_eq!(found, expected(&nodes, &ranks, true));
        // Without scopes.
        let nodes: BTreeMap<Key<1>, u32> = nodes.iter().map(|(key, _)| (*key, 0)).collect();
        let nodes: Vec<(Key<1>, u32)> = nodes.into_iter().collect();
        let ranks = &ranks[..nodes.len()];
        let found = clusters(&nodes, ranks, Thinning::Forest, true, memory, rows);
        prop_assert_eq!(found, expected(&nodes, ranks, true));
    }

    #[test]
    fn a_paged_array_is_an_array(
        length in 1..60_000u32,
        changes in prop::collection::vec((any::<u32>(), any::<u32>()), 0..2_000),
    ) {
        let store = MemStore::new();
        let mut files = &store;
        let mut paged = Paged::new(&mut files, length as usize, 0, |i| i ^ 5);
        let mut plain: Vec<u32> = (0..length).map(|i| i ^ 5).collect();
        for (at, number) in changes {
            let at = at % length;
            prop_assert_eq!(paged.get(&mut files, at), plain[at as usize]);
            paged.set(&mut files, at, number);
            plain[at as usize] = number;
        }
        for (at, number) in (0..).zip(plain) {
            prop_assert_eq!(paged.get(&mut files, at), number);
        }
    }
}

/// Dense nodes that represent others are many, and go to a file.
#[test]
fn many_crowded_nodes_need_little_memory() {
    let mut rng = StdRng::seed_from_u64(11);
    let nodes: Vec<(Key<1>, u32)> = (0..4_000)
        .flat_map(|i| {
            let key: u64 = rng.random();
            [([key], i % 2), ([key ^ 5], i % 3 / 2)]
        })
        .collect();
    let count = nodes.len() as u32;
    // The second of each two in front, or behind.
    let ranks: Vec<u32> = (0..count).map(|i| i * 4_999 % count).collect();
    let expected = expected(&nodes, &ranks, false);
    for memory in [0, 10_000, 1 << 20] {
        let store = MemStore::new();
        let mut files = &store;
        let mut of = Paged::new(&mut files, nodes.len(), memory, |_| UNRANKED);
        let mut star = Star::<&MemStore, 2>::new(memory);
        for (node, (key, scope)) in (0..).zip(&nodes) {
            let rank = ranks[node as usize];
            of.set(&mut files, node, rank);
            star.add_crowded(&mut files, rank, crowded_entry(node, key, *scope));
        }
        let nearness = Nearness {
            radius: RADIUS,
            scope_words: 0,
        };
        let mut centers = CrowdedCenters::new(memory, nearness);
        star.finish(&mut files, &mut of, &mut centers, &mut || ());
        let found: Vec<u32> = (0..count).map(|node| of.get(&mut files, node)).collect();
        assert_eq!(found, expected, "{memory} bytes");
    }
}

/// However many fingerprints are near each other, a thinned search gives a multiple of them, and
/// not all their pairs.
#[test]
fn a_ball_brings_no_quadratic_pairs() {
    let mut keys = BTreeSet::new();
    for a in 0..40 {
        for b in 0..=a {
            keys.insert([1u64 << a | 1 << b]);
        }
    }
    let model: Model<1> = (0..)
        .zip(&keys)
        .map(|(block, key)| (Tid { block, offset: 1 }, Some(*key)))
        .collect();
    let index = Index::build(BlockLayout::<1>::new(3, 4).unwrap(), &model, 1 << 20);
    let pairs = |thinning| {
        // One pass over the permutation as a whole.
        let plan = PairPlan::new(&index.layout, 4, 1.0);
        assert_eq!(plan.passes.len(), 1);
        let mut pairs = Pairs::thinned(index.layout.clone(), plan, 1 << 20, thinning);
        let (tree, mut count) = (index.tree(), 0);
        while (pairs.step(&tree, &mut |_| true, &mut Some, &mut |_| count += 1)).unwrap() {}
        count
    };
    let count = keys.len();
    assert!(count * (count - 1) / 2 > 300_000);
    assert!(pairs(Thinning::Degree(8)) <= 9 * count);
    assert_eq!(pairs(Thinning::Forest), count - 1);
}

/// Entries that are left out connect nothing: a forest of the others alone.
#[test]
fn a_forest_leaves_out_entries() {
    // Chains of three, and a ball of fingerprints with two rows each.
    let mut keys = Vec::new();
    for i in 1..400u64 {
        let start = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        keys.extend([0, 0b11, 0b1111].map(|bits| [start ^ bits]));
    }
    keys.extend((0..40).flat_map(|a| (0..a).flat_map(move |b| [[1u64 << a | 1 << b]; 2])));
    let model: Model<1> = (0..)
        .zip(&keys)
        .map(|(block, key)| (Tid { block, offset: 1 }, Some(*key)))
        .collect();
    let index = Index::build(BlockLayout::<1>::new(3, 4).unwrap(), &model, 1 << 20);
    // The middle of each chain, and one row of each fingerprint of the ball.
    let is_out = |row: Tid| match row.block {
        row if row < 3 * 399 => row % 3 == 1,
        row => row % 2 == 0,
    };
    for memory in [0, 1 << 20] {
        let plan = PairPlan::new(&index.layout, RADIUS, 1e4);
        let mut pairs = Pairs::thinned(index.layout.clone(), plan, memory, Thinning::Forest);
        let (tree, mut found) = (index.tree(), BTreeSet::new());
        let mut wanted = |row| !is_out(row);
        let mut emit = |pair: Pair<1>| {
            found.insert(pair.fingerprints.map(|key| key[0]));
        };
        while (pairs.step(&tree, &mut wanted, &mut Some, &mut emit)).unwrap() {}
        let ball = |pair: &&[u64; 2]| pair.iter().all(|key| key.count_ones() == 2);
        assert_eq!(
            found.iter().filter(ball).count(),
            found.len(),
            "chains are connected"
        );
        assert!(found.len() >= 40 * 39 / 2 - 1, "{} pairs", found.len());
    }
}

/// More runs than are merged at once.
#[test]
fn many_runs_are_merged_in_several_steps() {
    let store = MemStore::new();
    let mut files = &store;
    let mut rows = ExternalSort::<&MemStore, 1>::new(0);
    let mut rng = StdRng::seed_from_u64(7);
    let mut expected: Vec<u64> = (0..600_000).map(|_| rng.random()).collect();
    for key in &expected {
        rows.push(&mut files, [*key], Tid::MIN);
    }
    let mut as_added = Vec::new();
    rows.as_added(&mut files, |_, entry| as_added.push(entry.key[0]));
    assert_eq!(as_added, expected);
    rows.push(&mut files, [5], Tid::MIN);
    expected.push(5);
    expected.sort_unstable();
    // As often as wanted.
    for _ in 0..2 {
        let mut sorted = rows.sorted(&mut files, None);
        let mut found = Vec::new();
        while let Some(entry) = sorted.next(&mut files) {
            found.push(entry.key[0]);
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn a_long_chain_takes_no_long() {
    let store = MemStore::new();
    let mut files = &store;
    let nodes = 1_000_000;
    let mut ranks = Paged::new(&mut files, nodes as usize, 1 << 24, |node| node);
    let mut connected = Components::new(&mut files, nodes, 1 << 24);
    (1..nodes)
        .rev()
        .for_each(|node| connected.connect(&mut files, node - 1, node));
    connected.finish(&mut files, &mut ranks);
    assert!((0..nodes).all(|node| ranks.get(&mut files, node) == 0));
}
