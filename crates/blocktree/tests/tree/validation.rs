//! Tests of the check, by an insertion, that an earlier search which found nothing is still valid.
//! A constraint searches for rows near a new row, adds the row, and searches again. It skips the
//! second search if the check succeeds. Of two writers of near rows, at least one must find the
//! other's row.
use crate::interleavings::Met;
use crate::mem_store::holds_no_lock;
use crate::model::{Index, Model};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::key::{Block, EntryKey, Key, Tid};
use neardup_blocktree::leaf_cache::LeafCache;
use neardup_blocktree::meta::Root;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::store::{PrefetchPages, ReadPages, WritePages};
use neardup_blocktree::tree::Tree;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Barrier;

/// Index that guarantees to find rows up to `guaranteed` bits apart by `blocks` blocks, and the
/// radius of its searches in bits.
#[derive(Clone, Copy, Debug)]
struct Case {
    guaranteed: u32,
    blocks: u32,
    radius: u32,
}

/// Four permutations, of which a search looks up one prefix or several prefixes each, and seven
/// permutations, whose entries need two log records.
const CASES: [Case; 3] = [
    Case {
        guaranteed: 3,
        blocks: 4,
        radius: 3,
    },
    Case {
        guaranteed: 3,
        blocks: 4,
        radius: 6,
    },
    Case {
        guaranteed: 6,
        blocks: 7,
        radius: 6,
    },
];

fn tid(block: u32) -> Tid {
    Tid { block, offset: 1 }
}

/// Returns a random value. If `crowded` is given, both have the same first 20 bits, so that they
/// share leaves.
fn values(rng: &mut StdRng, crowded: Option<u64>) -> u64 {
    match crowded {
        Some(value) => value ^ rng.random::<u64>() >> 20,
        None => rng.random(),
    }
}

/// A backend that adds rows as the server does for a constraint.
struct Backend {
    layout: Rc<BlockLayout<1>>,
    root: Root,
    radius: u32,
    leaves: LeafCache,
    /// Number of second searches that were skipped.
    left_out: u32,
}

impl Backend {
    fn new(index: &Index<1>, case: Case) -> Self {
        Self::with_root(index.meta.root, case)
    }

    fn with_root(root: Root, case: Case) -> Self {
        let layout = BlockLayout::new(case.guaranteed, case.blocks).unwrap();
        Backend {
            layout: Rc::new(layout),
            root,
            radius: case.radius,
            leaves: LeafCache::for_constraint(),
            left_out: 0,
        }
    }

    fn search<S: ReadPages + PrefetchPages>(&self, store: &S, row: (Tid, Key<1>)) -> Vec<Tid> {
        let plan = Rc::new(Plan::new(&self.layout, self.radius, 1e6));
        assert!(!plan.is_whole());
        let mut scan = Scan::new(self.layout.clone(), plan, row.1);
        let tree = Tree::new(store, self.root).with_leaf_cache(&self.leaves);
        let mut matches = Vec::new();
        while scan.step(&tree, &mut matches).unwrap() {}
        let others = matches.iter().filter(|found| found.tid != row.0);
        others.map(|found| found.tid).collect()
    }

    fn add<S: WritePages + PrefetchPages>(&self, store: &S, (tid, value): (Tid, Key<1>)) {
        let tree = Tree::new(store, self.root).with_leaf_cache(&self.leaves);
        let entry_keys = (0..)
            .zip(self.layout.permutations())
            .map(|(permutation, permuted)| {
                EntryKey::new(permutation, permuted.permute(&value), tid)
            });
        tree.insert_row(entry_keys).unwrap();
    }

    /// Second search: returns the other rows near a row that has just been added. Skips the search
    /// if the insertion has proved that there are none.
    fn check<S: ReadPages + PrefetchPages>(&mut self, store: &S, row: (Tid, Key<1>)) -> Vec<Tid> {
        let lone_row = self.leaves.take_lone_row();
        if lone_row.is_some_and(|lone_row| lone_row.is_alone_within(&row.1, self.radius)) {
            self.left_out += 1;
            return Vec::new();
        }
        self.search(store, row)
    }

    /// Runs all three steps. Returns the other rows that the two searches found.
    fn write<S: WritePages + PrefetchPages>(&mut self, store: &S, row: (Tid, Key<1>)) -> Vec<Tid> {
        let mut found = self.search(store, row);
        self.add(store, row);
        found.extend(self.check(store, row));
        found
    }
}

fn index(rng: &mut StdRng, rows: u32, case: Case) -> Index<1> {
    let model: Model<1> = (0..rows)
        .map(|i| (tid(i), Some([values(rng, None)])))
        .collect();
    let layout = BlockLayout::new(case.guaranteed, case.blocks).unwrap();
    Index::build(layout, &model, 1 << 20)
}

/// Returns a random value, and another value within `radius` bits of it.
fn near_pair(rng: &mut StdRng, radius: u32) -> [u64; 2] {
    let value = rng.random::<u64>();
    let bits = rng.random_range(0..=radius);
    let flips = (0..bits).fold(0, |flips, _| flips | 1u64 << rng.random_range(0..64));
    [value, value ^ flips]
}

/// Order of steps. Each element has the number of a backend, and the number of its step: 1 for the
/// first search, 2 for the insertion, 3 for the second search. The third backend only inserts.
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

/// Runs the steps of two writers of near rows in each possible order, and among them the insertion
/// of a third row that may share leaves with them. At least one of the two writers finds the
/// other's row, in its first search or in its second.
#[test]
fn of_two_writers_of_near_rows_one_sees_the_other() {
    for case in CASES {
        let mut rng = StdRng::seed_from_u64(16);
        let (mut left_out, mut searched) = (0, 0);
        let index = index(&mut rng, 30_000, case);
        let store = &index.store;
        let mut next = 1_000_000;
        for order in (0..4).flat_map(|_| orders()) {
            let [value, near] = near_pair(&mut rng, case.radius);
            let third = values(&mut rng, Some(value));
            let rows = [[value], [near], [third]].map(|value| {
                next += 1;
                (tid(next), value)
            });
            let mut backends = [(); 3].map(|()| Backend::new(&index, case));
            let mut seen = [false; 2];
            for &(who, step) in &order {
                let (backend, row) = (&mut backends[who], rows[who]);
                let found = match (who, step) {
                    (2, _) | (_, 2) => {
                        backend.add(store, row);
                        continue;
                    }
                    (_, 1) => backend.search(store, row),
                    _ => backend.check(store, row),
                };
                seen[who] |= found.contains(&rows[1 - who].0);
            }
            assert!(seen[0] || seen[1], "{case:?} {rows:?} {order:?}");
            let both: u32 = backends[..2].iter().map(|backend| backend.left_out).sum();
            left_out += both;
            searched += 2 - both;
        }
        assert!(
            left_out > 100 && searched > 100,
            "{case:?}: {left_out} left out, {searched} not"
        );
    }
}

/// Between two page reads of a writer, another backend runs all three steps for a near row. At
/// least one of the two finds the other's row.
#[test]
fn a_writer_sees_a_near_row_that_comes_between_two_reads() {
    for case in CASES {
        let mut rng = StdRng::seed_from_u64(20);
        let index = index(&mut rng, 30_000, case);
        let (mut last_reads, mut missed_turns) = (1, 0);
        for i in 0..1_000 {
            let values = near_pair(&mut rng, case.radius);
            let rows = [0, 1].map(|n| (tid(1_000_000 + 2 * i + n), [values[n as usize]]));
            let [mut one, mut other] = [(); 2].map(|()| Backend::new(&index, case));
            let (turn, reads) = (rng.random_range(1..=last_reads), Cell::new(0));
            let found_by_other = RefCell::new(None);
            let mut come = |_: Block| {
                reads.set(reads.get() + 1);
                if reads.get() >= turn && found_by_other.borrow().is_none() && holds_no_lock() {
                    found_by_other.replace(Some(other.write(&index.store, rows[1])));
                }
            };
            let met = Met {
                store: &index.store,
                between: RefCell::new(Some(Box::new(&mut come))),
            };
            let found = one.write(&met, rows[0]);
            drop(met);
            let is_seen = found.contains(&rows[1].0);
            last_reads = reads.get();
            match found_by_other.take() {
                None => missed_turns += 1,
                Some(other) => {
                    assert!(
                        is_seen || other.contains(&rows[0].0),
                        "{case:?} {rows:?} {turn}"
                    );
                }
            }
        }
        assert!(missed_turns < 500, "{case:?}: {missed_turns}");
    }
}

/// Two threads write near rows at the same time. At least one of them finds the other's row.
#[test]
fn of_two_threads_that_write_near_rows_one_sees_the_other() {
    for case in CASES {
        let mut rng = StdRng::seed_from_u64(21);
        let index = index(&mut rng, 30_000, case);
        let pairs: Vec<[u64; 2]> = (0..1_000)
            .map(|_| near_pair(&mut rng, case.radius))
            .collect();
        let (store, root, pairs) = (&index.store, index.meta.root, &pairs);
        let barrier = &Barrier::new(2);
        let writer = |who: u32| {
            move || -> Vec<bool> {
                let mut backend = Backend::with_root(root, case);
                let write = |(i, values): (u32, &[u64; 2])| {
                    let row_of = |who: u32| tid(1_000_000 + 2 * i + who);
                    barrier.wait();
                    let row = (row_of(who), [values[who as usize]]);
                    backend.write(store, row).contains(&row_of(1 - who))
                };
                (0..).zip(pairs).map(write).collect()
            }
        };
        let seen = std::thread::scope(|scope| {
            let threads = [0, 1].map(|who| scope.spawn(writer(who)));
            threads.map(|thread| thread.join().unwrap())
        });
        for (i, (a, b)) in seen[0].iter().zip(&seen[1]).enumerate() {
            assert!(a | b, "{case:?}: pair {i}");
        }
    }
}

/// Without other writers, the second search is usually skipped, also if the keys with a wanted
/// prefix fill several leaves. The exceptions are rows whose insertion splits a leaf.
#[test]
fn a_writer_that_is_alone_searches_once() {
    for case in CASES {
        for rows in [30_000, 300_000] {
            let mut rng = StdRng::seed_from_u64(17);
            let index = index(&mut rng, rows, case);
            let mut backend = Backend::new(&index, case);
            for i in 0..1_000 {
                let row = (tid(1_000_000 + i), [values(&mut rng, None)]);
                assert_eq!(backend.write(&index.store, row), []);
            }
            let left_out = backend.left_out;
            assert!(left_out > 700, "{case:?}, {rows} rows: {left_out} of 1,000");
        }
    }
}

/// A search proves something only for the value that it looked for, for its own radius or a smaller
/// one, and for the next insertion.
#[test]
fn a_search_stands_for_nothing_but_the_next_row() {
    for case in CASES {
        let mut rng = StdRng::seed_from_u64(18);
        let index = index(&mut rng, 30_000, case);
        let (store, radius) = (&index.store, case.radius);
        let row = |i: u32| {
            (
                tid(1_000_000 + i),
                [0x9e37_79b9_7f4a_7c15u64.wrapping_mul(u64::from(i))],
            )
        };
        let backend = Backend::new(&index, case);
        // The row that is added is not the one that was searched for.
        backend.search(store, row(1));
        backend.add(store, row(2));
        assert!(backend.leaves.take_lone_row().is_none());
        // Two rows are added after a search for the first of them.
        backend.search(store, row(3));
        backend.add(store, row(3));
        backend.add(store, row(4));
        assert!(backend.leaves.take_lone_row().is_none());
        // The second search is for another value, or has a larger radius.
        backend.search(store, row(5));
        backend.add(store, row(5));
        let lone_row = backend.leaves.take_lone_row().expect("nothing near it");
        assert!(lone_row.is_alone_within(&row(5).1, radius));
        assert!(!lone_row.is_alone_within(&row(6).1, radius));
        assert!(!lone_row.is_alone_within(&row(5).1, radius + 1));
        assert!(backend.leaves.take_lone_row().is_none(), "taken once");
        // The search finds an entry of this value, which was added before.
        backend.search(store, row(5));
        backend.add(store, row(5));
        assert!(backend.leaves.take_lone_row().is_none());
        // The cache is emptied between the search and the insertion, as before pages are moved.
        backend.search(store, row(7));
        backend.leaves.forget();
        backend.add(store, row(7));
        assert!(backend.leaves.take_lone_row().is_none());
    }
}
