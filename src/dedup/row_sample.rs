//! Distance histogram by a sample: compares randomly chosen rows with all rows, and counts the near
//! pairs at each distance. Two rows are near each other if their distance is within the bound of
//! the histogram.
use neardup_blocktree::crowded_centers::Nearness;
use neardup_blocktree::filter;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::pairs::KeyOrderScan;

use super::bottom_k_sample::{BottomKSample, mix};
use super::distance_counts::Counts;
use crate::am::index::Index;

/// Comparison of a sampled row with another row, after their keys were found to be near each other.
pub trait RowComparison<const N: usize> {
    /// Values of a row that the comparison needs besides the row's key in the index.
    type Row;

    /// Fetches the row of an index entry. Returns the address at which the snapshot sees the row,
    /// and the values to compare, or `None` for an invisible row.
    fn find(&mut self, entry: Tid) -> FoundRow<Self::Row>;

    /// Returns the number of the histogram line that counts a pair, or `None` if the two rows are
    /// not near each other.
    fn line(&self, keys: [&Key<N>; 2], rows: [&Self::Row; 2]) -> Option<u32>;
}

/// Address at which the snapshot sees a row, and the values to compare. `None` for an invisible
/// row.
pub type FoundRow<R> = Option<(Tid, R)>;

/// Visible row of the sample.
struct SampledRow<R, const N: usize> {
    key: Key<N>,
    /// Address in the index entry of the row.
    entry: Tid,
    /// Address at which the snapshot sees the row.
    address: Tid,
    row: R,
}

/// Callback that takes a batch of index entries: their keys, and their row addresses in the same
/// order.
pub type VisitBatch<'a, const N: usize> = &'a mut dyn FnMut(&[Key<N>], &[Tid]);

/// Chooses `sample_rows` random rows, compares those that are visible with all rows, and adds the
/// near pairs to `counts`, which it returns. Two rows are compared by `comparison` only if their
/// index keys are near each other by `nearness`. `for_each_batch` visits all rows in batches. It is
/// called twice and must visit the same rows each time.
pub fn count_by_sample<C: RowComparison<N>, const N: usize>(
    comparison: &mut C,
    nearness: Nearness,
    mut for_each_batch: impl FnMut(VisitBatch<N>),
    mut counts: Counts,
    sample_rows: usize,
) -> Counts {
    let mut chosen = BottomKSample::new(sample_rows);
    let mut all = 0u64;
    for_each_batch(&mut |keys, entries| {
        all += entries.len() as u64;
        for (&key, &entry) in keys.iter().zip(entries) {
            chosen.offer(mix(entry.packed()), (key, entry));
        }
    });
    let chosen = chosen.into_vec();
    let chosen_count = chosen.len();
    let find = |(key, entry)| {
        let (address, row) = comparison.find(entry)?;
        Some(SampledRow {
            key,
            entry,
            address,
            row,
        })
    };
    let sample: Vec<SampledRow<C::Row, N>> = chosen.into_iter().filter_map(find).collect();
    if sample.is_empty() {
        return counts;
    }
    // Estimates the number of visible rows from the share of visible rows in the sample.
    let visible = all as f64 * sample.len() as f64 / chosen_count as f64;
    counts.begin_sample(sample.len(), visible);
    for_each_batch(&mut |keys, entries| {
        compare_batch(comparison, nearness, &sample, (keys, entries), &mut counts);
        pgrx::check_for_interrupts!();
    });
    counts
}

/// Compares each row of the sample with each row of a batch, and adds the near pairs to `counts`.
/// The batch has the keys of its rows and, in the same order, their index entries.
fn compare_batch<C: RowComparison<N>, const N: usize>(
    comparison: &mut C,
    nearness: Nearness,
    sample: &[SampledRow<C::Row, N>],
    (keys, entries): (&[Key<N>], &[Tid]),
    counts: &mut Counts,
) {
    let scope = ..nearness.scope_words;
    let mut found = Vec::new();
    // Result of fetching each row of the batch. `None` until the row is fetched.
    let mut rows: Vec<Option<FoundRow<C::Row>>> = Vec::new();
    rows.resize_with(keys.len(), || None);
    for (number, one) in sample.iter().enumerate() {
        found.clear();
        let Nearness {
            radius,
            scope_words,
        } = nearness;
        filter::within_keys(keys, &one.key, scope_words, radius, &mut found);
        for i in found.iter().map(|&i| usize::from(i)) {
            if entries[i] == one.entry || keys[i][scope] != one.key[scope] {
                continue;
            }
            let other = rows[i].get_or_insert_with(|| comparison.find(entries[i]));
            if let Some((address, row)) = other
                && let Some(line) = comparison.line([&one.key, &keys[i]], [&one.row, row])
            {
                counts.add_sampled(number, [one.address, *address], line);
            }
        }
    }
}

/// Passes the wanted entries of an index to `visit`, the entries of one leaf at a time.
pub fn for_each_leaf<const N: usize>(
    index: &Index<N>,
    mut is_wanted: impl FnMut(Tid) -> bool,
    visit: VisitBatch<N>,
) {
    let mut scan = KeyOrderScan::new(index.block_layout.clone());
    let (tree, mut keys, mut entries) = (index.tree(), Vec::new(), Vec::new());
    let mut more = true;
    while more {
        keys.clear();
        entries.clear();
        more = index.or_corrupt(scan.step(&tree, &mut |key, entry| {
            if is_wanted(entry) {
                keys.push(key);
                entries.push(entry);
            }
        }));
        visit(&keys, &entries);
    }
}
