//! Search of an index on MinHash signatures. A band is a group of a signature's hashes, and a
//! sketch is a short summary of a signature. The index stores the hash of each band and the sketch,
//! but not the signature. Two signatures have a band in common if they are equal in all hashes of
//! the band.
//!
//! By rows that have a band in common with the query, a search finds all rows up to a guaranteed
//! number of mismatches (positions in which two signatures differ). For a larger number, the search
//! reads the sketches of all rows, and finds all matching rows too. If both the query and the
//! session allow it, the search uses the bands also for a larger number, and may miss rows. The
//! server rechecks each row that the search finds.
use std::rc::Rc;

use neardup_blocktree::bands::{BandQuery, BandScan, Bands};
use neardup_blocktree::full_scan::{FullScan, Row};
use neardup_blocktree::key::Tid;
use neardup_blocktree::metric::near_duplicate_mismatches;
use neardup_blocktree::tree::Tree;

use super::{scheme_hash, with_ball, with_signature};
use crate::am::index::Index;
use crate::am::scan_keys::{ScanKey, ScanKeys, ScanQuals};
use crate::am::search::{NearSearch, Step};
use crate::am::strategies;
use crate::settings;
use crate::types::signature::Signature;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::pages::IndexPages;

/// Condition on the signature in a scan: the signature differs from a centre in at most
/// `mismatches` positions.
struct SignatureQual<const N: usize> {
    /// Bands and sketch of the centre.
    query: BandQuery<N>,
    /// Maximum number of mismatches.
    mismatches: usize,
    /// True if both the query and the session allow the search to miss rows.
    approximate: bool,
}

/// Search of the tree that finds the rows.
enum Source<const N: usize> {
    /// Finds no rows.
    Nothing,
    /// Reads all rows and finds the rows whose sketches are near the sketch of the query.
    Sketches(FullScan<N>, BandQuery<N>),
    /// Finds the rows that have a band in common with the query.
    Bands(BandScan<N>),
}

/// Search of an index on signatures, for one scan. It can be restarted with other conditions.
pub struct BandSearch<const N: usize> {
    bands: Rc<Bands>,
    /// Current search of the tree.
    source: Source<N>,
    /// Buffer for the rows of one step.
    tids: Vec<Tid>,
}

impl<const N: usize> BandSearch<N> {
    /// Makes a search of an index with these bands. The search finds nothing until
    /// [`NearSearch::begin`] starts it.
    pub fn new(bands: Rc<Bands>) -> Self {
        BandSearch {
            bands,
            source: Source::Nothing,
            tids: Vec::new(),
        }
    }

    /// Returns the condition that a scan key contains; `None` if no signature can fulfil the
    /// condition. `scope` is the hash of the searched scope, or `None` if the search is not limited
    /// to one scope.
    fn qual(&self, key: ScanKey, scope: Option<u64>) -> Option<SignatureQual<N>> {
        let qual = |center: &Signature, mismatches: usize, approximate| {
            // Signatures of other lengths cannot be compared with the centre. The index contains
            // signatures of one length only.
            (center.values.len() == self.bands.hashes()).then(|| {
                let (values, kind) = (center.values, scheme_hash(center));
                SignatureQual {
                    query: BandQuery::new(&self.bands, values, kind, scope, mismatches),
                    mismatches,
                    approximate,
                }
            })
        };
        if key.is_with_ball() {
            return with_ball(key.value(), |ball| {
                let mismatches = usize::try_from(ball.mismatches).ok()?;
                let approximate = ball.approximate && settings::allow_approximate();
                qual(&ball.center, mismatches, approximate)
            });
        }
        with_signature(key.value(), |center| match key.strategy() {
            strategies::NEAR => qual(
                center,
                near_duplicate_mismatches(center.values.len()),
                false,
            ),
            _ => qual(center, 0, false),
        })
    }
}

impl<const N: usize> NearSearch<N> for BandSearch<N> {
    fn rechecks(&self) -> bool {
        true
    }

    fn begin(&mut self, index: &Index<N>, quals: &ScanQuals, _order_bys: ScanKeys) -> bool {
        let near = (quals.near.iter()).map(|&key| self.qual(key, quals.scope));
        let Some(near) = near.collect::<Option<Vec<_>>>() else {
            return false;
        };
        let Some(near) = near.into_iter().min_by_key(|qual| qual.mismatches) else {
            return false;
        };
        let in_all_scopes = index.layout.scope_columns > 0 && quals.scope.is_none();
        let by_bands = near.mismatches <= self.bands.guaranteed() || near.approximate;
        if !by_bands || in_all_scopes {
            let all = FullScan::new(index.block_layout.clone(), quals.scope);
            self.source = Source::Sketches(all.without_nulls(), near.query);
        } else if let Source::Bands(scan) = &mut self.source {
            // A nested loop restarts the search for each outer row.
            scan.restart(near.query);
        } else {
            let scan = BandScan::new(self.bands.clone(), near.query, work_mem());
            self.source = Source::Bands(scan);
        }
        true
    }

    fn end(&mut self) {
        self.source = Source::Nothing;
    }

    fn step(
        &mut self,
        index: &Index<N>,
        tree: &Tree<IndexPages, N>,
        rows: &mut Vec<Row<N>>,
    ) -> Step {
        match &mut self.source {
            Source::Nothing => Step::End,
            Source::Bands(scan) => {
                self.tids.clear();
                let more = index.or_corrupt(scan.step(tree, &mut self.tids));
                rows.extend(self.tids.iter().map(|&tid| Row {
                    tid,
                    fingerprint: None,
                }));
                if more { Step::Gathered } else { Step::End }
            }
            Source::Sketches(scan, query) => {
                let more = index.or_corrupt(scan.step(tree, rows));
                rows.retain(|row| row.fingerprint.is_some_and(|key| query.admits(&key)));
                if more { Step::Leaf } else { Step::End }
            }
        }
    }
}
