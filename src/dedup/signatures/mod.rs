//! Near-duplicates among all signatures of an index.
//!
//! The index tells which rows may be near each other, in one pass over the table of each band; how
//! near they are, the signatures in the table tell. Equal signatures stand next to each other in
//! the index, and one of them is searched for all.
pub mod groups;
pub mod histogram;
pub mod rows;

use neardup_blocktree::bands::{BandPairPlan, BandPairs, Candidate};
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::ExternalSort;

use crate::am::index::Index;
use crate::dedup::progress::Progress;
use crate::pg::memory::work_mem;
use crate::storage::temp::TempSpace;
use groups::Groups;
use rows::{FoundRow, SignatureRows};

/// Bits below a row's address in a word that holds a number of mismatches, too.
pub const BELOW: u32 = 16;

/// Positions of the signatures in an index.
pub fn hashes<const N: usize>(index: &Index<N>) -> usize {
    index.metric.bands().map_or(1, |bands| bands.hashes())
}

/// Two rows near each other, each of which may stand for several.
pub struct Edge {
    /// The addresses of their entries, and those under which the snapshot sees them.
    pub entries: [Tid; 2],
    pub rows: [Tid; 2],
    pub mismatches: u32,
}

/// Compares candidates by their rows in the table, of which the first is kept for the next.
pub struct Verifier<'r, 'a> {
    rows: &'r mut SignatureRows<'a>,
    mismatches: usize,
    /// The entry of the first row, and the row if the snapshot sees it.
    left: Option<(Tid, Option<(Tid, FoundRow)>)>,
}

impl<'r, 'a> Verifier<'r, 'a> {
    /// Rows with `mismatches` or fewer are near each other.
    pub fn new(rows: &'r mut SignatureRows<'a>, mismatches: usize) -> Self {
        Verifier {
            rows,
            mismatches,
            left: None,
        }
    }

    /// The edge between two entries, if there is one.
    pub fn edge(&mut self, pair: [Tid; 2]) -> Option<Edge> {
        self.edge_if(pair, |_, _| true)
    }

    /// The edge between two entries, if there is one and their rows meet a condition.
    pub fn edge_if(
        &mut self,
        [a, b]: [Tid; 2],
        condition: impl FnOnce(&FoundRow, &FoundRow) -> bool,
    ) -> Option<Edge> {
        pgrx::check_for_interrupts!();
        if self.left.as_ref().is_none_or(|(entry, _)| *entry != a) {
            self.left = Some((a, self.rows.find(a)));
        }
        let (row, found) = self.left.as_ref()?.1.as_ref()?;
        let (other_row, differing, other) = self.rows.find_beside(b, found)?;
        let is_edge = differing <= self.mismatches && condition(found, &other);
        is_edge.then_some(Edge {
            entries: [a, b],
            rows: [*row, other_row],
            mismatches: differing as u32,
        })
    }
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

/// Gives the pairs of rows that a plan finds, each once, of rows that stand for themselves or for
/// others, in the order of their entries: all but those of two crowded rows that are in one bucket.
/// Candidates go to files if they are many. The plan comes with the number of its comparisons, if
/// it compares each two rows.
pub fn edges<const N: usize>(
    index: &Index<N>,
    groups: &mut Groups,
    (plan, comparisons): (BandPairPlan, f64),
    rows: &mut SignatureRows,
    crowd: &mut CrowdedRows,
    mut give: impl FnMut(Edge),
) {
    let (mismatches, by_bands) = (plan.mismatches(), plan.is_by_bands());
    let mut progress = match by_bands {
        true => Progress::new(
            "comparing the rows of a band",
            "bands",
            plan.tables() as f64,
        ),
        false => Progress::new("comparing each two rows", "comparisons", comparisons),
    };
    let mut files = TempSpace;
    let mut candidates = ExternalSort::<TempSpace, 2>::new(work_mem() / 2);
    let memory = work_mem() / 2;
    let mut search = BandPairs::<N>::thinned(plan, memory, CROWDED);
    let tree = index.tree();
    let mut compared = 0;
    while index.or_corrupt(
        search.step(
            &tree,
            &mut |tid| groups.is_wanted(tid),
            &mut |candidate| match candidate {
                Candidate::Pair([a, b], least) => {
                    let key = [a.packed(), b.packed() << BELOW | u64::from(least)];
                    candidates.push(&mut files, key, Tid::MIN);
                }
                Candidate::Crowded(bucket, row, [high, low]) => {
                    let key = [row.packed(), u64::from(bucket), high, low];
                    crowd.rows.push(&mut crowd.files, key, Tid::MIN);
                }
                Candidate::Compared(count) => {
                    compared += count;
                    if !by_bands {
                        progress.reach(compared);
                    }
                }
            },
        ),
    ) {
        if by_bands {
            progress.reach(u64::from(search.table()));
        }
    }
    crowd.buckets = search.buckets();
    drop(search);

    // Candidates come in the order of the first row, then of the second.
    let mut progress = Progress::new("comparing candidates", "pairs", candidates.len() as f64);
    let mut verifier = Verifier::new(rows, mismatches);
    // The pair under way: its rows, the fewest mismatches if they shared no band, and how many
    // they share.
    let mut last: Option<([Tid; 2], usize, usize)> = None;
    let mut judge = |last: Option<([Tid; 2], usize, usize)>| {
        if let Some((pair, least, shared)) = last
            && least <= mismatches + if by_bands { shared } else { 0 }
        {
            verifier.edge(pair).map(&mut give);
        }
    };
    candidates.in_order(&mut files, None, |_, candidate| {
        let [a, b] = candidate.key;
        let pair = [Tid::from_packed(a), Tid::from_packed(b >> BELOW)];
        let least = (b & ((1 << BELOW) - 1)) as usize;
        progress.advance(1);
        match &mut last {
            // The fewest come first.
            Some((known, _, shared)) if *known == pair => *shared += 1,
            _ => judge(last.replace((pair, least, 1))),
        }
    });
    judge(last);
}
