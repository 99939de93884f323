//! Opens an index and reads its table for the SQL functions that inspect an index (statistics,
//! verification).
use neardup_blocktree::key::{Key, Tid};

use super::index::Index;
use super::metric::ValueMetric;
use neardup_pg::buffer_strategy::Strategy;
use neardup_pg::build_scan::VisibleRows;
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::pages::IndexPages;

/// Opens an index for a caller that reads each page once. The pages use a ring of buffers, so they
/// do not displace other pages from shared buffers. `check` raises an error if a page may have lost
/// rows that its snapshot sees.
pub fn open_for_one_pass<const N: usize>(
    relations: &LockedIndex,
    check: OldSnapshotCheck,
) -> Index<'_, N> {
    let index = relations.index();
    let strategy = Strategy::for_one_pass(index);
    Index::with_pages(IndexPages::with_strategy(index, check, strategy))
}

/// Opens an index for a caller that may read pages repeatedly. The pages may use all shared
/// buffers. `check` raises an error if a page may have lost rows that its snapshot sees.
pub fn open<const N: usize>(relations: &LockedIndex, check: OldSnapshotCheck) -> Index<'_, N> {
    Index::with_pages(IndexPages::new(relations.index(), check))
}

/// Calls `row` for each visible row of the table that the index covers. The arguments are the row's
/// address, and the key of its entry in the first permutation (ordered copy of all keys). The key
/// is `None` if the value is NULL. The bits of the key are in their original order, not in the
/// order in which the permutation stores them.
///
/// With scope columns, the first word of the key is the hash of the scope. The other words depend
/// on the metric. For fingerprints, they are the fingerprint. For signatures, they are the hash of
/// the first band and the sketch (summary) of the signature. For arrays, they are the sum of the
/// hashes of the distinct elements.
pub fn each_visible_row<const N: usize>(
    visible: &VisibleRows,
    index: &Index<N>,
    row: &mut dyn FnMut(Tid, Option<Key<N>>),
) {
    let mut keys = Vec::new();
    visible.each(|visible, tid| {
        keys.clear();
        let has_value = index.metric.keys(&index.layout, &visible, &mut keys);
        let key = has_value.then(|| {
            let key = index.metric.entry_key(&index.block_layout, &keys, 0);
            index.block_layout.permutations()[0].restore(&key)
        });
        row(tid, key);
    });
}
