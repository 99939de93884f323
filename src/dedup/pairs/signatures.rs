//! Pairs of signatures.
use neardup_blocktree::bands::CandidateScan;
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::bands::BandEdges;
use super::exhaustive::ExhaustiveEdges;
use super::{EdgeSource, PairArguments, PairSearch, check_file};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::distance::DistanceArgument;
use crate::dedup::exhaustive::{BY_PARAMETER, check_signatures};
use crate::dedup::row_filter::Wanted;
use crate::dedup::signatures::groups::{Groups, InEntryOrder, Side};
use crate::dedup::signatures::hashes;
use crate::dedup::signatures::rows::SignatureRows;
use crate::pg::locked_index::LockedIndex;
use crate::pg::memory::work_mem;
use crate::storage::temp::TempSpace;
use crate::types::signature;

/// Two lists of rows, each of one with each of the other, or all pairs of one list.
struct Product {
    sides: [Side; 2],
    /// The next pair, by its rows' numbers in both.
    next: [u32; 2],
    distance: f64,
}

/// Pairs of rows with signatures near each other: first those with equal ones, group by group, then
/// those of two groups.
pub struct SignaturePairs {
    index: pg_sys::Oid,
    /// The index's file when the search began.
    file: u32,
    groups: Groups,
    /// The groups whose own pairs are still to be given.
    left: InEntryOrder,
    edges: Box<dyn EdgeSource>,
    hashes: usize,
    /// One row of each group of equals stands for all.
    is_distinct: bool,
    /// The product whose pairs are being returned.
    product: Option<Product>,
}

impl SignaturePairs {
    /// All pairs within a distance, or those of one row of each group of equals. Raises an error if
    /// they take too much work.
    pub fn all(relations: &LockedIndex, distance: DistanceArgument, is_distinct: bool) -> Self {
        let arguments = PairArguments {
            distance,
            filter: None,
            exhaustive: false,
        };
        SignaturePairs {
            is_distinct,
            ..Self::begin(
                relations,
                &arguments,
                "count a sample, by sample_rows => 1000",
            )
        }
    }

    /// The pairs that a caller asks for. Raises an error if they take too much work.
    pub fn new(relations: &LockedIndex, arguments: &PairArguments) -> Self {
        Self::begin(relations, arguments, BY_PARAMETER)
    }

    fn begin(relations: &LockedIndex, arguments: &PairArguments, otherwise: &str) -> Self {
        let mut files = TempSpace;
        let (mut groups, hashes, edges) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let mut rows = SignatureRows::new(relations, &index);
            let filter = arguments.filter.as_ref();
            let wanted = Wanted::new(filter, &index, relations, &mut files);
            let mut groups = Groups::find(&index, &mut rows, wanted, files);
            let hashes = hashes(&index);
            let mismatches = arguments.distance.mismatches(relations.index(), hashes);
            if !arguments.exhaustive {
                let mut is_wanted = |entry| groups.is_wanted(entry);
                check_signatures(relations, &index, arguments.distance, otherwise, &mut is_wanted);
            }
            let edges = edge_source(&index, mismatches);
            (groups, hashes, edges)
        });
        SignaturePairs {
            index: relations.index().oid(),
            file: relations.index().file_number(),
            left: groups.all(),
            groups,
            edges,
            hashes,
            is_distinct: false,
            product: None,
        }
    }

    /// The next lists to be paired; `None`: there are no more.
    fn next_product(&mut self) -> Option<Product> {
        if !self.is_distinct
            && let Some((_, group)) = self.left.next()
        {
            return Some(Product {
                sides: [group; 2],
                next: [0, 1],
                distance: 0.0,
            });
        }
        let (oid, file) = (self.index, self.file);
        let relations = || {
            let relations = LockedIndex::reopen(oid);
            check_file(&relations, file);
            relations
        };
        let (sides, mismatches) = self.edges.next_edge(&mut self.groups, &relations)?;
        Some(Product {
            sides,
            next: [0, 0],
            distance: signature::distance(mismatches as usize, self.hashes),
        })
    }
}

/// The search of an index for pairs of different signatures.
fn edge_source<const N: usize>(index: &Index<N>, mismatches: usize) -> Box<dyn EdgeSource> {
    let Some(bands) = index.metric.bands() else {
        return Box::new(NoEdges);
    };
    let search = CandidateScan::<N>::new(bands.clone(), mismatches, work_mem() / 4);
    match search.by_bands() {
        true => Box::new(BandEdges::new(search, mismatches, index.rows())),
        false => Box::new(ExhaustiveEdges::new(search, mismatches, index.rows())),
    }
}

/// No pairs, of an index that is not on signatures.
struct NoEdges;

impl EdgeSource for NoEdges {
    fn next_edge(
        &mut self,
        _groups: &mut Groups,
        _relations: &dyn Fn() -> LockedIndex,
    ) -> Option<([Side; 2], u32)> {
        None
    }
}

impl PairSearch for SignaturePairs {
    fn next_pair(&mut self) -> Option<([Tid; 2], f64)> {
        loop {
            let Some(product) = &mut self.product else {
                self.product = Some(self.next_product()?);
                continue;
            };
            let [left, right] = product.sides;
            let is_one = left == right;
            let [i, j] = product.next;
            match (self.groups.row(left, i), self.groups.row(right, j)) {
                (Some(a), Some(b)) => {
                    // An end for each row, or for all of a side.
                    product.next = match self.is_distinct {
                        true => [u32::MAX; 2],
                        false => [i, j + 1],
                    };
                    return Some(([a.min(b), a.max(b)], product.distance));
                }
                (Some(_), None) if !is_one || i + 2 < right.len() => {
                    product.next = [i + 1, if is_one { i + 2 } else { 0 }];
                }
                _ => self.product = None,
            }
        }
    }
}
