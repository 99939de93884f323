//! `aminsert`: adds one row of the table to the index, with an entry in each permutation (ordered
//! copy of all keys).
use neardup_blocktree::key::{EntryKey, Tid};

use super::index::{Index, words_of};
use super::keys::with_words;
use super::metric::ValueMetric;
use neardup_pg::index_row::IndexRow;
use neardup_pg::registry;
use neardup_pg::rel::Rel;
use neardup_pg::storage::heap_fetch;

/// Adds a row of a table to the index, and then removes it from the rows in flight (rows that a
/// trigger has published before they are in the index). `tid` is the address of the row. The row is
/// added to a few permutations at a time, so a crash may leave only some of its entries. They
/// belong to an uncommitted row, so VACUUM removes them.
pub fn insert(row: &IndexRow, table: Rel, tid: Tid) {
    with_words!(words_of(row.index()), N => {
        let mut index = Index::<N>::open_cached(row.index());
        add(&mut index, row, tid);
        if registry::awaits(row.index().oid()) {
            withdraw_from_flight(&index, row, table, tid);
        }
    });
}

/// Adds the entries of `row`, whose address is `tid`, to the tree of the index. A row whose value
/// is NULL has a single entry.
fn add<const N: usize>(index: &mut Index<N>, row: &IndexRow, tid: Tid) {
    let (layout, metric, tree) = (&index.block_layout, &index.metric, index.tree());
    let mut keys = Vec::with_capacity(metric.sorts());
    if metric.keys(&index.layout, row, &mut keys) {
        index.or_corrupt(metric.insert(&tree, layout, &keys, tid));
    } else {
        let (permutation, key) = (layout.null_permutation(), keys[0]);
        index.or_corrupt(tree.insert(&EntryKey {
            permutation,
            key,
            tid,
        }));
    }
    let root = tree.root();
    index.remember_root(root);
}

/// Removes a row, which has just been added to the index, from the rows in flight. From now on,
/// searches of other triggers find the row in the index.
fn withdraw_from_flight<const N: usize>(index: &Index<N>, row: &IndexRow, table: Rel, tid: Tid) {
    // A row that was inserted speculatively (INSERT ... ON CONFLICT) stays in flight: the server
    // may remove the row and then write it again without firing the trigger.
    if let Some(value) = row.get(index.layout.scope_columns)
        && !index.layout.has_balls
        && index.layout.metric.has_distances()
        && !heap_fetch::is_speculative(table, tid)
    {
        registry::withdraw_written(row.index().oid(), &index.metric.in_flight(value));
    }
}
