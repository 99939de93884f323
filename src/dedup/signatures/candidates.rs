//! Candidates: pairs of rows that a search of the index reports, because their signatures may be
//! near each other. Then the signatures in the table decide. A mismatch is a position in which two
//! signatures differ, and a band is a group of positions. A sketch is the part of an index key that
//! gives a lower bound of the mismatches.
use neardup_blocktree::bands::{BandPairPlan, Bands};
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::Pair;
use neardup_blocktree::sort::ExternalSort;

use super::rows::{SignatureRow, SignatureRows};
use crate::dedup::progress::Progress;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::temp::TempSpace;

/// A sort key of [`Candidates`] has a lower bound of the mismatches in its second word. This is the
/// number of low bits of the word that are used for the bound. The higher bits have a row address.
const MISMATCH_BITS: u32 = 16;

/// Two rows whose signatures may be near each other, with the results of the index search.
struct Candidate {
    /// Row addresses in the two index entries.
    entries: [Tid; 2],
    /// Lower bound of the number of mismatches, computed from the sketches as if the two signatures
    /// had no equal band. Each band in which they are equal lowers the bound by 1, which
    /// [`Candidate::may_be_near`] takes into account.
    least: usize,
    /// First band in which the search has found the pair, counted from 0.
    first_band: usize,
    /// Number of bands in which the search has found the pair.
    shared: usize,
}

impl Candidate {
    /// Returns whether the signatures may be near each other, by their sketches and the number of
    /// shared bands. The search must have completed all bands, so that `shared` is final.
    fn may_be_near(&self, plan: &BandPairPlan) -> bool {
        let shared = if plan.is_by_bands() { self.shared } else { 0 };
        self.least <= plan.mismatches() + shared
    }
}

/// Candidates that a search of the index has found. Uses temporary files beyond half of `work_mem`.
pub struct Candidates<'a> {
    plan: &'a BandPairPlan,
    /// One entry for each time that the search has found a pair. The sort key has two words: the
    /// lower row address, then the higher row address with the lower bound of the mismatches in the
    /// low bits. The value is the number of the search's pass over the index. A search by bands
    /// makes one pass for each band.
    found: ExternalSort<TempSpace, 2>,
}

impl<'a> Candidates<'a> {
    pub fn new(plan: &'a BandPairPlan) -> Self {
        Candidates {
            plan,
            found: ExternalSort::new(work_mem() / 2),
        }
    }

    /// Adds a pair that the search has found. Ignores a pair of a row with itself.
    pub fn push<const N: usize>(&mut self, pair: &Pair<N>) {
        let [a, b] = pair.rows;
        if a != b {
            let least = u64::from(self.plan.least_mismatches(pair));
            let key = [
                a.min(b).packed(),
                a.max(b).packed() << MISMATCH_BITS | least,
            ];
            let pass = Tid::from_packed(pair.pass as u64);
            self.found.push(&mut TempSpace, key, pass);
        }
    }

    /// Returns the number of candidates. A pair counts once for each band in which it was found.
    pub fn len(&self) -> u64 {
        self.found.len()
    }

    /// Compares the rows of the candidates in the table, and passes the near pairs to `give`, in
    /// the order of their index entries. `progress` counts the candidates.
    ///
    /// A caller may divide the candidates of a search by bands into batches, each with its own
    /// `Candidates`. Several batches can then have the same pair. Such a caller passes the bands of
    /// the index as `other_batches`. Only one batch passes the pair to `give`: the batch that has
    /// found it in the first band that the two signatures share. The argument is `None` if no other
    /// batch can have a pair of this batch.
    pub fn verify(
        self,
        rows: &mut SignatureRows,
        other_batches: Option<&Bands>,
        mut progress: Option<Progress>,
        mut give: impl FnMut(Edge),
    ) {
        let mut verifier = Verifier::new(rows, self.plan.mismatches());
        let mut verify = |candidate: Candidate| {
            let edge = match other_batches {
                None if !candidate.may_be_near(self.plan) => None,
                None => verifier.edge_if(candidate.entries, |_, _| true),
                Some(bands) => verifier.edge_if(candidate.entries, |a, b| {
                    a.first_shared(b, bands) == Some(candidate.first_band)
                }),
            };
            edge.map(&mut give);
        };
        let mut found = self.found;
        let mut last: Option<Candidate> = None;
        found.in_order(&mut TempSpace, None, |_, entry| {
            if let Some(progress) = &mut progress {
                progress.advance(1);
            }
            let [a, b] = entry.key;
            let entries = [Tid::from_packed(a), Tid::from_packed(b >> MISMATCH_BITS)];
            match &mut last {
                // The entries of a pair are sorted by band, so `first_band` is already set.
                Some(known) if known.entries == entries => known.shared += 1,
                _ => {
                    let next = Candidate {
                        entries,
                        least: (b & ((1 << MISMATCH_BITS) - 1)) as usize,
                        first_band: entry.tid as usize,
                        shared: 1,
                    };
                    last.replace(next).map(&mut verify);
                }
            }
        });
        last.map(verify);
        if let Some(progress) = &mut progress {
            progress.finish();
        }
    }
}

/// Two rows with near signatures. Each may represent a run of rows with equal signatures.
pub struct Edge {
    /// Row addresses in the index entries.
    pub entries: [Tid; 2],
    /// Addresses at which the snapshot sees the rows.
    pub rows: [Tid; 2],
    /// Number of positions in which the signatures differ.
    pub mismatches: u32,
}

/// Compares candidates by the signatures in the table. Keeps the first row of a candidate, because
/// the next candidate often has the same first row.
struct Verifier<'r, 'a> {
    rows: &'r mut SignatureRows<'a>,
    /// Maximum number of positions in which near signatures differ.
    mismatches: usize,
    /// First row of the candidate that was compared last: its index entry and, if the snapshot sees
    /// it, its address and values.
    first: Option<(Tid, Option<(Tid, SignatureRow)>)>,
}

impl<'r, 'a> Verifier<'r, 'a> {
    fn new(rows: &'r mut SignatureRows<'a>, mismatches: usize) -> Self {
        Verifier {
            rows,
            mismatches,
            first: None,
        }
    }

    /// Returns the edge between the rows of two index entries. Returns `None` unless both rows are
    /// visible, their signatures are near each other, and `condition` is true for them.
    fn edge_if(
        &mut self,
        [a, b]: [Tid; 2],
        condition: impl FnOnce(&SignatureRow, &SignatureRow) -> bool,
    ) -> Option<Edge> {
        pgrx::check_for_interrupts!();
        if self.first.as_ref().is_none_or(|(entry, _)| *entry != a) {
            self.first = Some((a, self.rows.find(a)));
        }
        let (row, found) = self.first.as_ref()?.1.as_ref()?;
        let (other_row, mismatches, other) = self.rows.compare_and_return(b, found)?;
        let is_edge = mismatches <= self.mismatches && condition(found, &other);
        is_edge.then_some(Edge {
            entries: [a, b],
            rows: [*row, other_row],
            mismatches: mismatches as u32,
        })
    }
}
