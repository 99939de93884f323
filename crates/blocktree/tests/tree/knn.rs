//! Rows in the order of their distance, with memory for few of them at a time.
use crate::interleavings::Met;
use crate::model::{Index, Model, random_rows, some_key};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::knn::KnnScan;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::tree::Tree;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A search for the nearest rows.
struct Query<const N: usize> {
    /// Rows come by their distance to these, one after the other.
    order: Vec<Key<N>>,
    /// Rows are within the radius of this key, if that is not the first of the order.
    near: Option<Key<N>>,
    radius: u32,
    /// Rows whose block is a multiple of this are not admitted.
    without: u32,
}

type Found = (Vec<u32>, Tid);

impl<const N: usize> Query<N> {
    fn random(rng: &mut StdRng, known: &[Key<N>]) -> Self {
        let mut key = || some_key(rng, known);
        let order = [key(), key(), key()];
        let near = key();
        Query {
            order: order[..rng.random_range(1..=3)].to_vec(),
            near: rng.random_bool(0.4).then_some(near),
            radius: [3, 12, 26, u32::MAX][rng.random_range(0..4)],
            without: [2, 7, u32::MAX][rng.random_range(0..3)],
        }
    }

    fn admits(&self, tid: Tid) -> bool {
        !tid.block.is_multiple_of(self.without)
    }

    fn distances(&self, fingerprint: &Key<N>) -> Vec<u32> {
        (self.order.iter())
            .map(|key| distance(key, fingerprint, 0))
            .collect()
    }

    /// The rows of a model that the search is to find, in their order.
    fn expected(&self, model: &Model<N>) -> Vec<Found> {
        let center = self.near.unwrap_or(self.order[0]);
        let mut rows: Vec<Found> = (model.iter())
            .filter_map(|(tid, fingerprint)| Some((*tid, (*fingerprint)?)))
            .filter(|(tid, key)| distance(&center, key, 0) <= self.radius && self.admits(*tid))
            .map(|(tid, key)| (self.distances(&key), tid))
            .collect();
        rows.sort_unstable();
        rows
    }

    /// Rows that the search finds; `between` is called before each of its rows.
    fn found(
        &self,
        index: &Index<N>,
        rows: f64,
        memory: usize,
        mut between: impl FnMut(),
    ) -> Vec<Found> {
        let plan_of = |radius| Rc::new(Plan::new(&index.layout, radius, rows));
        let (order, limit) = (&self.order, self.radius);
        let then_by = order[1..].to_vec();
        let scan = |center, radius| Scan::new(index.layout.clone(), plan_of(radius), center);
        let mut nearest = match self.near {
            Some(near) => KnnScan::around(order[0], scan(near, limit), then_by, limit, memory),
            None => {
                let first = index.layout.radius().min(limit);
                KnnScan::new(scan(order[0], first), then_by, limit, memory)
            }
        };
        let tree = index.tree();
        std::iter::from_fn(|| {
            between();
            nearest
                .next(&tree, plan_of, |row| self.admits(row.tid))
                .unwrap()
        })
        .map(|row| (self.distances(&row.fingerprint), row.tid))
        .collect()
    }
}

fn known<const N: usize>(model: &Model<N>) -> Vec<Key<N>> {
    model.values().flatten().copied().collect()
}

fn small_memory_changes_nothing<const N: usize>(layout: BlockLayout<N>, seed: u64, rows: u32) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut model = random_rows::<N>(&mut rng, rows);
    let same = some_key(&mut rng, &known(&model));
    for i in 0..rng.random_range(0..400) {
        // Many rows at one distance.
        model.insert(
            Tid {
                block: 500_000 + i,
                offset: 1,
            },
            Some(same),
        );
    }
    let index = Index::build(layout, &model, 1 << 20);
    for _ in 0..4 {
        let query = Query::random(&mut rng, &known(&model));
        let expected = query.expected(&model);
        let memory = [0, 1 << 14, 1 << 24][rng.random_range(0..3)];
        let estimate = [1.0, 3e4, 1e8][rng.random_range(0..3)];
        let found = query.found(&index, estimate, memory, || ());
        let differing = found.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!((differing, found.len()), (None, expected.len()));
    }
}

proptest! {
    #![proptest_config(super::cases(8))]

    #[test]
    fn narrow_keys_come_in_order(seed: u64, rows in 0..3000u32) {
        small_memory_changes_nothing::<1>(BlockLayout::new(3, 4).unwrap(), seed, rows);
    }

    #[test]
    fn wide_keys_come_in_order(seed: u64, rows in 0..1500u32) {
        small_memory_changes_nothing::<4>(BlockLayout::new(2, 4).unwrap(), seed, rows);
    }
}

/// Passes over the index are apart in time: rows are inserted, pages split, rows taken away and
/// pages merged between them. Rows that stay come once and in order all the same.
#[test]
fn changes_between_passes_hide_and_repeat_no_row_that_stays() {
    let mut rng = StdRng::seed_from_u64(31);
    for round in 0..4 {
        let mut model = random_rows::<1>(&mut rng, 2_000);
        for i in 0..300 {
            model.insert(
                Tid {
                    block: 500_000 + i,
                    offset: 1,
                },
                Some([0x5555]),
            );
        }
        let index = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 20);
        let query = Query::random(&mut rng, &known(&model));
        // Rows of odd blocks are removed during the search.
        let stays = |tid: &Tid| tid.block.is_multiple_of(2) && tid.block < 1_000_000;
        let expected: Vec<Found> = (query.expected(&model).into_iter())
            .filter(|(_, tid)| stays(tid))
            .collect();
        let (mut step, mut next) = (0, 1_000_000);
        let between = || {
            step += 1;
            if step % 50 == 0 && next < 1_003_000 {
                let tree = index.tree();
                for _ in 0..200 {
                    let key = if next % 3 == 0 {
                        [0x5555]
                    } else {
                        [rng.random()]
                    };
                    index.insert(
                        &tree,
                        Tid {
                            block: next,
                            offset: 1,
                        },
                        Some(key),
                    );
                    next += 1;
                }
            }
            if step == 120 {
                index.vacuum(|tid| tid.block % 2 == 1);
            }
        };
        let mut found = query.found(&index, [1.0, 3e4, 1e8][round % 3], 0, between);
        assert!(
            found.windows(2).all(|pair| pair[0] < pair[1]),
            "not in order"
        );
        found.retain(|(_, tid)| stays(tid));
        assert!(found == expected, "{} of {}", found.len(), expected.len());
    }
}

/// Where nothing is near, a permutation is read whole: once, however far all rows are, and once
/// more if the distances on its first leaf lead to expect nearer rows than there are.
#[test]
fn a_permutation_is_read_whole_once_or_twice_for_what_is_far() {
    type Draw = fn(&mut StdRng) -> u64;
    let (mut rng, rows) = (StdRng::seed_from_u64(5), 60_000);
    let query = [0];
    let draws: [(Draw, f64); 3] = [
        (|rng| rng.random(), 1.0),
        // At least 56 bits.
        (|rng| !(rng.random::<u64>() & 0xf0f0), 1.0),
        // 30 or 34 bits.
        (
            |rng| {
                let (ones, mut key) = (if rng.random() { 30 } else { 34 }, 0u64);
                while key.count_ones() < ones {
                    key |= 1 << rng.random_range(0..64);
                }
                key
            },
            2.0,
        ),
    ];
    for (draw, times) in draws {
        let model: Model<1> = (0..rows)
            .map(|block| (Tid { block, offset: 1 }, Some([draw(&mut rng)])))
            .collect();
        let index = Index::build(BlockLayout::new(3, 4).unwrap(), &model, 1 << 20);
        let reads = Cell::new(0);
        let met = Met {
            store: &index.store,
            between: RefCell::new(Some(Box::new(|_| reads.set(reads.get() + 1)))),
        };
        let mut expected: Vec<u32> = (model.values().flatten())
            .map(|key| distance(key, &query, 0))
            .collect();
        expected.sort_unstable();
        let plan_of = |radius| Rc::new(Plan::new(&index.layout, radius, f64::from(rows)));
        let scan = Scan::new(index.layout.clone(), plan_of(3), query);
        let mut nearest = KnnScan::new(scan, vec![], u32::MAX, 1 << 20);
        let tree = Tree::<_, 1>::new(&met, index.meta.root);
        let found: Vec<u32> = (0..20)
            .map(|_| {
                nearest
                    .next(&tree, plan_of, |_| true)
                    .unwrap()
                    .unwrap()
                    .distance
            })
            .collect();
        assert_eq!(found, expected[..20]);
        // The rings before cost something too. Leaves can be fuller than a plan expects.
        let permutations = f64::from(reads.get()) / plan_of(64).permutation_leaves;
        assert!(
            (0.75 * times..times + 1.0).contains(&permutations),
            "{permutations} permutations read"
        );
    }
}
