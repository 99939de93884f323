//! Shapes of leaves, as the operations on a tree leave them.
use crate::model::{Index, Model};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::Fill;
use neardup_blocktree::key::Tid;
use neardup_blocktree::leaf::LeafRef;
use neardup_blocktree::page::{Kind, PageRef};
use neardup_blocktree::shape::Shape;
use neardup_blocktree::store::ReadPages;

/// Shape and number of entries of each leaf that has some.
fn leaves(index: &Index<1>) -> Vec<(Shape<1>, usize)> {
    let mut leaves = Vec::new();
    for block in 1..index.store.blocks() {
        let page = index.store.read(block);
        if PageRef::<1>::new(&page).kind() == Some(Kind::Leaf) {
            let leaf = LeafRef::<1>::open(&page, block).unwrap();
            leaves.push((leaf.shape(), leaf.count()));
        }
    }
    leaves.retain(|&(_, count)| count > 0);
    leaves
}

/// An index of one permutation whose keys are the fingerprints.
fn index_of(rows: &Model<1>) -> Index<1> {
    Index::build(BlockLayout::new(0, 1).unwrap(), rows, 1 << 20)
}

#[test]
fn many_rows_take_keys_without_their_first_byte() {
    let keys = (0..400_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let rows = keys.enumerate().map(|(i, key)| {
        let tid = Tid::new(i as u32 / 100, 1 + (i % 100) as u16);
        (tid, Some([key]))
    });
    let index = index_of(&rows.collect());
    let leaves = leaves(&index);
    let short = leaves.iter().filter(|(shape, _)| shape.left_out() == 1);
    assert!(short.count() * 2 > leaves.len());
    assert!(leaves.iter().all(|(shape, _)| shape.is_narrow()));
    assert!(f64::from(index.store.blocks()) * 8192.0 / 400_000.0 < 13.1);
}

#[test]
fn ever_greater_keys_leave_full_leaves_of_short_keys_behind() {
    let index = index_of(&Model::new());
    let tree = index.tree();
    for i in 0..20_000 {
        index.insert(&tree, Tid::new(i, 1), Some([u64::from(i) << 44]));
    }
    let leaves = leaves(&index);
    let full = (leaves.iter()).filter(|(shape, count)| *count >= shape.capacity() * 3 / 4);
    let short = leaves.iter().filter(|(shape, _)| shape.left_out() >= 1);
    assert!(full.count() >= leaves.len() - 1, "{leaves:?}");
    assert!(short.count() * 4 >= leaves.len() * 3, "{leaves:?}");
}

#[test]
fn a_row_that_is_too_far_makes_its_leaf_and_no_other_longer() {
    let rows = (0..6_000u64).map(|i| (Tid::new(i as u32, 1), Some([i << 51])));
    let mut model: Model<1> = rows.collect();
    let index = index_of(&model);
    let wide = || {
        let leaves = leaves(&index);
        let wide = leaves.iter().filter(|(shape, _)| !shape.is_narrow());
        (wide.count(), leaves.len())
    };
    let (_, before) = wide();
    assert_eq!(wide(), (0, before));
    // The first row beyond 64 GB, and a line that no page of 8 kB has. So full a leaf has to be
    // split first, since it has no room for longer addresses.
    for (far, key) in [(Tid::new(1 << 23, 1), 3_000), (Tid::new(5, 512), 3_001)] {
        index.insert(&index.tree(), far, Some([key << 51 | 1]));
        model.insert(far, Some([key << 51 | 1]));
        assert_eq!(wide(), (1, before + 1));
        assert_eq!(
            index.search(&[key << 51 | 1], 0, 6e3),
            [(far, [key << 51 | 1], 0)]
        );
    }
    assert_eq!(index.all_rows(), model.into_iter().collect::<Vec<_>>());
    // What is left of two neighbours takes long addresses if one of them did.
    let null_permutation = index.layout.null_permutation();
    let is_dead = |tid: Tid| !tid.block.is_multiple_of(10) && tid.block < 1 << 23;
    index
        .tree()
        .vacuum(null_permutation, Fill::default(), is_dead)
        .unwrap();
    let (wide, leaves) = wide();
    assert!(wide == 1 && leaves < before, "{wide} of {leaves}");
    index.check();
}
