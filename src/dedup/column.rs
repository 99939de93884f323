//! The fingerprints of a table's column, without an index.
use core::ffi::CStr;

use neardup_blocktree::filter;
use neardup_blocktree::key::{Key, Tid, distance};
use pgrx::{PgSqlErrorCode, pg_sys};

use super::distance_counts::{BottomKSample, Counts, mix};
use crate::am::keys::fingerprint_words;
use crate::am::keys::with_words;
use crate::pg::acl;
use crate::pg::catalog::base_type;
use crate::pg::errors::UserError;
use crate::pg::rel::OpenRelation;
use crate::pg::slot::for_each_row;
use crate::pg::tid::tid_of;
use crate::planner::catalog::catalog;

/// Rows that are compared at once.
const BATCH: usize = 1024;

/// A column of fingerprints of an open table. The lock stays until the transaction ends.
pub struct Column {
    table: OpenRelation,
    number: i16,
    words: usize,
}

impl Column {
    /// Opens a table for reading the named column or, without a name, the only one of a type of
    /// fingerprints. Raises an error unless the caller may see it. The function called is needed to
    /// find the extension's types.
    pub fn open(function: pg_sys::Oid, oid: pg_sys::Oid, name: Option<&CStr>) -> Self {
        acl::check_some(oid);
        let opened = OpenRelation::table(oid, pg_sys::AccessShareLock);
        let table = opened.rel();
        acl::check_reachable(table);
        let found: Vec<(i16, usize)> = (table.attributes())
            .filter_map(|column| {
                let is_named = name.is_some_and(|name| *name == *table.column_name(column.attnum));
                let words = words_of(column.atttypid, is_named, function)?;
                (name.is_none() || is_named).then_some((column.attnum, words))
            })
            .collect();
        let (number, words) = match found[..] {
            [one] => one,
            [] => no_column(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                "the table has no such column of fingerprints".to_owned(),
            ),
            _ => no_column(
                PgSqlErrorCode::ERRCODE_AMBIGUOUS_COLUMN,
                "the table has several columns of fingerprints".to_owned(),
            ),
        };
        acl::check_columns(table, &[number]);
        Column {
            table: opened,
            number,
            words,
        }
    }

    /// Compares a sample of the rows with all of them.
    pub fn sample(&self, counts: Counts, rows: usize) -> Counts {
        with_words!(self.words, N => self.sample_of::<N>(counts, rows))
    }

    fn sample_of<const N: usize>(&self, mut counts: Counts, rows: usize) -> Counts {
        let most = counts.most();
        let mut chosen_rows = BottomKSample::new(rows);
        let mut all = 0u64;
        self.for_each::<N>(|key, tid| {
            all += 1;
            chosen_rows.offer(mix(tid.packed()), (key, tid));
        });
        let sample: Vec<(Key<N>, Tid)> = chosen_rows.into_vec();
        // Each pair has two ends.
        counts.weight = all as f64 / sample.len().max(1) as f64 / 2.0;
        let (mut keys, mut tids, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let mut compare = |keys: &mut Vec<Key<N>>, tids: &mut Vec<Tid>| {
            for (key, row) in &sample {
                found.clear();
                filter::within_keys(keys, key, 0, most, &mut found);
                for i in found.iter().map(|&i| usize::from(i)) {
                    if tids[i] != *row {
                        counts.add(*row, tids[i], distance(key, &keys[i], 0));
                    }
                }
            }
            keys.clear();
            tids.clear();
        };
        self.for_each::<N>(|key, tid| {
            keys.push(key);
            tids.push(tid);
            if keys.len() == BATCH {
                compare(&mut keys, &mut tids);
            }
        });
        compare(&mut keys, &mut tids);
        counts
    }

    /// Gives all rows that have a fingerprint and that the active snapshot sees.
    fn for_each<const N: usize>(&self, mut each: impl FnMut(Key<N>, Tid)) {
        for_each_row(self.table.rel(), |row| {
            if let Some(value) = row.get(self.number) {
                each(fingerprint_words(value), tid_of(row.address()));
            }
        });
    }
}

/// The words of a type of fingerprints, those of `bigint` only if it was asked for; `None` for all
/// other types. The function is one of the extension's.
fn words_of(column_type: pg_sys::Oid, named: bool, function: pg_sys::Oid) -> Option<usize> {
    let column_type = base_type(column_type);
    if column_type == pg_sys::INT8OID && !named {
        return None;
    }
    let catalog = catalog(function)?;
    let hamming = catalog.by_value(column_type)?.hamming()?;
    Some(hamming.traits.bits as usize / 64)
}

/// 42703 and the like: no column to take fingerprints from.
fn no_column(code: PgSqlErrorCode, message: String) -> ! {
    UserError::new(code, message)
        .hint(
            "Name a column of type fingerprint, fingerprint128, fingerprint256 or bigint \
                   as column_name.",
        )
        .raise()
}
