//! Near-duplicates among all signatures of an index.
//!
//! The index tells which rows may be near each other, in one pass over the table of each band; how
//! near they are, the signatures in the table tell. Equal signatures stand next to each other in
//! the index, and one of them is searched for all.
pub mod groups;
pub mod rows;

use neardup_blocktree::bands::{BandPairs, Candidate};
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::ExternalSort;

use crate::am::index::Index;
use crate::pg::memory::work_mem;
use crate::storage::temp::TempSpace;
use crate::types::signature::Bound;
use groups::Groups;
use rows::{FoundRow, SignatureRows};

/// Bits below a row's address in a word that holds a number of mismatches, too.
const BELOW: u32 = 16;

/// Returns the most mismatches of signatures in an index that are within a distance.
pub fn mismatches<const N: usize>(index: &Index<N>, distance: f64) -> usize {
    let hashes = index.metric.bands().map_or(0, |bands| bands.hashes());
    usize::try_from(Bound::Distance.mismatches(hashes, distance)).unwrap_or(0)
}

/// Two rows near each other, each of which may stand for several.
pub struct Edge {
    /// The addresses of their entries, and those under which the snapshot sees them.
    pub entries: [Tid; 2],
    pub rows: [Tid; 2],
    pub mismatches: u32,
}

/// Pairs of a row in one bucket beyond which it is crowded there.
const CROWDED: u32 = 8;

/// Rows of crowded buckets: any two of one bucket may be near each other.
pub struct CrowdedRows {
    pub files: TempSpace,
    /// The entry, then the bucket and the sketch.
    pub rows: ExternalSort<TempSpace, 4>,
    pub buckets: u32,
}

/// Gives all pairs of rows with at most `mismatches` mismatches, each once, of rows that stand for
/// themselves or for others, in the order of their entries. If crowded rows are asked for, two of
/// them that are in one bucket need not come as a pair. Candidates go to files if they are many.
pub fn edges<const N: usize>(
    index: &Index<N>,
    groups: &mut Groups,
    mismatches: usize,
    rows: &mut SignatureRows,
    mut crowd: Option<&mut CrowdedRows>,
    mut give: impl FnMut(Edge),
) {
    let Some(bands) = index.metric.bands().cloned() else {
        return;
    };
    let mut files = TempSpace;
    let mut candidates = ExternalSort::<TempSpace, 2>::new(work_mem() / 2);
    let memory = work_mem() / 2;
    let mut search = match crowd {
        Some(_) => BandPairs::<N>::thinned(bands, mismatches, memory, CROWDED),
        None => BandPairs::<N>::new(bands, mismatches, memory),
    };
    let tree = index.tree();
    while index.or_corrupt(
        search.step(
            &tree,
            &mut |tid| groups.is_wanted(tid),
            &mut |candidate| match (candidate, &mut crowd) {
                (Candidate::Pair([a, b], least), _) => {
                    let key = [a.packed(), b.packed() << BELOW | u64::from(least)];
                    candidates.push(&mut files, key, Tid::MIN);
                }
                (Candidate::Crowded(bucket, row, [high, low]), Some(crowd)) => {
                    let key = [row.packed(), u64::from(bucket), high, low];
                    crowd.rows.push(&mut crowd.files, key, Tid::MIN);
                }
                (Candidate::Crowded(..), None) => (),
            },
        ),
    ) {}
    let by_bands = search.by_bands();
    if let Some(crowd) = crowd {
        crowd.buckets = search.buckets();
    }
    drop(search);

    // Candidates come in the order of the first row, then of the second.
    let mut left: Option<(Tid, Option<(Tid, FoundRow)>)> = None;
    let mut verify = |[a, b]: [Tid; 2]| {
        pgrx::check_for_interrupts!();
        if left.as_ref().is_none_or(|(entry, _)| *entry != a) {
            left = Some((a, rows.find(a)));
        }
        if let Some((_, Some((row, found)))) = &left
            && let Some((other_row, differing)) = rows.compare(b, found)
            && differing <= mismatches
        {
            give(Edge {
                entries: [a, b],
                rows: [*row, other_row],
                mismatches: differing as u32,
            });
        }
    };
    // The pair under way: its rows, the fewest mismatches if they shared no band, and how many
    // they share.
    let mut last: Option<([Tid; 2], usize, usize)> = None;
    let mut judge = |last: Option<([Tid; 2], usize, usize)>| {
        if let Some((pair, least, shared)) = last
            && least <= mismatches + if by_bands { shared } else { 0 }
        {
            verify(pair);
        }
    };
    candidates.in_order(&mut files, None, |_, candidate| {
        let [a, b] = candidate.key;
        let pair = [Tid::from_packed(a), Tid::from_packed(b >> BELOW)];
        let least = (b & ((1 << BELOW) - 1)) as usize;
        match &mut last {
            // The fewest come first.
            Some((known, _, shared)) if *known == pair => *shared += 1,
            _ => judge(last.replace((pair, least, 1))),
        }
    });
    judge(last);
}
