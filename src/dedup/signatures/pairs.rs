//! `neardup_pairs` with a distance that is no integer: that of signatures.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};
use pgrx::pg_sys;

use super::groups::{Groups, InEntryOrder, Side};
use super::rows::SignatureRows;
use super::{edges, mismatches};
use crate::am::index::{Index, words_of};
use crate::am::keys::{is_on_signatures, with_words};
use crate::dedup::distance::whole_distance;
use crate::dedup::pairs::{NoPairs, PairSet, check_file};
use crate::dedup::source::{Distances, find_index};
use crate::pg::fmgr::{Call, export};
use crate::pg::memory::work_mem;
use crate::pg::relation::LockedIndex;
use crate::pg::srf::SetReturning;
use crate::pg::tid::item_pointer;
use crate::storage::heap_fetch::note_read;
use crate::storage::temp::TempSpace;
use crate::types::signature;

export! {
    guarded "neardup_signature_pairs" => pairs;
}

/// `neardup_pairs(relation, distance, column_name)`.
fn pairs(call: &mut Call) -> pg_sys::Datum {
    if call.is_null(0) || call.is_null(1) {
        return call.return_set(|_| NoPairs);
    }
    call.return_set(|call| {
        let relation = call.oid(0);
        let column = call.name(2);
        let oid = find_index(
            call.function_oid(),
            relation,
            column.as_deref(),
            Distances::Any,
        );
        let distance = call.float8(1);
        let relations = LockedIndex::open_for_reading(oid);
        if !is_on_signatures(relations.index()) {
            let radius = whole_distance(distance);
            drop(relations);
            return AnyPairs::Fingerprints(PairSet::new(oid, radius));
        }
        AnyPairs::Signatures(Box::new(SignaturePairs::new(&relations, distance)))
    })
}

/// Pairs on their way to the server, with distances that are no integers.
enum AnyPairs {
    Fingerprints(PairSet),
    Signatures(Box<SignaturePairs>),
}

impl SetReturning for AnyPairs {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        match self {
            AnyPairs::Signatures(pairs) => pairs.next(columns),
            AnyPairs::Fingerprints(pairs) => {
                let found = pairs.next(columns);
                if let Some(Some(distance)) = columns.last_mut() {
                    let bits = f64::from(distance.value() as i32).to_bits();
                    *distance = pg_sys::Datum::from(bits);
                }
                found
            }
        }
    }
}

/// Two lists of rows, each of one with each of the other, or all pairs of one list.
struct Product {
    sides: [Side; 2],
    /// The next pair, by its rows' numbers in both.
    next: [u32; 2],
    distance: f64,
}

/// Pairs of rows with signatures near each other: first those with equal ones, group by group, then
/// those of two groups.
struct SignaturePairs {
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
    /// Addresses in the row that was returned last.
    pointers: [pg_sys::ItemPointerData; 2],
}

impl SignaturePairs {
    fn new(relations: &LockedIndex, distance: f64) -> Self {
        note_read(relations.index());
        let files = TempSpace;
        let (mut groups, hashes) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            // Refuses what is no distance.
            mismatches(&index, distance);
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
            pointers: Default::default(),
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

    /// The next pair.
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

impl SetReturning for SignaturePairs {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        let Some((rows, distance)) = self.next_pair() else {
            return false;
        };
        for (pointer, tid) in self.pointers.iter_mut().zip(rows) {
            *pointer = item_pointer(tid);
            columns.push(Some(pg_sys::Datum::from(&raw const *pointer)));
        }
        columns.push(Some(pg_sys::Datum::from(distance.to_bits())));
        true
    }
}
