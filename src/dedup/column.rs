//! The fingerprints of a table's column, without an index.
use core::ffi::CStr;

use neardup_blocktree::filter;
use neardup_blocktree::key::{Key, Tid, distance};
use pgrx::{PgSqlErrorCode, pg_sys};

use super::distance_counts::{BottomKSample, Counts, mix};
use crate::am::keys::with_words;
use crate::pg::acl;
use crate::pg::compat;
use crate::pg::errors::UserError;
use crate::pg::tid::tid_of;
use crate::planner::catalog::catalog;

/// Rows that are compared at once.
const BATCH: usize = 1024;

/// A column of fingerprints of an open table. The lock stays until the transaction ends.
pub struct Column {
    table: pg_sys::Relation,
    number: i16,
    words: usize,
}

impl Column {
    /// Opens a table for reading the named column or, without a name, the only one of a type of
    /// fingerprints. Raises an error unless the caller may see it. The function called is needed to
    /// find the extension's types.
    pub fn open(function: pg_sys::Oid, oid: pg_sys::Oid, name: Option<pg_sys::Datum>) -> Self {
        // SAFETY: a table, as the caller has looked up; a name is a C string of fixed size.
        unsafe {
            acl::check_some(oid);
            let table = pg_sys::table_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            acl::check_reachable(table);
            let named = name.map(|name| CStr::from_ptr(name.cast_mut_ptr()));
            let count = (*(*table).rd_att).natts as usize;
            let found: Vec<(i16, usize)> = (0..count)
                .map(|i| &*compat::attribute((*table).rd_att, i))
                .filter(|column| !column.attisdropped)
                .filter_map(|column| {
                    let is_named = named
                        .is_some_and(|name| CStr::from_ptr(column.attname.data.as_ptr()) == name);
                    let words = words_of(column.atttypid, is_named, function)?;
                    (named.is_none() || is_named).then_some((column.attnum, words))
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
                table,
                number,
                words,
            }
        }
    }

    /// Compares a sample of the rows with all of them.
    pub fn sample(&self, most: u32, rows: usize) -> Counts {
        with_words!(self.words, N => self.sample_of::<N>(most, rows))
    }

    fn sample_of<const N: usize>(&self, most: u32, rows: usize) -> Counts {
        let mut chosen_rows = BottomKSample::new(rows);
        let mut all = 0u64;
        self.for_each::<N>(|key, tid| {
            all += 1;
            chosen_rows.offer(mix(tid.packed()), (key, tid));
        });
        let sample: Vec<(Key<N>, Tid)> = chosen_rows.into_vec();
        let mut counts = Counts::new(most);
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
        // SAFETY: the table is open; the column's values are `N` words, by value if it is one.
        unsafe {
            let snapshot = pg_sys::GetActiveSnapshot();
            let slot = pg_sys::table_slot_create(self.table, core::ptr::null_mut());
            let scan = pg_sys::table_beginscan(self.table, snapshot, 0, core::ptr::null_mut());
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            while pg_sys::table_scan_getnextslot(scan, forward, slot) {
                pgrx::check_for_interrupts!();
                let mut null = false;
                let value = pg_sys::slot_getattr(slot, i32::from(self.number), &raw mut null);
                if null {
                    continue;
                }
                let mut key = [0; N];
                match N {
                    1 => key[0] = value.value() as u64,
                    _ => {
                        let words = core::slice::from_raw_parts(value.cast_mut_ptr::<u64>(), N);
                        key.copy_from_slice(words);
                    }
                }
                each(key, tid_of((*slot).tts_tid));
            }
            pg_sys::table_endscan(scan);
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
    }
}

impl Drop for Column {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened by us.
            unsafe { pg_sys::table_close(self.table, pg_sys::NoLock as pg_sys::LOCKMODE) }
        }
    }
}

/// The words of a type of fingerprints, those of `bigint` only if it was asked for; `None` for all
/// other types. The function is one of the extension's.
unsafe fn words_of(column_type: pg_sys::Oid, named: bool, function: pg_sys::Oid) -> Option<usize> {
    // SAFETY: a catalogue look-up.
    let column_type = unsafe { pg_sys::getBaseType(column_type) };
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
        .hint("Name a column of type fingerprint, fingerprint128, fingerprint256 or bigint as column_name.")
        .raise()
}
