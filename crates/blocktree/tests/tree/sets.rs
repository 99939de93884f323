//! Sets over the store in memory: all rows that share an element with a query are found, each once,
//! after builds, inserts and vacuums, and however little memory a search has.
use crate::mem_store::MemStore;
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::{Fill, build_sets};
use neardup_blocktree::full_scan::FullScan;
use neardup_blocktree::key::{EntryKey, Tid};
use neardup_blocktree::meta::Meta;
use neardup_blocktree::sets::{self, ELEMENT_PERMUTATION, ROW_PERMUTATION, SetQuery, SetScan};
use neardup_blocktree::sort::ExternalSort;
use neardup_blocktree::tree::Tree;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A row: its scope, which counts where keys have one, and its set.
type Row = (u64, Option<BTreeSet<u64>>);
type SetModel = BTreeMap<Tid, Row>;

const NULL_PERMUTATION: u16 = 2;

/// An index with keys of `N` words, the first of two being the scope.
struct SetIndex<const N: usize> {
    store: MemStore,
    meta: Meta,
}

/// The entries of a row.
fn entries<const N: usize>(tid: Tid, (scope, set): &Row) -> Vec<EntryKey<N>> {
    let scope = (N > 1).then_some(*scope);
    let Some(set) = set else {
        return vec![EntryKey::new(NULL_PERMUTATION, sets::key(0, scope), tid)];
    };
    let sum = sets::sum(set.iter().copied());
    let row = EntryKey::new(ROW_PERMUTATION, sets::key(sum, scope), tid);
    let elements =
        (set.iter()).map(|&it| EntryKey::new(ELEMENT_PERMUTATION, sets::key(it, scope), tid));
    [row].into_iter().chain(elements).collect()
}

impl<const N: usize> SetIndex<N> {
    fn build(model: &SetModel, memory: usize) -> Self {
        let store = MemStore::new();
        let mut host = &store;
        let mut sorts: [ExternalSort<&MemStore, N>; 3] =
            std::array::from_fn(|_| ExternalSort::new(memory));
        for (&tid, row) in model {
            for EntryKey {
                permutation,
                key,
                tid,
            } in entries(tid, row)
            {
                sorts[usize::from(permutation)].push(&mut host, key, tid);
            }
        }
        let [rows @ .., nulls] = &mut sorts;
        let rows: &mut [_] = rows;
        let meta = build_sets(&mut host, rows, nulls, Fill::default());
        SetIndex { store, meta }
    }

    fn tree(&self) -> Tree<'_, MemStore, N> {
        Tree::new(&self.store, self.meta.root)
    }

    fn search(&self, query: &SetQuery, memory: usize, repeats: bool) -> Vec<Tid> {
        // A search that was interrupted is begun again.
        let mut scan = SetScan::new(SetQuery::any_of(vec![1, 2, 3]), memory);
        let mut found = Vec::new();
        let tree = self.tree();
        scan.step(&tree, &mut found).unwrap();
        scan.restart(query.clone());
        if repeats {
            scan.allow_repeats();
        }
        found.clear();
        while scan.step(&tree, &mut found).unwrap() {}
        found
    }

    fn assert_query(&self, query: SetQuery, expected: &[Tid]) {
        assert_eq!(self.search(&query, 1 << 24, false), expected);
        // With room for few rows only, in several passes.
        assert_eq!(self.search(&query, 0, false), expected);
        let repeated: BTreeSet<Tid> = self.search(&query, 0, true).into_iter().collect();
        assert!(repeated.iter().eq(expected));
    }

    fn assert_finds(&self, model: &SetModel, rng: &mut StdRng) {
        let layout = Rc::new(BlockLayout::<N>::with_sets(N > 1));
        let mut seen = BTreeSet::new();
        let each = |permutation, tid, key: &[u64; N]| {
            assert!(seen.insert(EntryKey::new(permutation, *key, tid)));
        };
        let stats = self.tree().check(&layout, each).unwrap();
        assert!(stats.permutations_agree);
        let expected = model.iter().flat_map(|(&tid, row)| entries::<N>(tid, row));
        assert_eq!(seen, expected.collect());
        let with_set = model.values().filter(|(_, set)| set.is_some()).count();
        assert_eq!(stats.rows, with_set as u64);
        assert_eq!(stats.null_rows, (model.len() - with_set) as u64);
        let (mut all, mut scan) = (Vec::new(), FullScan::new(layout, None));
        while scan.step(&self.tree(), &mut all).unwrap() {}
        let mut all: Vec<Tid> = all.iter().map(|row| row.tid).collect();
        all.sort_unstable();
        assert!(all.iter().eq(model.keys()));
        for _ in 0..6 {
            self.assert_searches(model, rng);
        }
    }

    fn assert_searches(&self, model: &SetModel, rng: &mut StdRng) {
        let most = [1, 3, 40, 400][rng.random_range(0..4)];
        let wanted = some_set(rng, most);
        let scope = rng.random_range(0..4);
        let rows_where = |admits: &dyn Fn(&Row) -> bool| -> Vec<Tid> {
            let rows = model.iter().filter(|(_, row)| admits(row));
            rows.map(|(&tid, _)| tid).collect()
        };
        let overlaps = |set: &BTreeSet<u64>| !set.is_disjoint(&wanted);
        let query = SetQuery::any_of(wanted.iter().rev().chain(&wanted).copied().collect());
        let everywhere = rows_where(&|(_, set)| set.as_ref().is_some_and(overlaps));
        let within = rows_where(&|(of, set)| *of == scope && set.as_ref().is_some_and(overlaps));
        if N > 1 {
            self.assert_query(query.clone().in_scope(scope), &within);
            self.assert_query(query.in_all_scopes(), &everywhere);
        } else {
            self.assert_query(query, &everywhere);
        }
        let known = model.values().nth(rng.random_range(0..model.len().max(1)));
        let set = known.and_then(|(_, set)| set.clone()).unwrap_or_default();
        let query = SetQuery::with_sum(sets::sum(set.iter().copied()));
        let query = if N > 1 { query.in_all_scopes() } else { query };
        let same = rows_where(&|(_, other)| other.as_ref() == Some(&set));
        self.assert_query(query, &same);
    }
}

/// A set of up to so many elements: some that many rows have, small numbers, and any.
fn some_set(rng: &mut StdRng, most: usize) -> BTreeSet<u64> {
    (0..rng.random_range(0..=most))
        .map(|_| match rng.random_range(0..6) {
            0 => rng.random_range(0..3),
            1 => u64::MAX - rng.random_range(0..2),
            2..4 => rng.random_range(0..5000),
            _ => rng
                .random_range(0..5000_u64)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
        })
        .collect()
}

fn some_row(rng: &mut StdRng) -> Row {
    let set = (!rng.random_bool(0.05)).then(|| some_set(rng, 20));
    (rng.random_range(0..3), set)
}

fn tid(n: u32) -> Tid {
    Tid::new(n / 50, (n % 50 + 1) as u16)
}

fn random_operations<const N: usize>(seed: u64, start: u32) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut model: SetModel = (0..start).map(|n| (tid(n), some_row(&mut rng))).collect();
    let memory = if seed.is_multiple_of(2) { 0 } else { 1 << 22 };
    let index = SetIndex::<N>::build(&model, memory);
    index.assert_finds(&model, &mut rng);
    let tree = index.tree();
    let mut next = start;
    for _ in 0..3 {
        for _ in 0..700 {
            let row = some_row(&mut rng);
            for entry in entries(tid(next), &row) {
                tree.insert(&entry).unwrap();
            }
            model.insert(tid(next), row);
            next += 1;
        }
        index.assert_finds(&model, &mut rng);
        let share = [0.05, 0.9][rng.random_range(0..2)];
        let mut dead = Vec::new();
        model.retain(|tid, _| {
            let stays = !rng.random_bool(share);
            if !stays {
                dead.push(*tid);
            }
            stays
        });
        let is_dead = |tid| dead.binary_search(&tid).is_ok();
        let stats = tree
            .vacuum(NULL_PERMUTATION, Fill::default(), is_dead)
            .unwrap();
        assert_eq!(stats.rows, model.len() as u64);
        assert_eq!(stats.removed_rows, dead.len() as u64);
        index.assert_finds(&model, &mut rng);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn sets_are_found_after_random_operations(seed: u64, start in 0_u32..2000) {
        random_operations::<1>(seed, start);
        random_operations::<2>(seed, start);
    }
}

#[test]
fn a_row_that_lacks_an_element_or_has_one_more_is_noticed() {
    let row: Row = (0, Some(BTreeSet::from([0, 7, 1 << 63])));
    let model: SetModel = (0..1000).map(|n| (tid(n), row.clone())).collect();
    let layout = BlockLayout::<1>::with_sets(false);
    let agree = |index: &SetIndex<1>| index.tree().check(&layout, |_, _, _| ()).unwrap();
    let index = SetIndex::build(&model, 0);
    assert!(agree(&index).permutations_agree);
    for entry in entries(tid(1000), &row) {
        index.tree().insert(&entry).unwrap();
        assert_eq!(agree(&index).permutations_agree, entry.key == [1 << 63]);
    }
    index
        .tree()
        .insert(&EntryKey::new(ELEMENT_PERMUTATION, [0], tid(5000)))
        .unwrap();
    assert!(!agree(&index).permutations_agree);
}

#[test]
fn the_largest_bucket_is_that_of_an_element() {
    let row = |n: u64| (0, Some([n, 77].into_iter().collect()));
    let model: SetModel = (0..900)
        .map(|n| (tid(n), row(u64::from(n) + 1000)))
        .collect();
    let index = SetIndex::<1>::build(&model, 0);
    let info = index
        .tree()
        .measure(&BlockLayout::with_sets(false))
        .unwrap();
    let largest = info.largest_bucket.unwrap();
    assert_eq!(
        (largest.permutation, largest.entries, largest.bits),
        (ELEMENT_PERMUTATION, 900, [77])
    );
    assert_eq!((info.rows, info.entries), (900, 2700));
    // Of the entries in half of the searches one is met, and 900 in the others.
    assert!(
        (info.mean_candidates - 450.5).abs() < 1e-9,
        "{}",
        info.mean_candidates
    );
}

/// Rows in scope 0 have the common element 1, and every thousandth row also has 7.
#[test]
fn the_rarest_element_is_chosen() {
    fn check<const N: usize>(scope: Option<u64>) {
        let row = |n: u32| {
            let rare = n.is_multiple_of(1000).then_some(7);
            (0, Some(BTreeSet::from_iter([1, 2].into_iter().chain(rare))))
        };
        let model: SetModel = (0..5000).map(|n| (tid(n), row(n))).collect();
        let index = SetIndex::<N>::build(&model, 1 << 22);
        let rarest = |elements: &[u64]| sets::rarest(&index.tree(), elements, scope).unwrap();
        assert_eq!(rarest(&[1, 2, 7]), 7);
        assert_eq!(rarest(&[7, 1]), 7);
        // No row has it.
        assert_eq!(rarest(&[1, 2, 5, 7]), 5);
        assert_eq!(rarest(&[1]), 1);
        // No more are compared.
        let beyond: Vec<u64> = (0..sets::MAX_COMPARED_ELEMENTS as u64)
            .map(|_| 1)
            .chain([7])
            .collect();
        assert_eq!(rarest(&beyond), 1);
    }
    check::<1>(None);
    check::<2>(Some(0));
}
