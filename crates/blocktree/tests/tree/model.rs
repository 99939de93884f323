//! An index over the store in memory, with a model of its expected content and results.
use crate::mem_store::MemStore;
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::{Fill, build};
use neardup_blocktree::check::CheckStats;
use neardup_blocktree::full_scan::FullScan;
use neardup_blocktree::key::{EntryKey, Key, Tid, distance};
use neardup_blocktree::knn::KnnScan;
use neardup_blocktree::leaf_cache::LeafCache;
use neardup_blocktree::meta::{Meta, MetaRef};
use neardup_blocktree::page::PAGE_SIZE;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::sort::ExternalSort;
use neardup_blocktree::store::ReadPages;
use neardup_blocktree::tree::Tree;
use neardup_blocktree::vacuum::VacuumStats;
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Fill factors of the pages. Few inserts make a leaf full.
pub const FILL: Fill = Fill {
    leaf: 90,
    inner: 90,
};

pub type Model<const N: usize> = BTreeMap<Tid, Option<Key<N>>>;

pub struct Index<const N: usize> {
    pub store: MemStore,
    pub layout: Rc<BlockLayout<N>>,
    pub meta: Meta,
    /// Leaf cache of a backend that has not accessed the index since.
    pub leaves: LeafCache,
}

impl<const N: usize> Index<N> {
    pub fn build(layout: BlockLayout<N>, rows: &Model<N>, memory: usize) -> Self {
        let store = MemStore::new();
        let mut host = &store;
        let (mut with, mut without) = (ExternalSort::new(memory), ExternalSort::new(memory));
        for (&tid, fingerprint) in rows {
            match fingerprint {
                Some(fingerprint) => with.push(&mut host, *fingerprint, tid),
                None => without.push(&mut host, [0; N], tid),
            }
        }
        let meta = build(
            &mut host,
            &layout,
            layout.radius(),
            &mut with,
            &mut without,
            FILL,
        );
        Index {
            store,
            layout: Rc::new(layout),
            meta,
            leaves: LeafCache::default(),
        }
    }

    /// The tree, from its first root, as of somebody who has not looked since; but from the newest
    /// if that has been cut off.
    pub fn tree(&self) -> Tree<'_, MemStore, N> {
        let mut root = self.meta.root;
        if root.block >= self.store.blocks() {
            root = MetaRef::new(&self.store.read(0)).root().unwrap();
        }
        Tree::new(&self.store, root).with_leaf_cache(&self.leaves)
    }

    pub fn insert(&self, tree: &Tree<'_, MemStore, N>, tid: Tid, fingerprint: Option<Key<N>>) {
        let entry_keys = match fingerprint {
            Some(fingerprint) => (self.layout.permutations().iter().enumerate())
                .map(|(i, permutation)| EntryKey {
                    permutation: i as u16,
                    key: permutation.permute(&fingerprint),
                    tid,
                })
                .collect(),
            None => vec![EntryKey {
                permutation: self.layout.null_permutation(),
                key: [0; N],
                tid,
            }],
        };
        // Row by row, or entry by entry, as other code than the server's may.
        if tid.block.is_multiple_of(4) {
            for entry_key in &entry_keys {
                tree.insert(entry_key).unwrap();
            }
        } else {
            tree.insert_row(entry_keys.into_iter()).unwrap();
        }
    }

    /// Moves at most `moves` pages to the front, and cuts off the end.
    pub fn compact(&self, mut moves: u32) {
        let blocks = self.store.blocks();
        let resume = || {
            moves = moves.saturating_sub(1);
            moves > 0
        };
        let compacted = self.tree().compact(blocks, resume).unwrap();
        self.leaves.forget();
        self.store.truncate(compacted.end);
        self.tree().add_free_pages(&compacted.holes);
    }

    pub fn search(&self, query: &Key<N>, radius: u32, rows: f64) -> Vec<(Tid, Key<N>, u32)> {
        let plan = Rc::new(Plan::new(&self.layout, radius, rows));
        let mut scan = Scan::new(self.layout.clone(), plan, *query);
        let mut matches = Vec::new();
        let tree = self.tree();
        while scan.step(&tree, &mut matches).unwrap() {}
        let mut found: Vec<_> = matches
            .into_iter()
            .map(|m| (m.tid, m.fingerprint, m.distance))
            .collect();
        found.sort_unstable();
        found
    }

    /// The `limit` nearest rows, by (distance, tid).
    pub fn nearest(&self, query: &Key<N>, rows: f64, limit: usize) -> Vec<(u32, Tid)> {
        let plan_of = |radius| Rc::new(Plan::new(&self.layout, radius, rows));
        let first = plan_of(self.layout.radius());
        let scan = Scan::new(self.layout.clone(), first, *query);
        let mut nearest = KnnScan::new(scan, vec![], u32::MAX, 1 << 20);
        let tree = self.tree();
        (0..limit)
            .map_while(|_| nearest.next(&tree, plan_of, |_| true).unwrap())
            .map(|row| (row.distance, row.tid))
            .collect()
    }

    pub fn all_rows(&self) -> Vec<(Tid, Option<Key<N>>)> {
        let mut rows = Vec::new();
        let mut scan = FullScan::new(self.layout.clone(), None);
        let tree = self.tree();
        while scan.step(&tree, &mut rows).unwrap() {}
        let mut rows: Vec<_> = rows
            .into_iter()
            .map(|row| (row.tid, row.fingerprint))
            .collect();
        rows.sort_unstable();
        rows
    }

    /// Checks all invariants, and that only pages that were new in a crash are lost.
    pub fn check(&self) -> CheckStats {
        let tree = self.tree();
        let stats = tree.check(&self.layout, |_, _, _| ()).unwrap();
        let shared = tree.check_shared(&self.layout, |_, _, _| ()).unwrap();
        let permutations_agree = stats.permutations_agree;
        assert_eq!(
            CheckStats {
                permutations_agree,
                ..shared
            },
            stats
        );
        let known = 1 + stats.leaves + stats.inner_pages + tree.free_pages();
        let unused =
            (0..self.store.blocks()).filter(|&block| *self.store.read(block) == [0; PAGE_SIZE]);
        assert_eq!(
            known + unused.count() as u64,
            u64::from(self.store.blocks())
        );
        stats
    }

    /// Takes rows away.
    pub fn vacuum(&self, is_dead: impl FnMut(Tid) -> bool) -> VacuumStats {
        let (tree, null_permutation) = (self.tree(), self.layout.null_permutation());
        tree.vacuum(null_permutation, FILL, is_dead).unwrap()
    }

    /// Everything at once: the invariants, all rows, and searches of all kinds of plans.
    pub fn assert_equals(&self, model: &Model<N>, rng: &mut StdRng, searches: usize) {
        let stats = self.check();
        let with = model.values().flatten().count() as u64;
        assert_eq!(
            (stats.rows, stats.null_rows),
            (with, model.len() as u64 - with)
        );
        let all: Vec<_> = model.iter().map(|(tid, key)| (*tid, *key)).collect();
        assert_eq!(self.all_rows(), all);
        for (tid, key) in model.iter().take(3) {
            if let Some(key) = key {
                let key = self.layout.permutations()[0].permute(key);
                let entry_key = |offset| EntryKey {
                    permutation: 0,
                    key,
                    tid: Tid { offset, ..*tid },
                };
                assert!(self.tree().has_entry(&entry_key(tid.offset)).unwrap());
                assert!(!self.tree().has_entry(&entry_key(9_999)).unwrap());
            }
        }
        let fingerprints: Vec<Key<N>> = model.values().flatten().copied().collect();
        for _ in 0..searches {
            let query = some_key(rng, &fingerprints);
            let radius = match rng.random_range(0..4) {
                0 => self.layout.radius(),
                1 => rng.random_range(0..=self.layout.radius()),
                _ => rng.random_range(0..=20 * N as u32),
            };
            // The estimate of the number of rows chooses the plan, and no plan may be wrong.
            let rows = [1.0, 1e5, 1e7, 1e10][rng.random_range(0..4)];
            let expected: Vec<(Tid, Key<N>, u32)> = (model.iter())
                .filter_map(|(tid, fingerprint)| Some((*tid, (*fingerprint)?)))
                .map(|(tid, fingerprint)| (tid, fingerprint, distance(&fingerprint, &query, 0)))
                .filter(|&(_, _, distance)| distance <= radius)
                .collect();
            assert_eq!(
                self.search(&query, radius, rows),
                expected,
                "radius {radius}, rows {rows}"
            );
        }
    }
}

/// A key near one of those given, or one of few, or any.
pub fn some_key<const N: usize>(rng: &mut StdRng, known: &[Key<N>]) -> Key<N> {
    match rng.random_range(0..10) {
        0 => [rng.random_range(0..4); N],
        1..6 if !known.is_empty() => {
            let mut key = known[rng.random_range(0..known.len())];
            for _ in 0..rng.random_range(0..12) {
                key[rng.random_range(0..N)] ^= 1 << rng.random_range(0..64);
            }
            key
        }
        _ => std::array::from_fn(|_| rng.random()),
    }
}

pub fn random_rows<const N: usize>(rng: &mut StdRng, count: u32) -> Model<N> {
    let mut known: Vec<Key<N>> = Vec::new();
    (0..count)
        .map(|i| {
            let tid = Tid {
                block: i / 100,
                offset: (i % 100 + 1) as u16,
            };
            let key = some_key(rng, &known);
            known.push(key);
            (tid, rng.random_bool(0.95).then_some(key))
        })
        .collect()
}
