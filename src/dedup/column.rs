//! Fingerprint column of a table. A table scan reads it for the histogram of a sample of rows, so
//! no index is needed.
use core::ffi::CStr;

use neardup_blocktree::crowded_centers::Nearness;
use neardup_blocktree::key::{Key, Tid, distance};
use neardup_blocktree::sort::ExternalSort;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::bound::{Bound, FingerprintBound};
use super::distance_counts::Counts;
use super::estimate::SimilarityEstimate;
use super::row_filter::Wanted;
use super::row_sample::{RowComparison, VisitBatch, count_by_sample};
use super::source::open_table;
use crate::am::keys::fingerprint_words;
use crate::am::keys::with_words;
use crate::planner::catalog::catalog;
use neardup_pg::acl;
use neardup_pg::caller_sql::Condition;
use neardup_pg::catalog::base_type;
use neardup_pg::errors::UserError;
use neardup_pg::memory::work_mem;
use neardup_pg::rel::OpenRelation;
use neardup_pg::slot::for_each_row;
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::tid::tid_of;

/// Number of scanned rows that are compared with the sample at once.
const BATCH_ROWS: usize = 1024;

/// Fingerprint column of an open table. The lock on the table lasts until the transaction ends.
pub struct Column {
    table: OpenRelation,
    /// Number of the column, from 1.
    number: i16,
    /// Number of 64-bit words of a fingerprint.
    words: usize,
    estimate: SimilarityEstimate,
}

impl Column {
    /// Opens the table `oid` to read its fingerprint column `name`. Without a name, reads the only
    /// fingerprint column. Raises an error if the table has several and `name` is `None`, or if the
    /// user may not read the column.
    ///
    /// Returns `None` if there is no such column. Also returns `None` if the named column (without
    /// a name, any column) has signatures and `bound` is not a radius. In both cases, the caller
    /// must search an index instead. `function` is one of the extension's functions, in whose
    /// schema the extension's types are found.
    pub fn open(
        function: pg_sys::Oid,
        oid: pg_sys::Oid,
        name: Option<&CStr>,
        bound: Option<Bound>,
    ) -> Option<Self> {
        let opened = open_table(oid);
        let table = opened.rel();
        acl::check_reachable(table);
        let is_signature = |column: &pg_sys::FormData_pg_attribute| {
            name.is_none_or(|name| *name == *table.column_name(column.attnum))
                && is_signature_type(column.atttypid, function)
        };
        let has_signatures = table.attributes().any(|column| is_signature(&column));
        if has_signatures && !matches!(bound, Some(Bound::Radius(_))) {
            return None;
        }
        let found: Vec<(i16, usize)> = (table.attributes())
            .filter_map(|column| {
                let is_named = name.is_some_and(|name| *name == *table.column_name(column.attnum));
                let words = words_of(column.atttypid, is_named, function)?;
                (name.is_none() || is_named).then_some((column.attnum, words))
            })
            .collect();
        let (number, words) = match found[..] {
            [one] => one,
            [] => return None,
            _ => several_columns(),
        };
        acl::check_columns(table, &[number]);
        let estimate = SimilarityEstimate::from_column(function, table, number);
        Some(Column {
            table: opened,
            number,
            words,
            estimate,
        })
    }

    /// Converts a caller's bound to the bound of a search in the column.
    pub fn bound(&self, bound: Bound) -> FingerprintBound {
        let name = || {
            let name = self.table.rel().column_name(self.number);
            format!("column \"{}\"", name.to_string_lossy())
        };
        FingerprintBound::new(bound, self.words as u32 * 64, self.estimate, name)
    }

    /// Compares `rows` randomly chosen rows with all rows of the table, and adds the near pairs to
    /// `counts`. Only rows that meet `filter` take part. With `is_distinct`, only one row of each
    /// distinct fingerprint takes part.
    pub fn sample(
        &self,
        counts: Counts,
        rows: usize,
        is_distinct: bool,
        filter: Option<&Condition>,
    ) -> Counts {
        let mut wanted = match filter {
            Some(filter) => {
                filter.check(self.table.rel());
                Wanted::rows(filter, self.table.rel(), &mut TempSpace)
            }
            None => Wanted::All,
        };
        with_words!(self.words, N => {
            let mut for_each = |visit: &mut dyn FnMut(Key<N>, Tid)| {
                self.for_each::<N>(|key, row| {
                    if wanted.contains(&mut TempSpace, row) {
                        visit(key, row);
                    }
                });
            };
            let mut distinct = is_distinct.then(|| {
                let mut sort = ExternalSort::<TempSpace, N>::new(work_mem());
                for_each(&mut |key, tid| sort.push(&mut TempSpace, key, tid));
                sort
            });
            let for_each_batch = |visit: &mut dyn FnMut(&[Key<N>], &[Tid])| match &mut distinct {
                Some(sort) => in_batches(|each| for_each_distinct(sort, each), visit),
                None => in_batches(&mut for_each, visit),
            };
            let nearness = Nearness {
                radius: counts.most(),
                scope_words: 0,
            };
            count_by_sample(&mut ColumnComparison, nearness, for_each_batch, counts, rows)
        })
    }

    /// Visits the fingerprint and the address of each row that the active snapshot sees. Skips rows
    /// whose fingerprint is NULL.
    fn for_each<const N: usize>(&self, mut each: impl FnMut(Key<N>, Tid)) {
        for_each_row(self.table.rel(), |row| {
            if let Some(value) = row.get(self.number) {
                each(fingerprint_words(value), tid_of(row.address()));
            }
        });
    }
}

/// Comparison of two fingerprints from a table scan. The scan returns only visible rows, so no row
/// has to be fetched for the comparison.
struct ColumnComparison;

impl<const N: usize> RowComparison<N> for ColumnComparison {
    type Row = ();

    fn find(&mut self, row: Tid) -> Option<(Tid, ())> {
        Some((row, ()))
    }

    fn line(&self, [a, b]: [&Key<N>; 2], _: [&(); 2]) -> Option<u32> {
        Some(distance(a, b, 0))
    }
}

/// Collects the rows that `for_each` visits into batches of [`BATCH_ROWS`] rows, and calls `visit`
/// for each batch. The last batch may be smaller or empty.
fn in_batches<const N: usize>(
    for_each: impl FnOnce(&mut dyn FnMut(Key<N>, Tid)),
    visit: VisitBatch<N>,
) {
    let (mut keys, mut rows) = (Vec::new(), Vec::new());
    for_each(&mut |key, row| {
        keys.push(key);
        rows.push(row);
        if keys.len() == BATCH_ROWS {
            visit(&keys, &rows);
            keys.clear();
            rows.clear();
        }
    });
    visit(&keys, &rows);
}

/// Calls `visit` once for each distinct fingerprint in `sort`, with the fingerprint and the address
/// of the first row that has it.
fn for_each_distinct<const N: usize>(
    sort: &mut ExternalSort<TempSpace, N>,
    visit: &mut dyn FnMut(Key<N>, Tid),
) {
    let mut last = None;
    sort.in_order(&mut TempSpace, None, |_, entry| {
        if last.replace(entry.key) != Some(entry.key) {
            visit(entry.key, Tid::from_packed(entry.tid));
        }
    });
}

/// Returns whether a column type is the signature type or a domain over it. `function` is one of
/// the extension's functions.
fn is_signature_type(column_type: pg_sys::Oid, function: pg_sys::Oid) -> bool {
    let column_type = base_type(column_type);
    catalog(function).is_some_and(|catalog| {
        (catalog.by_value(column_type)).is_some_and(|searched| searched.metric.is_jaccard())
    })
}

/// Returns the number of 64-bit words of a fingerprint type, or `None` for other types. Accepts
/// `bigint` only if `named` is true, which means that the caller named the column. `function` is
/// one of the extension's functions.
fn words_of(column_type: pg_sys::Oid, named: bool, function: pg_sys::Oid) -> Option<usize> {
    let column_type = base_type(column_type);
    if column_type == pg_sys::INT8OID && !named {
        return None;
    }
    let catalog = catalog(function)?;
    let metric = catalog.by_value(column_type)?.metric;
    metric.is_hamming().then(|| metric.words())
}

/// Raises error 42702: the table has several fingerprint columns, and the caller named none of
/// them.
fn several_columns() -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_AMBIGUOUS_COLUMN,
        "the table has several fingerprint columns",
    )
    .hint("Pass the name of one of these columns as the argument \"column_name\".")
    .raise()
}
