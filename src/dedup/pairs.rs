//! `neardup_pairs`: all pairs of a table's rows within a distance.
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::{PairPlan, Pairs};
use pgrx::{PgSqlErrorCode, pg_sys};

use super::distance::{distance_argument, refuse_bits};
use super::scope::ScopeColumns;
use super::source::{Distances, find_index};
use crate::am::index::{Index, name, words_of};
use crate::am::keys::with_words;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::memory::work_mem;
use crate::pg::relation::LockedIndex;
use crate::pg::srf::SetReturning;
use crate::pg::tid::item_pointer;
use crate::storage::heap_fetch::{HeapFetch, note_read};

export! {
    guarded "neardup_pairs" => pairs;
}

/// `neardup_pairs(relation, distance, column_name)`.
fn pairs(call: &mut Call) -> pg_sys::Datum {
    if call.is_null(0) || call.is_null(1) {
        return call.return_set(|_| NoPairs);
    }
    call.return_set(|call| {
        let distance = distance_argument(call.int4(1));
        let column = call.name(2);
        let relation = call.oid(0);
        let index = find_index(
            call.function_oid(),
            relation,
            column.as_deref(),
            Distances::Bits,
        );
        PairSet::new(index, distance)
    })
}

/// The result for a relation or distance that is NULL, as of a strict function.
pub struct NoPairs;

impl SetReturning for NoPairs {
    fn next(&mut self, _: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        false
    }
}

/// Two rows and their distance.
#[derive(Clone, Copy)]
struct Found {
    rows: [Tid; 2],
    distance: u32,
}

/// Pairs on their way to the server.
pub struct PairSet {
    index: pg_sys::Oid,
    /// The index's file when the search began.
    file: u32,
    search: Box<dyn Search>,
    /// Found and not yet given.
    ready: Vec<Found>,
    /// Addresses in the row that was returned last.
    pointers: [pg_sys::ItemPointerData; 2],
}

impl PairSet {
    /// All pairs within a distance in an index, which the caller must be allowed to read.
    pub fn new(oid: pg_sys::Oid, distance: u32) -> Self {
        let relations = LockedIndex::open_for_reading(oid);
        refuse_bits(relations.index());
        note_read(relations.index());
        let search: Box<dyn Search> = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let plan = PairPlan::new(&index.design, distance, index.rows());
            Box::new(Pairs::<N>::new(index.design.clone(), plan, work_mem(), false))
        });
        PairSet {
            index: oid,
            file: relations.index().file_number(),
            search,
            ready: Vec::new(),
            pointers: Default::default(),
        }
    }

    /// Gives all pairs that are left, within one query.
    pub fn for_each(&mut self, mut give: impl FnMut([Tid; 2], u32)) {
        loop {
            self.fill();
            if self.ready.is_empty() {
                return;
            }
            for found in self.ready.drain(..) {
                give(found.rows, found.distance);
            }
        }
    }

    /// Looks for more pairs, to the end if need be.
    fn fill(&mut self) {
        let relations = LockedIndex::reopen(self.index);
        check_file(&relations, self.file);
        while self.ready.is_empty() && self.search.step(&relations, &mut self.ready) {}
    }
}

/// Raises an error if an index has been rebuilt since a search of it began.
pub fn check_file(relations: &LockedIndex, file: u32) {
    if relations.index().file_number() != file {
        UserError::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "index {} was rebuilt while it was being read",
                name(relations.index())
            ),
        )
        .hint("Run the query again.")
        .raise();
    }
}

impl SetReturning for PairSet {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        if self.ready.is_empty() {
            self.fill();
        }
        let Some(found) = self.ready.pop() else {
            return false;
        };
        for (pointer, tid) in self.pointers.iter_mut().zip(found.rows) {
            *pointer = item_pointer(tid);
            columns.push(Some(pg_sys::Datum::from(&raw const *pointer)));
        }
        columns.push(Some(pg_sys::Datum::from(found.distance as i32)));
        true
    }
}

/// A search for pairs, for whatever width of keys.
trait Search {
    /// Appends some pairs; false: these were the last.
    fn step(&mut self, relations: &LockedIndex, found: &mut Vec<Found>) -> bool;
}

impl<const N: usize> Search for Pairs<N> {
    fn step(&mut self, relations: &LockedIndex, found: &mut Vec<Found>) -> bool {
        let index = Index::<N>::open(relations.index());
        let tree = index.tree();
        let mut rows = HeapFetch::new(relations.table());
        let scope = ScopeColumns::of(relations, &index.layout);
        let mut entries = Vec::new();
        let more = index.or_corrupt(match scope {
            None => {
                let mut resolve = |entry| rows.find(entry);
                Pairs::step(self, &tree, &mut resolve, &mut |pair| {
                    found.push(in_order(pair.rows, pair.distance));
                })
            }
            Some(_) => {
                // Rows are looked at in pairs, below, by the addresses of their entries.
                let mut resolve = |entry| rows.find(entry).map(|_| entry);
                Pairs::step(self, &tree, &mut resolve, &mut |pair| {
                    entries.push((pair.rows, pair.distance));
                })
            }
        });
        if let Some(scope) = scope {
            keep_within_scope(&scope, &mut rows, &entries, found);
        }
        more
    }
}

/// A pair with its lower address first.
fn in_order([a, b]: [Tid; 2], distance: u32) -> Found {
    Found {
        rows: [a.min(b), a.max(b)],
        distance,
    }
}

/// Appends the pairs of entries whose rows are of one scope.
fn keep_within_scope(
    scope: &ScopeColumns,
    rows: &mut HeapFetch,
    pairs: &[([Tid; 2], u32)],
    found: &mut Vec<Found>,
) {
    let mut seen = |entry| {
        let row = rows.find(entry)?;
        Some((row, scope.values(rows.slot())?))
    };
    // The first row of a pair is often that of the pair before.
    let mut first = None;
    for &([a, b], distance) in pairs {
        pgrx::check_for_interrupts!();
        if first.as_ref().is_none_or(|(entry, _)| *entry != a) {
            first = Some((a, seen(a)));
        }
        if let Some((_, Some((row, values)))) = &first
            && let Some((other, other_values)) = seen(b)
            && scope.equal(values, &other_values)
        {
            found.push(in_order([*row, other], distance));
        }
    }
}
