//! Candidates: pairs of rows with possibly near signatures. The rows in the table decide.
use neardup_blocktree::bands::{BandPairPlan, Bands};
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::Pair;
use neardup_blocktree::sort::ExternalSort;

use super::rows::{SignatureRow, SignatureRows};
use crate::dedup::progress::Progress;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::temp::TempSpace;

/// Bits below a row's address that contain a number of mismatches.
const MISMATCH_BITS: u32 = 16;

/// Two rows, with the information from the index.
struct Candidate {
    entries: [Tid; 2],
    /// Lower bound for the mismatches if the rows share no band.
    least: usize,
    /// First band in which the search has found the pair.
    first_band: usize,
    /// Number of bands in which the search has found the pair.
    shared: usize,
}

impl Candidate {
    /// Returns whether the sketches permit nearness. All bands must have been searched.
    fn may_be_near(&self, plan: &BandPairPlan) -> bool {
        let shared = if plan.is_by_bands() { self.shared } else { 0 };
        self.least <= plan.mismatches() + shared
    }
}

/// Candidates of a search. Uses temporary files beyond half of `work_mem`.
pub struct Candidates<'a> {
    plan: &'a BandPairPlan,
    /// The lower entry, then the higher entry and the lower bound, with the pass as the value.
    found: ExternalSort<TempSpace, 2>,
}

impl<'a> Candidates<'a> {
    pub fn new(plan: &'a BandPairPlan) -> Self {
        Candidates {
            plan,
            found: ExternalSort::new(work_mem() / 2),
        }
    }

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

    /// Passes the edges among the candidates to `give`, in the order of their entries. With
    /// `other_batches`, other batches may have found the same pair in other bands. Only the batch
    /// with the first of these bands reports the edge.
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
                // Entries are sorted by band, so `first_band` is already set.
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

/// Two near rows. Each may represent a run of rows with equal signatures.
pub struct Edge {
    /// Addresses in the index entries.
    pub entries: [Tid; 2],
    /// Addresses at which the snapshot sees the rows.
    pub rows: [Tid; 2],
    pub mismatches: u32,
}

/// Compares candidates by their rows in the table. Caches the first row for the next candidate.
struct Verifier<'r, 'a> {
    rows: &'r mut SignatureRows<'a>,
    mismatches: usize,
    /// Entry of the first row, and the row if the snapshot sees it.
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

    /// Returns the edge between two entries, if there is one and their rows meet a condition.
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
        let (other_row, mismatches, other) = self.rows.find_beside(b, found)?;
        let is_edge = mismatches <= self.mismatches && condition(found, &other);
        is_edge.then_some(Edge {
            entries: [a, b],
            rows: [*row, other_row],
            mismatches: mismatches as u32,
        })
    }
}
