//! Damaged pages: every operation ends with an error or a result, without a panic.
use crate::mem_store::NoSuchBlock;
use crate::model::{Index, Model, random_rows};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::Fill;
use neardup_blocktree::filter;
use neardup_blocktree::full_scan::FullScan;
use neardup_blocktree::inner::InnerRef;
use neardup_blocktree::key::{EntryKey, Tid};
use neardup_blocktree::leaf::LeafRef;
use neardup_blocktree::meta::MetaRef;
use neardup_blocktree::page::{HEADER, PAGE_SIZE, Page, PageRef, Result};
use neardup_blocktree::pairs::{PairPlan, Pairs};
use neardup_blocktree::plan::Plan;
use neardup_blocktree::scan::Scan;
use neardup_blocktree::store::ReadPages;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

#[test]
fn a_root_with_a_right_link_is_an_error_and_no_endless_loop() {
    let index = Index::<1>::build(BlockLayout::new(2, 3).unwrap(), &Model::new(), 1 << 20);
    let right_link = PAGE_SIZE - 24;
    index
        .store
        .damage(index.meta.root.block, right_link, &1u32.to_ne_bytes());
    let entry_key = EntryKey::start_of(1);
    assert!(index.tree().insert(&entry_key).is_err());
    assert!(index.tree().has_entry(&entry_key).is_err());
}

#[test]
fn keys_out_of_order_are_found() {
    let model = random_rows::<1>(&mut StdRng::seed_from_u64(29), 2_000);
    let index = Index::build(BlockLayout::new(2, 3).unwrap(), &model, 1 << 20);
    let mut leaves = 0;
    for block in 1..index.store.blocks() {
        let page: Page = *index.store.read(block);
        let Ok(leaf) = LeafRef::<1>::open(&page, block) else {
            continue;
        };
        assert_eq!(leaf.sorted(), leaf.count());
        let (last, size) = (leaf.count().saturating_sub(1), leaf.shape().key_size());
        if leaf.count() == 0 || leaf.key(0) == leaf.key(last) {
            continue;
        }
        let bytes = |index: usize| HEADER + size * index..HEADER + size * (index + 1);
        let swap = |a: usize, b: usize| {
            (index.store).damage(block, bytes(a).start, &page[bytes(b)]);
        };
        swap(0, last);
        swap(last, 0);
        let tree = index.tree();
        for found in [
            tree.check(&index.layout, |_, _, _| ()),
            tree.check_shared(&index.layout, |_, _, _| ()),
        ] {
            assert_eq!(found.unwrap_err().what, "keys out of order");
        }
        swap(0, 0);
        swap(last, last);
        // What is appended later would pass for being in order.
        let (field, more) = (PAGE_SIZE - 6, (leaf.count() + 1) as u16);
        index.store.damage(block, field, &more.to_ne_bytes());
        let found = tree.check(&index.layout, |_, _, _| ());
        let expected = "leaf with more entries in order than it has";
        assert_eq!(found.unwrap_err().what, expected);
        assert!(tree.vacuum(3, Fill::default(), |_| false).is_err());
        let count = leaf.sorted() as u16;
        index.store.damage(block, field, &count.to_ne_bytes());
        leaves += 1;
    }
    assert!(leaves > 6);
    index.tree().check(&index.layout, |_, _, _| ()).unwrap();
}

/// Reads every field of a page, and every entry if it can be opened. Returns whether it can.
fn read_all<const N: usize>(page: &Page) -> bool {
    let _ = (MetaRef::new(page).read(), MetaRef::new(page).root());
    let view = PageRef::<N>::new(page);
    let start = EntryKey::start_of(view.permutation());
    let _ = (view.low_key(), view.right_sibling());
    let _ = view.is_left_of(&start);
    let (leaf, inner) = (LeafRef::<N>::open(page, 1), InnerRef::<N>::open(page, 1));
    if let Ok(leaf) = leaf {
        assert_eq!(leaf.keys().len(), leaf.count());
        assert!(leaf.sorted() <= leaf.count());
        let mut found = Vec::new();
        filter::within_leaf(&leaf.keys(), &[7; N], 0, 30 * N as u32, &mut found);
        let mut expected = Vec::new();
        filter::within_leaf_portable(&leaf.keys(), &[7; N], 0, 30 * N as u32, &mut expected);
        assert_eq!(found, expected);
        assert!(
            leaf.entries()
                .all(|entry| entry.permutation == start.permutation)
        );
        assert_eq!(leaf.entries().count(), leaf.count());
    }
    if let Ok(inner) = inner {
        assert!(inner.search(&start) < inner.count());
        assert_eq!(inner.entries().count(), inner.count());
    }
    leaf.is_ok() || inner.is_ok()
}

/// Reads pages of a sound index with a few fields or bytes replaced, and pages of random bytes.
fn fuzz_pages<const N: usize>(seed: u64, rounds: usize) {
    let mut rng = StdRng::seed_from_u64(seed);
    let model = random_rows::<N>(&mut rng, 2_000);
    let index = Index::build(BlockLayout::new(2, 4).unwrap(), &model, 1 << 20);
    let mut accepted = 0;
    for round in 0..rounds {
        let mut page: Page = *index.store.read(rng.random_range(0..index.store.blocks()));
        if round % 8 == 0 {
            rng.fill(&mut page[..PAGE_SIZE - 2]);
        }
        for _ in 0..rng.random_range(0..3) {
            // The bounds in the header, the fields at the end, or anything.
            let (from, to) =
                [(12, 20), (PAGE_SIZE - 32, PAGE_SIZE), (0, PAGE_SIZE)][rng.random_range(0..3)];
            let at = rng.random_range(from..to - 1);
            let value: u16 = match rng.random_range(0..3) {
                0 => rng.random_range(0..8),
                1 => rng.random_range(0..=PAGE_SIZE as u16),
                _ => rng.random(),
            };
            page[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        accepted += usize::from(read_all::<N>(&page));
    }
    assert!(
        (rounds / 10..rounds).contains(&accepted),
        "{accepted} of {rounds}"
    );
}

#[test]
fn no_field_of_an_accepted_page_lies_out_of_bounds() {
    fuzz_pages::<1>(1, 20_000);
    fuzz_pages::<3>(2, 20_000);
    fuzz_pages::<5>(3, 20_000);
}

/// Every kind of operation, until one fails.
fn use_index(index: &Index<1>, query: u64) -> Result<()> {
    let (tree, layout) = (index.tree(), &index.layout);
    tree.check(layout, |_, _, _| ())?;
    tree.check_shared(layout, |_, _, _| ())?;
    tree.measure(layout)?;
    for radius in [0, 2, 30] {
        let plan = Rc::new(Plan::new(layout, radius, 1e6));
        let mut scan = Scan::new(layout.clone(), plan, [query]);
        let mut matches = Vec::new();
        while scan.step(&tree, &mut matches)? {}
    }
    let (mut all, mut rows) = (FullScan::new(layout.clone(), None), Vec::new());
    while all.step(&tree, &mut rows)? {}
    let plan = PairPlan::new(layout, 2, 1e4);
    let mut pairs = Pairs::new(layout.clone(), plan, 1 << 20, false);
    while pairs.step(&tree, &mut |_| true, &mut Some, &mut |_| ())? {}
    Ok(())
}

/// The operations that write, until one fails.
fn change_index(index: &Index<1>, query: u64) -> Result<()> {
    let tree = index.tree();
    let (permutation, key) = (0, [query]);
    for offset in 1..600 {
        let tid = Tid { block: 77, offset };
        tree.insert(&EntryKey {
            permutation,
            key,
            tid,
        })?;
    }
    let null_permutation = index.layout.null_permutation();
    tree.vacuum(null_permutation, Fill::default(), |tid| tid.block % 2 == 0)?;
    Ok(())
}

#[test]
fn damage_is_an_error_and_no_panic() {
    let mut rng = StdRng::seed_from_u64(7);
    let model = random_rows::<1>(&mut rng, 3_000);
    let mut errors = 0;
    for round in 0..300 {
        let index = Index::build(BlockLayout::new(2, 3).unwrap(), &model, 1 << 20);
        let block = rng.random_range(1..index.store.blocks());
        // The bounds in the header, the range, or the fields behind it.
        let offset = [12, PAGE_SIZE - 48, PAGE_SIZE - 32][round % 3] + rng.random_range(0..8);
        let bytes: Vec<u8> = (0..rng.random_range(1..16)).map(|_| rng.random()).collect();
        index.store.damage(block, offset, &bytes);
        let query = rng.random();
        let operations = [use_index, change_index];
        let failed = operations.map(|operation| {
            match catch_unwind(AssertUnwindSafe(|| operation(&index, query))) {
                Ok(result) => result.is_err(),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                    assert!(
                        panic.is::<NoSuchBlock>() || text.contains("locked while"),
                        "round {round}, block {block}, offset {offset}, {bytes:?}: {text}"
                    );
                    true
                }
            }
        });
        errors += u32::from(failed[0]);
    }
    assert!(errors > 200, "{errors} of 300 damaged trees were noticed");
}
