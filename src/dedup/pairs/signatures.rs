//! Pairs of signatures.
use neardup_blocktree::bands::{BandPairPlan, CandidateScan};
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::bands::BandEdges;
use super::exhaustive::ExhaustiveEdges;
use super::{EdgeSource, PairArguments, PairSearch, check_file};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::bound::SignatureBound;
use crate::dedup::exhaustive::{BY_PARAMETER, plan_signatures};
use crate::dedup::row_filter::Wanted;
use crate::dedup::signatures::groups::{Groups, InEntryOrder, Side};
use crate::dedup::signatures::rows::SignatureRows;
use crate::pg::caller_sql::Condition;
use crate::pg::locked_index::LockedIndex;
use crate::pg::memory::work_mem;
use crate::storage::temp::TempSpace;

/// Two lists of rows, each of one with each of the other, or all pairs of one list.
struct Product {
    sides: [Side; 2],
    /// The next pair, by its rows' numbers in both.
    next: [u32; 2],
    mismatches: u32,
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
    /// One row of each group of equals stands for all.
    is_distinct: bool,
    /// The product whose pairs are being returned.
    product: Option<Product>,
}

impl SignaturePairs {
    /// All pairs of the filter's rows within a bound, or those of one row of each group of
    /// equals. Raises an error if they take too much work.
    pub fn all(
        relations: &LockedIndex,
        bound: SignatureBound,
        filter: Option<&Condition>,
        is_distinct: bool,
    ) -> Self {
        let otherwise = "count a sample, by sample_rows => 1000";
        SignaturePairs {
            is_distinct,
            ..Self::begin(relations, bound, filter, Some(otherwise))
        }
    }

    /// The pairs that a caller asks for. Raises an error if they take too much work.
    pub fn new(relations: &LockedIndex, bound: SignatureBound, arguments: &PairArguments) -> Self {
        let otherwise = (!arguments.exhaustive).then_some(BY_PARAMETER);
        Self::begin(relations, bound, arguments.filter.as_ref(), otherwise)
    }

    /// Begins a search. Without the end of a hint that says how to do otherwise, any amount of work
    /// is welcome.
    fn begin(
        relations: &LockedIndex,
        bound: SignatureBound,
        filter: Option<&Condition>,
        otherwise: Option<&str>,
    ) -> Self {
        let mut files = TempSpace;
        let (mut groups, edges) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let mut rows = SignatureRows::new(relations, &index);
            let wanted = Wanted::new(filter, &index, relations, &mut files);
            let mut groups = Groups::find(&index, &mut rows, wanted, files);
            let mut is_wanted = |entry| groups.is_wanted(entry);
            let plan = plan_signatures(relations, &index, bound, otherwise, &mut is_wanted);
            let edges = edge_source(&index, plan);
            (groups, edges)
        });
        SignaturePairs {
            index: relations.index().oid(),
            file: relations.index().file_number(),
            left: groups.all(),
            groups,
            edges,
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
                mismatches: 0,
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
            mismatches,
        })
    }
}

/// The search of an index for pairs of different signatures, by a plan and the number of its
/// comparisons.
fn edge_source<const N: usize>(
    index: &Index<N>,
    plan: Option<(BandPairPlan, f64)>,
) -> Box<dyn EdgeSource> {
    let Some((plan, comparisons)) = plan else {
        return Box::new(NoEdges);
    };
    let search = CandidateScan::<N>::new(plan, work_mem() / 4);
    match search.plan().is_by_bands() {
        true => Box::new(BandEdges::new(search, index.rows())),
        false => Box::new(ExhaustiveEdges::new(search, comparisons)),
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
    fn next_pair(&mut self) -> Option<([Tid; 2], u32)> {
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
                    return Some(([a.min(b), a.max(b)], product.mismatches));
                }
                (Some(_), None) if !is_one || i + 2 < right.len() => {
                    product.next = [i + 1, if is_one { i + 2 } else { 0 }];
                }
                _ => self.product = None,
            }
        }
    }
}
