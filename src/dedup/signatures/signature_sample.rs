//! Distance histogram of signatures by a sample: number of pairs at each similarity.
use neardup_blocktree::crowded_centers::Nearness;
use neardup_blocktree::key::{Key, Tid};

use super::equal_rows::EqualRows;
use super::hashes;
use super::rows::{ComparedRow, ComparedRows, SignatureRows};
use crate::am::index::Index;
use crate::dedup::distance_counts::Counts;
use crate::dedup::row_filter::Wanted;
use crate::dedup::row_sample::{RowComparison, count_by_sample, for_each_leaf};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::temp::TempSpace;

/// Number of histogram lines for similarities below 1. They are numbered from 1. Line 0 is for
/// similarity 1 and is not included in this number.
const STEPS: usize = 50;

/// Returns the number of the histogram line for two signatures of `hashes` positions that differ in
/// `mismatches` positions. Each line is for a multiple of 1/[`STEPS`], and the similarity is
/// rounded down to such a multiple. Line 0 is for similarity 1.
pub fn line(mismatches: usize, hashes: usize) -> u32 {
    (mismatches * STEPS).div_ceil(hashes) as u32
}

/// Returns the lowest similarity of the pairs on a histogram line.
pub fn similarity_of_line(line: u32) -> f64 {
    (STEPS - line as usize) as f64 / STEPS as f64
}

/// Comparison of a sampled row with another row by their signatures in the table.
struct SignatureComparison<'a> {
    rows: ComparedRows<'a>,
    hashes: usize,
    mismatches: usize,
}

impl<const N: usize> RowComparison<N> for SignatureComparison<'_> {
    type Row = ComparedRow;

    fn find(&mut self, entry: Tid) -> Option<(Tid, ComparedRow)> {
        self.rows.find(entry)
    }

    fn line(&self, _: [&Key<N>; 2], [a, b]: [&ComparedRow; 2]) -> Option<u32> {
        let differing = self.rows.differing(a, b)?;
        (differing <= self.mismatches).then(|| line(differing, self.hashes))
    }
}

/// Compares `sample_rows` randomly chosen rows of a signature index with all rows. Adds the pairs
/// with at most `mismatches` mismatches to `counts`, and returns it. Only rows whose index entries
/// are in `wanted` take part. With `is_distinct`, only one row of each run of equal signatures
/// takes part.
pub fn sample<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    counts: Counts,
    mismatches: usize,
    sample_rows: usize,
    (mut wanted, is_distinct): (Wanted, bool),
) -> Counts {
    let mut equal_rows = None;
    if is_distinct {
        let mut rows = SignatureRows::new(relations, index);
        let wanted = std::mem::replace(&mut wanted, Wanted::All);
        equal_rows = Some(EqualRows::find(index, &mut rows, wanted, TempSpace));
    }
    let mut is_wanted = |entry| match &mut equal_rows {
        Some(equal_rows) => equal_rows.is_wanted(entry),
        None => wanted.contains(&mut TempSpace, entry),
    };
    let hashes = hashes(index);
    let rows = SignatureRows::new(relations, index);
    let mut comparison = SignatureComparison {
        rows: ComparedRows::new(rows, hashes, mismatches),
        hashes,
        mismatches,
    };
    // The keys of the scan are sketches, whose distance is at most the number of mismatches.
    let nearness = Nearness {
        radius: mismatches as u32,
        scope_words: index.block_layout.scope_words(),
    };
    let for_each_batch = |visit: &mut dyn FnMut(&[Key<N>], &[Tid])| {
        for_each_leaf(index, &mut is_wanted, visit);
    };
    count_by_sample(
        &mut comparison,
        nearness,
        for_each_batch,
        counts,
        sample_rows,
    )
}
