//! Rows of a scope stand together: searches in one scope, and the leaves that it takes.
use crate::model::{Index, Model, random_rows, some_key};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::full_scan::FullScan;
use neardup_blocktree::key::{EntryKey, Key, Tid, distance};
use neardup_blocktree::leaf::usual_count;
use neardup_blocktree::level_cursor::LevelCursor;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::store::ReadPages;
use neardup_blocktree::tree::Tree;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::rc::Rc;

#[test]
fn a_scope_keeps_its_rows_to_itself() {
    let mut rng = StdRng::seed_from_u64(9);
    // One scope of half the rows, some of several leaves, many of a few rows, at both ends.
    let scopes = [0, 1, 77, u64::MAX - 1, u64::MAX];
    let scope_of = |i: u32| match i % 4 {
        0 | 1 => 77,
        2 => scopes[i as usize / 4 % 5],
        _ => u64::from(i) << 32,
    };
    let model: Model<3> = random_rows::<3>(&mut rng, 8_000)
        .into_iter()
        .enumerate()
        .map(|(i, (tid, key))| (tid, key.map(|key| [scope_of(i as u32), key[1], key[2]])))
        .collect();
    let layout = || BlockLayout::in_scope(true, 2, 4).unwrap();
    let built: Model<3> = model
        .iter()
        .take(3_000)
        .map(|(tid, key)| (*tid, *key))
        .collect();
    let index = Index::build(layout(), &built, 1 << 20);
    assert_scopes_hold(&index, &built, &scopes, &mut rng);
    let tree = index.tree();
    (model.iter().skip(3_000)).for_each(|(tid, key)| index.insert(&tree, *tid, *key));
    assert_scopes_hold(&index, &model, &scopes, &mut rng);
}

fn leaves_of_scope<S: ReadPages>(tree: &Tree<'_, S, 3>, scope: u64) -> f64 {
    let from = EntryKey::before_key(0, [scope, 0, 0]);
    let to = EntryKey::after_key(0, [scope, u64::MAX, u64::MAX]);
    tree.leaves_between(&from, &to).unwrap()
}

#[test]
fn the_leaves_between_two_positions_are_counted() {
    let mut rng = StdRng::seed_from_u64(10);
    let model = random_rows::<16>(&mut rng, 9_000);
    let index = Index::build(BlockLayout::<16>::new(1, 2).unwrap(), &model, 1 << 24);
    let tree = index.tree();
    for i in 0..6_000 {
        let key = some_key(&mut rng, &[]);
        index.insert(
            &tree,
            Tid {
                block: 9_000_000 + i,
                offset: 1,
            },
            Some(key),
        );
    }
    // Keeping the root of the build: its page has been split since.
    let old = index.tree();
    // Where each leaf of a permutation begins.
    let mut starts = vec![Vec::new(); 2];
    for (permutation, starts) in starts.iter_mut().enumerate() {
        let mut cursor = LevelCursor::<16>::new(permutation as u16);
        while let Some((_, from)) = cursor.step(&tree, |block| index.store.read(block)).unwrap() {
            starts.push(from);
        }
        assert!(starts.len() > 300);
    }
    let (mut exact, mut many) = (0, 0);
    for _ in 0..3_000 {
        let permutation = rng.random_range(0..2);
        let starts = &starts[usize::from(permutation)];
        let mut ends: [Key<16>; 2] = [some_key(&mut rng, &[]), some_key(&mut rng, &[])];
        if rng.random_bool(0.5) {
            // Near each other.
            ends[1] = ends[0];
            ends[1][0] ^= rng.random::<u64>() >> rng.random_range(1..12);
        }
        ends.sort_unstable();
        let (from, to) = (
            EntryKey::before_key(permutation, ends[0]),
            EntryKey::after_key(permutation, ends[1]),
        );
        let at = |entry_key: &EntryKey<16>| starts.partition_point(|start| start <= entry_key);
        let expected = (at(&to) - at(&from) + 1) as f64;
        for tree in [&tree, &old] {
            let leaves = tree.leaves_between(&from, &to).unwrap();
            if leaves < 40.0 {
                // Below one inner page; an old root may have a split one to its right.
                assert!(leaves == expected || leaves < expected && expected > 10.0);
                exact += u32::from(leaves == expected);
            } else {
                assert!(expected > 1.0, "{leaves} {expected}");
                many += 1;
            }
        }
    }
    assert!(exact > 1_000 && many > 1_000, "{exact} {many}");
}

/// Searches in one scope, in all of them, and for all rows of one.
fn assert_scopes_hold(index: &Index<3>, rows: &Model<3>, scopes: &[u64], rng: &mut StdRng) {
    index.check();
    let tree = index.tree();
    let known: Vec<Key<3>> = rows.values().flatten().copied().collect();
    for _ in 0..300 {
        let mut query = some_key(rng, &known);
        query[0] = match rng.random_range(0..3) {
            0 => scopes[rng.random_range(0..scopes.len())],
            1 => known[rng.random_range(0..known.len())][0],
            _ => rng.random(),
        };
        let radius = [0, 2, rng.random_range(0..40)][rng.random_range(0..3)];
        let within = |any_scope: bool| -> Vec<(Tid, Key<3>, u32)> {
            (rows.iter())
                .filter_map(|(tid, key)| Some((*tid, (*key)?)))
                .filter(|(_, key)| any_scope || key[0] == query[0])
                .map(|(tid, key)| (tid, key, distance(&key, &query, 1)))
                .filter(|&(_, _, distance)| distance <= radius)
                .collect()
        };
        // As many rows as the tree says that the scope has, and as few and many as it never would.
        let leaves = leaves_of_scope(&tree, query[0]);
        for estimate in [leaves * usual_count(3), 1.0, 1e5, 1e9] {
            assert_eq!(index.search(&query, radius, estimate), within(false));
        }

        let whole = Rc::new(Plan::new(&index.layout, index.layout.bits(), 1.0));
        let mut scan = Scan::new(index.layout.clone(), whole, query).in_all_scopes();
        scan.narrow(radius);
        let mut found = Vec::new();
        while scan.step(&tree, &mut found).unwrap() {}
        let mut found: Vec<_> = (found.into_iter())
            .map(|row| (row.tid, row.fingerprint, row.distance))
            .collect();
        found.sort_unstable();
        assert_eq!(found, within(true));

        let mut all = Vec::new();
        let mut scan = FullScan::new(index.layout.clone(), Some(query[0]));
        while scan.step(&tree, &mut all).unwrap() {}
        let mut all: Vec<Tid> = all.into_iter().map(|row| row.tid).collect();
        all.sort_unstable();
        // Rows without a fingerprint have scope 0 in this test.
        let expected: Vec<Tid> = (rows.iter())
            .filter(|(_, key)| key.map_or(0, |key| key[0]) == query[0])
            .map(|(tid, _)| *tid)
            .collect();
        assert_eq!(all, expected);
    }
}
