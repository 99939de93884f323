//! Statistics of a tree against a count of its rows.
use crate::model::{Index, Model, random_rows, some_key};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::Fill;
use neardup_blocktree::info::{Info, LargestBucket};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::leaf::LeafRef;
use neardup_blocktree::page::{Kind, PageRef};
use neardup_blocktree::store::ReadPages;
use neardup_blocktree::tree::Tree;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

impl<const N: usize> Index<N> {
    fn measure(&self) -> Info<N> {
        self.tree().measure(&self.layout).unwrap()
    }
}

/// Counts rows by what their fingerprints have under each permutation's mask, without the tree.
fn expected<const N: usize>(
    layout: &BlockLayout<N>,
    rows: &Model<N>,
) -> (f64, Option<(u16, u64, Key<N>, Tid)>) {
    let mut candidates = 0.0;
    let mut largest_bucket: Option<(u16, u64, Key<N>, Tid)> = None;
    for (number, permutation) in layout.permutations().iter().enumerate() {
        let mut mask = permutation.leading_mask(layout.leading_bits(number).min(64));
        mask[..layout.scope_words()].fill(u64::MAX);
        // Bits in the permutation's order, lowest first.
        let mut groups: BTreeMap<Key<N>, (u64, Tid, Key<N>)> = BTreeMap::new();
        for (&tid, fingerprint) in rows {
            let Some(fingerprint) = fingerprint else {
                continue;
            };
            let bits: Key<N> = std::array::from_fn(|word| fingerprint[word] & mask[word]);
            let group = groups
                .entry(permutation.permute(&bits))
                .or_insert((0, tid, bits));
            group.0 += 1;
            group.1 = group.1.min(tid);
        }
        let all: u64 = groups.values().map(|group| group.0).sum();
        for &(entries, tid, bits) in groups.values() {
            candidates += (entries * entries) as f64 / all as f64;
            if largest_bucket.is_none_or(|largest_bucket| entries > largest_bucket.1) {
                largest_bucket = Some((number as u16, entries, bits, tid));
            }
        }
    }
    (candidates, largest_bucket)
}

fn assert_measured<const N: usize>(index: &Index<N>, rows: &Model<N>) {
    let pauses = index.store.pauses();
    let info = index.measure();
    // Before each page but the meta page it can be cancelled.
    let pauses = index.store.pauses() - pauses;
    let pages = info.inner_pages + info.leaf_pages + info.empty_leaves;
    assert!(pauses >= pages, "{pauses}");
    let with = rows.values().flatten().count() as u64;
    assert_eq!(info.rows, with);
    assert_eq!(info.null_rows, rows.len() as u64 - with);
    assert_eq!(
        info.entries,
        with * index.layout.permutations().len() as u64 + info.null_rows
    );
    let (candidates, largest_bucket) = expected(&index.layout, rows);
    assert!((info.mean_candidates - candidates).abs() < 1e-6 * candidates.max(1.0));
    assert_eq!(
        info.largest_bucket.map(
            |LargestBucket {
                 permutation,
                 entries,
                 bits,
                 tid,
                 ..
             }| (permutation, entries, bits, tid)
        ),
        largest_bucket
    );
    if let Some(largest_bucket) = info.largest_bucket {
        // A search for the rows by mask and bits finds as many.
        let scoped = index.layout.scope_words();
        let alike = rows.values().flatten().filter(|key| {
            (0..N).all(|word| match word < scoped {
                true => key[word] == largest_bucket.bits[word],
                false => key[word] & largest_bucket.mask[word] == largest_bucket.bits[word],
            })
        });
        assert_eq!(alike.count() as u64, largest_bucket.entries);
    }
    // Every page is of one kind, as a look at each without the tree says.
    let (mut inner, mut leaves, mut empty, mut room) = (0, 0, 0, 0);
    for block in 1..index.store.blocks() {
        let page = index.store.read(block);
        match PageRef::<N>::new(&page).kind() {
            Some(Kind::Inner) => inner += 1,
            Some(Kind::Leaf) if LeafRef::<N>::open(&page, block).unwrap().count() == 0 => {
                empty += 1
            }
            Some(Kind::Leaf) => {
                leaves += 1;
                room += LeafRef::<N>::open(&page, block).unwrap().shape().capacity();
            }
            Some(Kind::Free) => (),
            other => panic!("block {block}: {other:?}"),
        }
    }
    assert_eq!(
        (info.inner_pages, info.leaf_pages, info.empty_leaves),
        (inner, leaves, empty)
    );
    assert_eq!(info.height, index.check_height());
    match info.fill() {
        Some(fill) => assert!((fill - info.entries as f64 / room as f64).abs() < 1e-9),
        None => assert_eq!(leaves, 0),
    }
}

impl<const N: usize> Index<N> {
    /// Level of the inner page that is alone on its level.
    fn check_height(&self) -> u16 {
        let levels: Vec<u16> = (1..self.store.blocks())
            .map(|block| PageRef::<N>::new(&self.store.read(block)).level())
            .collect();
        levels.into_iter().max().unwrap_or(0)
    }
}

fn grown_and_shrunk<const N: usize>(layout: BlockLayout<N>, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut rows = random_rows::<N>(&mut rng, 3_000);
    let index = Index::build(layout, &rows, 1 << 20);
    assert_measured(&index, &rows);
    let tree = index.tree();
    for block in 1_000_000..1_002_000 {
        let tid = Tid { block, offset: 1 };
        let known: Vec<Key<N>> = rows.values().flatten().take(50).copied().collect();
        let fingerprint = rng.random_bool(0.9).then(|| some_key(&mut rng, &known));
        index.insert(&tree, tid, fingerprint);
        rows.insert(tid, fingerprint);
    }
    assert_measured(&index, &rows);
    rows.retain(|tid, _| tid.block % 3 != 0);
    let kept = rows.clone();
    let null_permutation = index.layout.null_permutation();
    tree.vacuum(null_permutation, Fill::default(), |tid| {
        !kept.contains_key(&tid)
    })
    .unwrap();
    assert_measured(&index, &rows);
    tree.vacuum(null_permutation, Fill::default(), |_| true)
        .unwrap();
    assert_measured(&index, &Model::new());
}

#[test]
fn a_tree_is_what_a_count_of_its_rows_says() {
    grown_and_shrunk::<1>(BlockLayout::new(3, 4).unwrap(), 1);
    grown_and_shrunk::<1>(BlockLayout::new(0, 1).unwrap(), 2);
    grown_and_shrunk::<2>(BlockLayout::new(2, 6).unwrap(), 3);
    // More leading bits than a search looks up.
    grown_and_shrunk::<4>(BlockLayout::new(1, 2).unwrap(), 4);
    // Each word is a scope: many scopes of a few rows, and the scope of the NULLs.
    grown_and_shrunk::<3>(BlockLayout::in_scope(true, 2, 4).unwrap(), 5);
    // Several levels.
    grown_and_shrunk::<16>(BlockLayout::new(2, 4).unwrap(), 6);
}

#[test]
fn an_empty_tree_has_nothing_to_measure() {
    let index = Index::<1>::build(BlockLayout::new(3, 4).unwrap(), &Model::new(), 0);
    let info = index.measure();
    assert_eq!(
        info,
        Info {
            height: 1,
            inner_pages: 1,
            empty_leaves: 5,
            ..Info::default()
        }
    );
    assert_eq!((info.largest_bucket, info.fill()), (None, None));
}

#[test]
fn even_keys_have_the_candidates_of_the_formula() {
    let mut rng = StdRng::seed_from_u64(7);
    let rows: Model<1> = (0..20_000)
        .map(|block| (Tid { block, offset: 1 }, Some([rng.random()])))
        .collect();
    let index = Index::build(BlockLayout::new(3, 4).unwrap(), &rows, 1 << 20);
    let even = 4.0 * (1.0 + 19_999.0 / 65_536.0);
    let found = index.measure().mean_candidates;
    assert!((found / even - 1.0).abs() < 0.02, "{found} against {even}");
}

#[test]
fn rows_are_counted_once_while_leaves_split() {
    let layout = BlockLayout::<16>::new(1, 3).unwrap();
    let index = Index::build(layout.clone(), &Model::new(), 0);
    let (store, root, permutations) = (
        &index.store,
        index.meta.root,
        layout.permutations().len() as u64,
    );
    let (inserted, measured) = (AtomicU64::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let measurer = scope.spawn(|| {
            let tree = Tree::<_, 16>::new(store, root);
            // Rows are inserted while others are counted, whichever is faster.
            while measured.fetch_add(1, Ordering::SeqCst) < 30
                || inserted.load(Ordering::SeqCst) < 500
            {
                let before = inserted.load(Ordering::SeqCst);
                let info = tree.measure(&layout).unwrap();
                // One more row may be in some of the permutations.
                let after = inserted.load(Ordering::SeqCst) + 1;
                assert!((before..=after).contains(&info.rows), "{info:?}");
                assert!((before * permutations..=after * permutations).contains(&info.entries));
            }
        });
        let tree = Tree::<_, 16>::new(store, root);
        let mut rng = StdRng::seed_from_u64(8);
        while !measurer.is_finished() {
            let block = inserted.load(Ordering::SeqCst) as u32;
            let key = some_key(&mut rng, &[]);
            index.insert(&tree, Tid { block, offset: 1 }, Some(key));
            inserted.fetch_add(1, Ordering::SeqCst);
        }
    });
}
