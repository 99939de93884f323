//! Pairs of signatures.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};
use pgrx::pg_sys;

use super::exhaustive::ExhaustiveEdges;
use super::{EdgeSource, PairArguments, PairSearch, check_file};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::distance::DistanceArgument;
use crate::dedup::exhaustive::{BY_PARAMETER, check_signatures};
use crate::dedup::row_filter::Wanted;
use crate::dedup::signatures::groups::{Groups, InEntryOrder, Side};
use crate::dedup::signatures::rows::SignatureRows;
use crate::dedup::signatures::{edges, hashes, is_guaranteed};
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
            let edges: Box<dyn EdgeSource> = match is_guaranteed(&index, mismatches) {
                true => Box::new(BandEdges { mismatches, found: None }),
                false => Box::new(ExhaustiveEdges::<N>::new(mismatches, index.rows())),
            };
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

/// Pairs of signatures that share a band. They are collected when the first is asked for.
struct BandEdges {
    mismatches: usize,
    /// The entries, the packed sides, and behind them the mismatches.
    found: Option<Sorted<TempSpace, 4>>,
}

impl BandEdges {
    fn find(&self, groups: &mut Groups, relations: &LockedIndex) -> Sorted<TempSpace, 4> {
        let files = &mut TempSpace;
        // Sorted by one end, then by the other, to meet the groups, which are in that order.
        let mut by_second = ExternalSort::<TempSpace, 4>::new(work_mem() / 2);
        let mut firsts = groups.all();
        with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let mut rows = SignatureRows::new(relations, &index);
            edges(&index, groups, self.mismatches, &mut rows, None, |edge| {
                let ([a, b], [row, other]) = (edge.entries.map(Tid::packed), edge.rows);
                let key = [b, a, firsts.of(a, row).packed(), other.packed()];
                by_second.push(files, key, Tid::from_packed(u64::from(edge.mismatches)));
            });
        });
        drop(firsts);
        let mut sorted = by_second.sorted(files, None);
        drop(by_second);
        let mut found = ExternalSort::<TempSpace, 4>::new(work_mem() / 2);
        let mut seconds = groups.all();
        while let Some(edge) = sorted.next(files) {
            let [b, a, left, other] = edge.key;
            let right = seconds.of(b, Tid::from_packed(other)).packed();
            found.push(files, [a, b, left, right], Tid::from_packed(edge.tid));
        }
        found.sorted(files, None)
    }
}

impl EdgeSource for BandEdges {
    fn next_edge(
        &mut self,
        groups: &mut Groups,
        relations: &dyn Fn() -> LockedIndex,
    ) -> Option<([Side; 2], u32)> {
        let mut found = match self.found.take() {
            Some(found) => found,
            None => self.find(groups, &relations()),
        };
        let edge = found.next(&mut TempSpace);
        self.found = Some(found);
        let edge = edge?;
        let [_, _, left, right] = edge.key;
        Some(([left, right].map(Side::from_packed), edge.tid as u32))
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
