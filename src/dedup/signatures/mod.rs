//! Search for all pairs of near signatures in an index. A signature has a value at each of its
//! positions, and a band is a group of positions. A sketch is a part of an index key that
//! summarizes a whole signature.
//!
//! The index reports rows that may be near each other, in one pass over the permutation (ordered
//! copy of all keys) of each band. The signatures in the table decide. Rows with equal signatures
//! are adjacent in the index, and the search compares only one of them.
pub mod candidates;
pub mod equal_rows;
pub mod rows;
pub mod signature_sample;

use neardup_blocktree::bands::{BandPairPlan, sketch};
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::{CrowdedRow, Pair, Pairs};
use neardup_blocktree::sort::ExternalSort;

use crate::am::index::Index;
use crate::dedup::progress::Progress;
use crate::dedup::work_limit::SignaturePlan;
use candidates::{Candidates, Edge};
use equal_rows::EqualRows;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::temp::TempSpace;
use rows::SignatureRows;

/// Returns the number of positions of the signatures in an index.
pub fn hashes<const N: usize>(index: &Index<N>) -> usize {
    index.metric.bands().map_or(1, |bands| bands.hashes())
}

/// Maximum number of pairs that are listed for a row in one bucket. A row with more pairs there is
/// crowded. A bucket is the set of rows whose leading key bits (scope and band) are equal.
pub const MAX_BUCKET_PAIRS: u32 = 8;

/// Rows that are crowded in a bucket: they have too many pairs there to list. Any two crowded rows
/// of one bucket may be near each other.
pub struct CrowdedRows {
    pub files: TempSpace,
    /// One entry for each crowded row in each bucket. The sort key has four words: the row address
    /// in the index entry, the number of the bucket, and the two words of the sketch.
    pub rows: ExternalSort<TempSpace, 4>,
    /// Number of buckets with crowded rows.
    pub buckets: u32,
}

/// Searches an index by `plan` for pairs of rows with near signatures. `rows` reads the signatures
/// from the table. Passes each pair to `give` once, in the order of the pairs' index entries. Adds
/// a row with more than `max_bucket_pairs` pairs in a bucket to `crowd`, and skips pairs of two
/// such rows. `equal_rows` has the runs of rows with equal signatures. Only one row of each run
/// takes part.
pub fn for_each_edge<const N: usize>(
    index: &Index<N>,
    equal_rows: &mut EqualRows,
    plan: &SignaturePlan,
    rows: &mut SignatureRows,
    max_bucket_pairs: u32,
    crowd: &mut CrowdedRows,
    give: impl FnMut(Edge),
) {
    let mut candidates = Candidates::new(&plan.pairs);
    find_candidates(
        index,
        equal_rows,
        plan,
        max_bucket_pairs,
        &mut candidates,
        crowd,
    );
    let count = candidates.len() as f64;
    let progress = Progress::new("comparing candidates", "pairs", count);
    candidates.verify(rows, None, Some(progress), give);
}

/// Searches an index by `plan` for pairs that may have near signatures, and adds them to
/// `candidates`. Adds rows with more than `max_bucket_pairs` pairs in a bucket (crowded rows) to
/// `crowd`, and skips pairs of two such rows. `equal_rows` decides which rows take part.
fn find_candidates<const N: usize>(
    index: &Index<N>,
    equal_rows: &mut EqualRows,
    plan: &SignaturePlan,
    max_bucket_pairs: u32,
    candidates: &mut Candidates,
    crowd: &mut CrowdedRows,
) {
    let mut progress = match plan.pairs.is_by_bands() {
        true => {
            let bands = plan.pairs.permutations() as f64;
            Progress::new("comparing the rows of a band", "bands", bands)
        }
        false => plan.exhaustive_progress(),
    };
    let (layout, memory) = (index.block_layout.clone(), work_mem() / 2);
    let passes = plan.pairs.passes(&layout);
    let mut search = Pairs::with_crowded_buckets(layout, passes, memory, max_bucket_pairs);
    let tree = index.tree();
    let mut is_wanted = |entry| equal_rows.is_wanted(entry);
    let mut emit = |pair: Pair<N>| candidates.push(&pair);
    let mut emit_crowded = |found: CrowdedRow<N>| {
        let [high, low] = sketch(&found.fingerprint);
        let key = [found.row.packed(), u64::from(found.bucket), high, low];
        crowd.rows.push(&mut crowd.files, key, Tid::MIN);
    };
    while index.or_corrupt(search.step_with_crowds(
        &tree,
        &mut is_wanted,
        &mut emit,
        &mut emit_crowded,
    )) {
        progress.reach(search_progress(&plan.pairs, &search));
    }
    progress.reach(search_progress(&plan.pairs, &search));
    progress.finish();
    crowd.buckets = search.crowded_buckets();
}

/// Returns the number of completed bands, or of comparisons in an exhaustive search.
fn search_progress<const N: usize>(plan: &BandPairPlan, search: &Pairs<N>) -> u64 {
    match plan.is_by_bands() {
        true => search.passes_done() as u64,
        false => search.comparisons_done(),
    }
}
