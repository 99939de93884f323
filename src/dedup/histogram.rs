//! `neardup_distance_histogram`: the number of pairs at each distance or similarity, with examples.
use neardup_blocktree::filter;
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::pairs::KeyOrderScan;
use pgrx::pg_sys;

use super::bound::{Bound, FingerprintBound, SearchBound, SignatureBound, float8};
use super::column::Column;
use super::distance_counts::{BottomKSample, Counts, Line, mix};
use super::pairs::{FingerprintPairs, PairSearch, SignaturePairs};
use super::row_filter::Wanted;
use super::scope::{ScopeColumns, Values};
use super::signatures::hashes;
use super::signatures::histogram::{line, sample, similarity_of_line};
use super::source::find_index;
use crate::am::index::{Index, words_of};
use crate::am::keys::{is_on_signatures, with_words};
use crate::pg::caller_sql::Condition;
use crate::pg::catalog::relation_kind;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::locked_index::LockedIndex;
use crate::pg::order_by::tid_array;
use crate::pg::srf::SetReturning;
use crate::storage::heap_fetch::{HeapFetch, note_read};
use crate::storage::temp::TempSpace;

export! {
    guarded "neardup_distance_histogram" => histogram;
}

/// Largest distance of fingerprints that is shown if the caller names no bound.
const DEFAULT_RADIUS: Bound = Bound::Radius(16);
/// Least similarity of signatures that is shown if the caller names no bound.
const DEFAULT_SIMILARITY: Bound = Bound::Similarity(0.5);

/// Bits of the widest fingerprint.
const WIDEST: u32 = 256;
/// The most rows of a sample: each is compared with every row of the table.
const MOST_ROWS: i32 = 1_000_000;
/// The most pairs that are shown of each distance.
const MOST_EXAMPLES: i32 = 1000;

/// Arguments of a caller but for the relation and the bound.
struct HistogramArguments {
    /// Rows that are compared with all; `None` counts all pairs.
    sample: Option<usize>,
    /// The most pairs that are shown of each distance.
    examples: usize,
    /// One row of each group of equals takes part.
    is_distinct: bool,
    /// The rows that take part; all without it.
    filter: Option<Condition>,
}

impl HistogramArguments {
    /// No pairs yet, of distances up to `most`.
    fn counts(&self, most: u32) -> Counts {
        Counts::new(most, self.examples)
    }
}

/// `neardup_distance_histogram(relation, radius, similarity, sample_rows, column_name, examples,
/// distinct_values, filter)`.
fn histogram(call: &mut Call) -> pg_sys::Datum {
    call.return_set(|call| {
        for (n, name) in [(0, "relation"), (5, "examples")] {
            if call.is_null(n) {
                UserError::null_not_allowed(format!("{name} must not be NULL")).raise();
            }
        }
        let (relation, bound) = (call.oid(0), Bound::read(call, [1, 2]));
        let sample = (!call.is_null(3)).then(|| call.int4(3));
        let column = call.name(4);
        let column = column.as_deref();
        if sample.is_some_and(|rows| !(1..=MOST_ROWS).contains(&rows)) {
            UserError::invalid_parameter(format!(
                "sample_rows must be between 1 and {MOST_ROWS}, or NULL"
            ))
            .raise();
        }
        let arguments = HistogramArguments {
            sample: sample.map(|rows| rows as usize),
            examples: examples_argument(call.int4(5)),
            is_distinct: !call.is_null(6) && call.bool(6),
            filter: call.text(7).map(|text| Condition::parse("filter", &text)),
        };
        let function = call.function_oid();
        let is_table = matches!(
            relation_kind(relation),
            pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW
        );
        // A table of fingerprints needs no index.
        let of_column = match arguments.sample {
            Some(rows) if is_table => {
                Column::open(function, relation, column, bound).map(|column| (column, rows))
            }
            _ => None,
        };
        let (counts, bound) = match of_column {
            Some((column, rows)) => {
                let bound = column.bound(bound.unwrap_or(DEFAULT_RADIUS));
                let counts = arguments.counts(bound.radius.min(WIDEST));
                let filter = arguments.filter.as_ref();
                let counts = column.sample(counts, rows, arguments.is_distinct, filter);
                (counts, SearchBound::Fingerprints(bound))
            }
            None => {
                let index = find_index(function, relation, column, bound);
                count_index(function, index, bound, &arguments)
            }
        };
        Rings {
            lines: counts.lines().into_iter(),
            bound,
        }
    })
}

struct Rings {
    lines: std::vec::IntoIter<Line>,
    bound: SearchBound,
}

impl SetReturning for Rings {
    fn next(&mut self, columns: &mut Vec<Option<pg_sys::Datum>>) -> bool {
        let Some(line) = self.lines.next() else {
            return false;
        };
        let (a, b): (Vec<Tid>, Vec<Tid>) = line.shown.into_iter().unzip();
        columns.extend(match self.bound {
            SearchBound::Fingerprints(bound) => bound.columns(line.distance),
            SearchBound::Signatures(_) => [None, Some(float8(similarity_of_line(line.distance)))],
        });
        columns.push(Some(pg_sys::Datum::from(line.pairs)));
        columns.push(Some(crate::pg::varlena::build(&[line.bar.as_bytes()])));
        columns.push(Some(tid_array(&a)));
        columns.push(Some(tid_array(&b)));
        true
    }
}

/// The number of pairs that are shown of each distance.
fn examples_argument(examples: i32) -> usize {
    if !(0..=MOST_EXAMPLES).contains(&examples) {
        UserError::invalid_parameter(format!("examples must be between 0 and {MOST_EXAMPLES}"))
            .detail(format!("It is {examples}."))
            .raise();
    }
    examples as usize
}

/// Counts the pairs of an index, all or by a sample.
fn count_index(
    function: pg_sys::Oid,
    index: pg_sys::Oid,
    bound: Option<Bound>,
    arguments: &HistogramArguments,
) -> (Counts, SearchBound) {
    let relations = LockedIndex::open_for_reading(index);
    let bound = bound.unwrap_or_else(|| match is_on_signatures(relations.index()) {
        true => DEFAULT_SIMILARITY,
        false => DEFAULT_RADIUS,
    });
    let bound = SearchBound::new(function, &relations, bound);
    if let Some(filter) = &arguments.filter {
        filter.check(relations.table());
    }
    note_read(relations.index());
    let counts = with_words!(words_of(relations.index()), N => {
        let index = Index::<N>::open(relations.index());
        match bound {
            SearchBound::Signatures(bound) => {
                count_signatures(&index, &relations, bound, arguments)
            }
            SearchBound::Fingerprints(bound) => {
                count_fingerprints(&index, &relations, bound, arguments)
            }
        }
    });
    (counts, bound)
}

fn count_signatures<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    bound: SignatureBound,
    arguments: &HistogramArguments,
) -> Counts {
    let (hashes, most) = (hashes(index), bound.mismatches);
    let mut counts = arguments.counts(line(most, hashes));
    if let Some(rows) = arguments.sample {
        let filter = arguments.filter.as_ref();
        let wanted = Wanted::new(filter, index, relations, &mut TempSpace);
        return sample(
            index,
            relations,
            counts,
            most,
            rows,
            (wanted, arguments.is_distinct),
        );
    }
    let filter = arguments.filter.as_ref();
    let mut pairs = SignaturePairs::all(relations, bound, filter, arguments.is_distinct);
    while let Some(([a, b], mismatches)) = pairs.next_pair() {
        counts.add(a, b, line(mismatches as usize, hashes));
    }
    counts
}

fn count_fingerprints<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    bound: FingerprintBound,
    arguments: &HistogramArguments,
) -> Counts {
    let most = bound.radius.min(WIDEST);
    let files = &mut TempSpace;
    let mut wanted = Wanted::new(arguments.filter.as_ref(), index, relations, files);
    if arguments.is_distinct {
        wanted = wanted.one_of_equals(index, relations, files);
    }
    let mut counts = arguments.counts(most);
    if let Some(rows) = arguments.sample {
        return sample_of(index, relations, &mut wanted, counts, rows);
    }
    let mut pairs = FingerprintPairs::new(relations, most, wanted);
    pairs.give_all(&mut |[a, b], distance| counts.add(a, b, distance));
    counts
}

fn sample_of<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    wanted: &mut Wanted,
    mut counts: Counts,
    rows: usize,
) -> Counts {
    let (most, files) = (counts.most(), &mut TempSpace);
    let mut seen = Seen::new(relations, index);
    let tree = index.tree();
    let mut chosen_rows = BottomKSample::new(rows);
    let mut all = 0u64;
    let mut walk = KeyOrderScan::new(index.block_layout.clone());
    while index.or_corrupt(walk.step(&tree, &mut |key, tid| {
        if wanted.contains(files, tid) {
            all += 1;
            chosen_rows.offer(mix(tid.packed()), (key, tid));
        }
    })) {}
    let chosen: Vec<(Key<N>, Tid)> = chosen_rows.into_vec();
    let asked = chosen.len();
    let sample: Vec<(Key<N>, Tid, SeenRow)> = (chosen.into_iter())
        .filter_map(|(key, entry)| Some((key, entry, seen.find(entry)?)))
        .collect();
    if sample.is_empty() {
        return counts;
    }
    // Rows that the snapshot sees, by the share of them in the sample. Each pair has two ends.
    let visible = all as f64 * sample.len() as f64 / asked as f64;
    counts.weight = visible / sample.len() as f64 / 2.0;
    let skipped = index.layout.scope_words();
    let mut walk = KeyOrderScan::new(index.block_layout.clone());
    let (mut keys, mut tids, mut found) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        keys.clear();
        tids.clear();
        let more = index.or_corrupt(walk.step(&tree, &mut |key, tid| {
            if wanted.contains(files, tid) {
                keys.push(key);
                tids.push(tid);
            }
        }));
        let mut known: Vec<Option<Option<SeenRow>>> = vec![None; keys.len()];
        for (key, entry, row) in &sample {
            found.clear();
            filter::within_keys(&keys, key, skipped, most, &mut found);
            for &i in &found {
                let i = usize::from(i);
                if tids[i] == *entry || keys[i][..skipped] != key[..skipped] {
                    continue;
                }
                let other = known[i].get_or_insert_with(|| seen.find(tids[i]));
                if let Some(other) = other
                    && seen.in_one_scope(row, other)
                {
                    counts.add(row.row, other.row, distance(key, &keys[i], skipped));
                }
            }
        }
        pgrx::check_for_interrupts!();
        if !more {
            return counts;
        }
    }
}

/// A row that can make pairs: the snapshot sees it, and no column of its scope is NULL.
#[derive(Clone)]
struct SeenRow {
    row: Tid,
    /// Its scope, if the index has one.
    scope: Values,
}

/// Looks up rows with their scopes.
struct Seen<'a> {
    rows: HeapFetch<'a>,
    scope: Option<ScopeColumns<'a>>,
}

impl<'a> Seen<'a> {
    fn new<const N: usize>(relations: &'a LockedIndex, index: &Index<N>) -> Self {
        Seen {
            rows: HeapFetch::new(relations.table()),
            scope: ScopeColumns::of(relations, &index.layout),
        }
    }

    fn find(&mut self, entry: Tid) -> Option<SeenRow> {
        let row = self.rows.find(entry)?;
        let scope = match &self.scope {
            Some(scope) => scope.values(self.rows.slot())?,
            None => Values::new(),
        };
        Some(SeenRow { row, scope })
    }

    fn in_one_scope(&self, a: &SeenRow, b: &SeenRow) -> bool {
        (self.scope.as_ref()).is_none_or(|scope| scope.equal(&a.scope, &b.scope))
    }
}
