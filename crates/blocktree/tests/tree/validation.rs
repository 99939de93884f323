//! Searches that an insertion validates: visibility among several writers.
use crate::model::{Index, Model};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::key::{EntryKey, Key, Tid};
use neardup_blocktree::leaf_cache::LeafCache;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::tree::Tree;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::rc::Rc;

const RADIUS: u32 = 3;

fn tid(block: u32) -> Tid {
    Tid { block, offset: 1 }
}

/// Random values, whose first blocks are those of `crowded`, if it has any, so that they share
/// leaves with it.
fn values(rng: &mut StdRng, crowded: Option<u64>) -> u64 {
    match crowded {
        Some(value) => value ^ rng.random::<u64>() >> 20,
        None => rng.random(),
    }
}

/// A backend that adds rows as the server does for a constraint.
struct Backend {
    leaves: LeafCache,
    /// Second searches that were left out.
    left_out: u32,
}

impl Backend {
    fn new() -> Self {
        Backend {
            leaves: LeafCache::for_constraint(),
            left_out: 0,
        }
    }

    fn search<const N: usize>(&self, index: &Index<N>, row: (Tid, Key<N>)) -> Vec<Tid> {
        let plan = Rc::new(Plan::new(&index.layout, RADIUS, 1e6));
        let mut scan = Scan::new(index.layout.clone(), plan, row.1);
        let tree = Tree::new(&index.store, index.meta.root).with_leaf_cache(&self.leaves);
        let mut matches = Vec::new();
        while scan.step(&tree, &mut matches).unwrap() {}
        let others = matches.iter().filter(|found| found.tid != row.0);
        others.map(|found| found.tid).collect()
    }

    fn add<const N: usize>(&self, index: &Index<N>, (tid, value): (Tid, Key<N>)) {
        let tree = Tree::new(&index.store, index.meta.root).with_leaf_cache(&self.leaves);
        let entry_keys = (0..)
            .zip(index.layout.permutations())
            .map(|(permutation, permuted)| {
                let key = permuted.permute(&value);
                EntryKey {
                    permutation,
                    key,
                    tid,
                }
            });
        tree.insert_row(entry_keys).unwrap();
    }

    /// The second search: the rows near a row that has just been added.
    fn check<const N: usize>(&mut self, index: &Index<N>, row: (Tid, Key<N>)) -> Vec<Tid> {
        let lone_row = self.leaves.take_lone_row();
        if lone_row.is_some_and(|lone_row| lone_row.is_alone_within(&row.1, RADIUS)) {
            self.left_out += 1;
            return Vec::new();
        }
        self.search(index, row)
    }
}

fn index(rng: &mut StdRng, rows: u32, radius: u32, blocks: u32) -> Index<1> {
    let model: Model<1> = (0..rows)
        .map(|i| (tid(i), Some([values(rng, None)])))
        .collect();
    Index::build(BlockLayout::new(radius, blocks).unwrap(), &model, 1 << 20)
}

/// A step of a backend: its first search, the insertion, the second search.
type Steps = Vec<(usize, u32)>;

/// All orders of the three steps of two backends, and of one step of a third.
fn orders() -> Vec<Steps> {
    fn add(done: &Steps, left: [u32; 3], orders: &mut Vec<Steps>) {
        if left == [0; 3] {
            return orders.push(done.clone());
        }
        for backend in (0..3).filter(|&backend| left[backend] > 0) {
            let mut left = left;
            left[backend] -= 1;
            let all = [3, 3, 1][backend];
            let mut done = done.clone();
            done.push((backend, all - left[backend]));
            add(&done, left, orders);
        }
    }
    let mut orders = Vec::new();
    add(&Vec::new(), [3, 3, 1], &mut orders);
    orders
}

/// Two writers of near rows, in each order of their steps, while a third adds a row that may share
/// leaves with them: one of the two sees the other, in its first search or in its second.
#[test]
fn of_two_writers_of_near_rows_one_sees_the_other() {
    let mut rng = StdRng::seed_from_u64(16);
    let (mut left_out, mut searched) = (0, 0);
    let index = index(&mut rng, 30_000, 3, 4);
    let mut next = 1_000_000;
    for order in orders() {
        for bits in 0..=RADIUS {
            let value = rng.random::<u64>();
            let flips = (0..bits).fold(0, |flips, _| flips | 1u64 << rng.random_range(0..64));
            let third = values(&mut rng, Some(value));
            let rows = [[value], [value ^ flips], [third]].map(|value| {
                next += 1;
                (tid(next), value)
            });
            let mut backends = [(); 3].map(|()| Backend::new());
            let mut seen = [false; 2];
            for &(who, step) in &order {
                let (backend, row) = (&mut backends[who], rows[who]);
                let found = match (who, step) {
                    (2, _) | (_, 2) => {
                        backend.add(&index, row);
                        continue;
                    }
                    (_, 1) => backend.search(&index, row),
                    _ => backend.check(&index, row),
                };
                seen[who] |= found.contains(&rows[1 - who].0);
            }
            assert!(seen[0] || seen[1], "{rows:?} {order:?}");
            let both: u32 = backends[..2].iter().map(|backend| backend.left_out).sum();
            left_out += both;
            searched += 2 - both;
        }
    }
    assert!(
        left_out > 200 && searched > 200,
        "{left_out} left out, {searched} not"
    );
}

/// Alone a writer needs one search, but where leaves are split, or a prefix lies on two leaves.
#[test]
fn a_writer_that_is_alone_searches_once() {
    let mut rng = StdRng::seed_from_u64(17);
    let index = index(&mut rng, 100_000, 3, 4);
    let mut backend = Backend::new();
    for i in 0..1_000 {
        let row = (tid(1_000_000 + i), [values(&mut rng, None)]);
        assert_eq!(backend.search(&index, row), []);
        backend.add(&index, row);
        assert_eq!(backend.check(&index, row), []);
    }
    assert!(backend.left_out > 800, "{} of 1,000", backend.left_out);
}

/// The word of a search is true of its own value, its own radius and the next insertion alone.
#[test]
fn a_search_stands_for_nothing_but_the_next_row() {
    let mut rng = StdRng::seed_from_u64(18);
    let index = index(&mut rng, 30_000, 3, 4);
    let row = |i: u32| {
        (
            tid(1_000_000 + i),
            [0x9e37_79b9_7f4a_7c15u64.wrapping_mul(u64::from(i))],
        )
    };
    let backend = Backend::new();
    // Another row is added than the one that was searched for.
    backend.search(&index, row(1));
    backend.add(&index, row(2));
    assert!(backend.leaves.take_lone_row().is_none());
    // A row is added without a search, after one that was.
    backend.search(&index, row(3));
    backend.add(&index, row(3));
    backend.add(&index, row(4));
    assert!(backend.leaves.take_lone_row().is_none());
    // The second search is about another value, or wider.
    backend.search(&index, row(5));
    backend.add(&index, row(5));
    let lone_row = backend.leaves.take_lone_row().expect("nothing near it");
    assert!(lone_row.is_alone_within(&row(5).1, RADIUS));
    assert!(!lone_row.is_alone_within(&row(6).1, RADIUS));
    assert!(!lone_row.is_alone_within(&row(5).1, RADIUS + 1));
    assert!(backend.leaves.take_lone_row().is_none(), "taken once");
    // A search that finds an entry, even an invisible one.
    backend.search(&index, row(5));
    backend.add(&index, row(5));
    assert!(backend.leaves.take_lone_row().is_none());
    // Pages are about to be moved.
    backend.search(&index, row(7));
    backend.leaves.forget();
    backend.add(&index, row(7));
    assert!(backend.leaves.take_lone_row().is_none());
}

/// Entries of more permutations than one log record holds are not added in one moment.
#[test]
fn rows_of_many_permutations_are_searched_twice() {
    let mut rng = StdRng::seed_from_u64(19);
    let index = index(&mut rng, 30_000, 3, 5);
    assert!(index.layout.permutations().len() > 4);
    let mut backend = Backend::new();
    for i in 0..100 {
        let row = (tid(1_000_000 + i), [values(&mut rng, None)]);
        backend.search(&index, row);
        backend.add(&index, row);
        assert_eq!(backend.check(&index, row), []);
    }
    assert_eq!(backend.left_out, 0);
}
