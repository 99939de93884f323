//! A backend follows copies of inner pages while others split, merge and reuse the pages.
use crate::model::{Index, Model};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::leaf_cache::LeafCache;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::tree::Tree;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::rc::Rc;

/// Wide keys, so that few rows make three levels.
const WORDS: usize = 16;

fn tid(block: u32) -> Tid {
    Tid { block, offset: 1 }
}

/// The rows near a value, by both permutations and by a tree with its own caches.
fn near_rows(index: &Index<WORDS>, leaves: &LeafCache, value: &Key<WORDS>) -> Vec<Tid> {
    let plan = Rc::new(Plan::new(&index.layout, 1, 1e6));
    let mut scan = Scan::new(index.layout.clone(), plan, *value);
    let tree = Tree::new(&index.store, index.meta.root).with_leaf_cache(leaves);
    let mut matches = Vec::new();
    while scan.step(&tree, &mut matches).unwrap() {}
    matches.iter().map(|found| found.tid).collect()
}

#[test]
fn what_others_have_changed_is_found_by_old_copies() {
    let mut rng = StdRng::seed_from_u64(11);
    let index = Index::build(BlockLayout::new(1, 2).unwrap(), &Model::new(), 1 << 20);
    let (reader, writer) = (LeafCache::default(), LeafCache::default());
    let mut rows: Vec<(Tid, Key<WORDS>)> = Vec::new();
    let mut next = 0;
    for round in 0..24 {
        // Another backend's rows split leaves and inner pages, or it takes most rows away.
        if round % 8 == 7 {
            rows.retain(|(tid, _)| tid.block % 16 == 0);
            index.vacuum(|tid| tid.block % 16 != 0);
        } else {
            for _ in 0..2_000 {
                let value = std::array::from_fn(|_| rng.random());
                index.insert(&index.tree(), tid(next), Some(value));
                rows.push((tid(next), value));
                next += 1;
            }
        }
        for _ in 0..300 {
            let (tid, value) = rows[rng.random_range(0..rows.len())];
            assert_eq!(near_rows(&index, &reader, &value), [tid], "round {round}");
        }
        // This backend's own inserts follow its copies too.
        let tree = Tree::new(&index.store, index.meta.root).with_leaf_cache(&writer);
        for _ in 0..200 {
            let value = std::array::from_fn(|_| rng.random());
            index.insert(&tree, tid(next), Some(value));
            rows.push((tid(next), value));
            next += 1;
        }
        index.check();
    }
    let model: Model<WORDS> = rows
        .iter()
        .map(|&(tid, value)| (tid, Some(value)))
        .collect();
    index.assert_equals(&model, &mut rng, 4);
    assert!(index.tree().root().level >= 1 && next > 40_000);
}
