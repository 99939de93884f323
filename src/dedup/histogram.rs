//! `neardup_distance_histogram`: number of pairs at each distance or similarity, with examples.
use neardup_blocktree::crowded_centers::Nearness;
use neardup_blocktree::key::{Key, Tid, distance};
use pgrx::pg_sys;

use super::bound::{Bound, FingerprintBound, SearchBound, SignatureBound, float8};
use super::column::Column;
use super::distance_counts::{Counts, Line};
use super::pairs::{FingerprintPairs, PairSearch, SignaturePairs};
use super::row_filter::Wanted;
use super::row_sample::{RowComparison, count_by_sample, for_each_leaf};
use super::scope::{ScopeColumns, Values};
use super::signatures::hashes;
use super::signatures::signature_sample::{line, sample, similarity_of_line};
use super::source::find_index;
use crate::am::index::{Index, words_of};
use crate::am::keys::{is_on_signatures, with_words};
use neardup_pg::caller_sql::Condition;
use neardup_pg::catalog::relation_kind;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::srf::SetReturning;
use neardup_pg::storage::heap_fetch::{HeapFetch, note_read};
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::tid::tid_array;

export! {
    guarded "neardup_distance_histogram" => histogram;
}

/// Maximum distance of fingerprints if the caller passes no bound.
const DEFAULT_RADIUS: Bound = Bound::Radius(16);
/// Minimum similarity of signatures if the caller passes no bound.
const DEFAULT_SIMILARITY: Bound = Bound::Similarity(0.5);

/// Number of bits of the longest fingerprint, which is the largest possible distance.
const WIDEST: u32 = 256;
/// Maximum of the argument `sample_rows`. A higher value raises an error, because each row of the
/// sample is compared with every row of the table.
const MOST_ROWS: i32 = 1_000_000;
/// Maximum of the argument `examples`. A higher value raises an error.
const MOST_EXAMPLES: i32 = 1000;

/// Arguments of `neardup_distance_histogram` without the relation and the bound.
struct HistogramArguments {
    /// Number of sampled rows, which are compared with all rows. `None` counts all pairs.
    sample: Option<usize>,
    /// Maximum number of example pairs for each distance.
    examples: usize,
    /// True if only one row of each distinct fingerprint or signature takes part.
    is_distinct: bool,
    /// Condition on the rows that take part. `None` takes all rows.
    filter: Option<Condition>,
}

impl HistogramArguments {
    /// Creates empty counts for distances from 0 to `most`.
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
                UserError::null_not_allowed(format!("\"{name}\" must not be NULL")).raise();
            }
        }
        let (relation, bound) = (call.oid(0), Bound::read(call, [1, 2]));
        let sample = (!call.is_null(3)).then(|| call.int4(3));
        let column = call.name(4);
        let column = column.as_deref();
        if sample.is_some_and(|rows| !(1..=MOST_ROWS).contains(&rows)) {
            UserError::invalid_parameter(format!(
                "\"sample_rows\" must be NULL or between 1 and {MOST_ROWS}"
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
        // A table of fingerprints can be sampled without an index.
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
        HistogramRows {
            lines: counts.lines().into_iter(),
            bound,
        }
    })
}

/// Result set of the histogram, with one row for each distance.
struct HistogramRows {
    lines: std::vec::IntoIter<Line>,
    bound: SearchBound,
}

impl SetReturning for HistogramRows {
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
        columns.push(Some(pg_sys::Datum::from(line.margin)));
        columns.push(Some(neardup_pg::varlena::build(&[line.bar.as_bytes()])));
        columns.push(Some(tid_array(&a)));
        columns.push(Some(tid_array(&b)));
        true
    }
}

/// Checks and returns the argument `examples`, the maximum number of example pairs for each
/// distance.
fn examples_argument(examples: i32) -> usize {
    if !(0..=MOST_EXAMPLES).contains(&examples) {
        UserError::invalid_parameter(format!(
            "\"examples\" must be between 0 and {MOST_EXAMPLES}"
        ))
        .detail(format!("The value is {examples}."))
        .raise();
    }
    examples as usize
}

/// Counts the pairs of rows at each distance within `bound`, in the index with the OID `index`. If
/// `arguments` asks for a sample, estimates the numbers by comparing only a sample of the rows with
/// all rows. Also returns the bound of the search, which is the default bound if `bound` is `None`.
/// `function` is the extension's function being called.
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
    let bound = SearchBound::new(function, &relations, Some(bound));
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
        return sample_fingerprints(index, relations, &mut wanted, counts, rows);
    }
    let mut pairs = FingerprintPairs::new(relations, most, wanted);
    pairs.for_each_pair(&mut |[a, b], distance| counts.add(a, b, distance));
    counts
}

/// Comparison of two index entries by their fingerprints. Fetches the rows, because only visible
/// rows in one scope form a pair.
struct FingerprintComparison<'a> {
    rows: HeapFetch<'a>,
    scope: Option<ScopeColumns<'a>>,
    scope_words: usize,
}

impl<const N: usize> RowComparison<N> for FingerprintComparison<'_> {
    /// Values of the row's scope columns. Empty if the index has no scope.
    type Row = Values;

    fn find(&mut self, entry: Tid) -> Option<(Tid, Values)> {
        let row = self.rows.find(entry)?;
        let scope = match &self.scope {
            Some(scope) => scope.values(self.rows.slot())?,
            None => Values::new(),
        };
        Some((row, scope))
    }

    fn line(&self, [a, b]: [&Key<N>; 2], [a_scope, b_scope]: [&Values; 2]) -> Option<u32> {
        let scope = self.scope.as_ref();
        scope
            .is_none_or(|scope| scope.equal(a_scope, b_scope))
            .then(|| distance(a, b, self.scope_words))
    }
}

/// Compares `sample_rows` randomly chosen entries of a fingerprint index with all entries. Adds the
/// near pairs to `counts`, and returns it. Considers only the entries in `wanted`, whose rows meet
/// the caller's filter.
fn sample_fingerprints<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    wanted: &mut Wanted,
    counts: Counts,
    sample_rows: usize,
) -> Counts {
    let nearness = Nearness {
        radius: counts.most(),
        scope_words: index.layout.scope_words(),
    };
    let mut comparison = FingerprintComparison {
        rows: HeapFetch::new(relations.table()),
        scope: ScopeColumns::from_index(relations, &index.layout),
        scope_words: nearness.scope_words,
    };
    let for_each_batch = |visit: &mut dyn FnMut(&[Key<N>], &[Tid])| {
        let is_wanted = |entry| wanted.contains(&mut TempSpace, entry);
        for_each_leaf(index, is_wanted, visit);
    };
    count_by_sample(
        &mut comparison,
        nearness,
        for_each_batch,
        counts,
        sample_rows,
    )
}
