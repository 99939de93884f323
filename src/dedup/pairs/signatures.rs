//! Pairs of signatures.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};
use pgrx::pg_sys;

use super::{PairSearch, check_file};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::signatures::groups::{Groups, InEntryOrder, Side};
use crate::dedup::signatures::rows::SignatureRows;
use crate::dedup::signatures::{edges, mismatches};
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
    distance: f64,
    groups: Groups,
    /// The groups whose own pairs are still to be given.
    left: InEntryOrder,
    files: TempSpace,
    /// Pairs of groups: the entries, the packed sides, and behind them the mismatches. They are
    /// looked for when they are needed.
    edges: Option<Sorted<TempSpace, 4>>,
    hashes: usize,
    /// The product whose pairs are being returned.
    product: Option<Product>,
}

impl SignaturePairs {
    pub fn new(relations: &LockedIndex, distance: f64) -> Self {
        let files = TempSpace;
        let (mut groups, hashes) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let mut rows = SignatureRows::new(relations, &index);
            let hashes = index.metric.bands().map_or(1, |bands| bands.hashes());
            (Groups::find(&index, &mut rows, files), hashes)
        });
        SignaturePairs {
            index: relations.index().oid(),
            file: relations.index().file_number(),
            distance,
            left: groups.all(),
            groups,
            files,
            edges: None,
            hashes,
            product: None,
        }
    }

    /// Looks for the pairs of groups.
    fn find_edges(&mut self) -> Sorted<TempSpace, 4> {
        let relations = LockedIndex::reopen(self.index);
        let (files, groups) = (&mut self.files, &mut self.groups);
        // Sorted by one end, then by the other, to meet the groups, which are in that order.
        let mut by_second = ExternalSort::<TempSpace, 4>::new(work_mem() / 2);
        let mut firsts = groups.all();
        check_file(&relations, self.file);
        with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let mismatches = mismatches(&index, self.distance);
            let mut rows = SignatureRows::new(&relations, &index);
            edges(&index, groups, mismatches, &mut rows, None, |edge| {
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

    /// The next lists to be paired; `None`: there are no more.
    fn next_product(&mut self) -> Option<Product> {
        if let Some((_, group)) = self.left.next() {
            return Some(Product {
                sides: [group; 2],
                next: [0, 1],
                distance: 0.0,
            });
        }
        let mut edges = match self.edges.take() {
            Some(edges) => edges,
            None => self.find_edges(),
        };
        let edge = edges.next(&mut self.files);
        self.edges = Some(edges);
        let edge = edge?;
        let [_, _, left, right] = edge.key;
        Some(Product {
            sides: [left, right].map(Side::from_packed),
            next: [0, 0],
            distance: signature::distance(edge.tid as usize, self.hashes),
        })
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
                    product.next[1] += 1;
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
