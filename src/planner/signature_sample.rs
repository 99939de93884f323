//! ANALYZE of columns of signatures.
//!
//! The server keeps no common values and no histogram of values above 1,024 bytes, as signatures of
//! 253 hashes and more are. Of these the first 128 values are kept: a signature itself, of as many
//! positions as the usual one has, so that estimates are as good as for that. They stand under
//! numbers of their own in pg_statistic, where the server's estimates for `=` do not take them for
//! the values of the column.
use core::cell::Cell;

use pgrx::pg_sys::{Datum, VacAttrStats};
use pgrx::{pg_guard, pg_sys};

use crate::pg::fmgr::{Call, export};
use crate::pg::memory::maintenance_work_mem;
use crate::pg::varlena;
use crate::types::signature::Signature;

/// Values that are kept of a long signature.
pub const KEPT: usize = 128;
/// Bytes above which the server keeps no values: `WIDTH_THRESHOLD` of its analyze.c.
const WIDE: usize = 1024;

// From the range that pg_statistic.h leaves to private use.
/// The most common shortened values, with their shares: as `STATISTIC_KIND_MCV`.
pub const COMMON_KIND: u32 = 26_161;
/// Shortened values drawn evenly from the others: as `STATISTIC_KIND_HISTOGRAM`.
pub const SAMPLE_KIND: u32 = 26_162;

/// The server's own analysis of a column, which runs on the shortened values.
struct Standard {
    compute: pg_sys::AnalyzeAttrComputeStatsFunc,
    data: *mut core::ffi::c_void,
}

/// The state of the column that is being analyzed: the server passes none to the function that
/// fetches values.
#[derive(Clone, Copy)]
struct Fetching {
    fetch: pg_sys::AnalyzeAttrFetchFunc,
    /// Bytes that shortened values may still take.
    budget: usize,
    /// Stored bytes of all values, and their number.
    stored: (f64, f64),
    has_shortened: bool,
}

thread_local! {
    static FETCHING: Cell<Option<Fetching>> = const { Cell::new(None) };
}

/// `typanalyze` of signatures.
fn analyze(call: &mut Call) -> Datum {
    let stats: *mut VacAttrStats = call.arg(0).cast_mut_ptr();
    // SAFETY: the server passes the column's statistics, whose memory lives as long as they.
    unsafe {
        let wanted = pg_sys::std_typanalyze(stats);
        if wanted {
            let standard = pg_sys::palloc(size_of::<Standard>()).cast::<Standard>();
            standard.write(Standard {
                compute: (*stats).compute_stats,
                data: (*stats).extra_data,
            });
            (*stats).extra_data = standard.cast();
            (*stats).compute_stats = Some(compute);
        }
        Datum::from(wanted)
    }
}

/// Computes the statistics of a column from a sample of its rows.
#[pg_guard]
unsafe extern "C-unwind" fn compute(
    stats: *mut VacAttrStats,
    fetch: pg_sys::AnalyzeAttrFetchFunc,
    rows: core::ffi::c_int,
    all_rows: f64,
) {
    // SAFETY: `analyze` has set this function beside its data.
    unsafe {
        let standard = (*stats).extra_data.cast::<Standard>();
        FETCHING.set(Some(Fetching {
            fetch,
            // The server keeps the rows of the sample, too.
            budget: maintenance_work_mem() / 2,
            stored: (0.0, 0.0),
            has_shortened: false,
        }));
        (*stats).extra_data = (*standard).data;
        if let Some(compute) = (*standard).compute {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                compute(stats, Some(fetch_short), rows, all_rows)
            });
        }
        (*stats).extra_data = standard.cast();
        let Some(Fetching {
            has_shortened: true,
            stored: (bytes, count),
            ..
        }) = FETCHING.take()
        else {
            return;
        };
        (*stats).stawidth = (bytes / count) as i32;
        for kind in &mut (*stats).stakind {
            *kind = match *kind as u32 {
                pg_sys::STATISTIC_KIND_MCV => COMMON_KIND as i16,
                pg_sys::STATISTIC_KIND_HISTOGRAM => SAMPLE_KIND as i16,
                _ => *kind,
            };
        }
    }
}

/// The value of a row of the sample, shortened if the server would not keep it.
#[pg_guard]
unsafe extern "C-unwind" fn fetch_short(
    stats: pg_sys::VacAttrStatsP,
    row: core::ffi::c_int,
    is_null: *mut bool,
) -> Datum {
    // SAFETY: `compute` runs this with the state of the column; a value that is not NULL is a
    // signature.
    unsafe {
        *is_null = true;
        let Some(mut state) = FETCHING.get() else {
            return Datum::null();
        };
        let Some(fetch) = state.fetch else {
            return Datum::null();
        };
        let value = pg_sys::ffi::pg_guard_ffi_boundary(|| fetch(stats, row, is_null));
        if *is_null {
            return value;
        }
        state.stored.0 += pgrx::varlena::varsize_any(value.cast_mut_ptr()) as f64;
        state.stored.1 += 1.0;
        let size = pg_sys::VARHDRSZ + Signature::size(KEPT);
        let is_wide = pg_sys::toast_raw_datum_size(value) > WIDE;
        let mut result = value;
        // Beyond the budget the server takes the value for one that is too wide.
        if is_wide
            && state.budget >= size
            && let Some(short) = shortened(value)
        {
            state.budget -= size;
            state.has_shortened = true;
            result = short;
        }
        FETCHING.set(Some(state));
        result
    }
}

/// The first values of a signature, of which no more is read from TOAST.
///
/// # Safety
/// `value` is a signature of more values than that.
unsafe fn shortened(value: Datum) -> Option<Datum> {
    // SAFETY: a slice of a varlena is a varlena with a plain header.
    unsafe {
        let size = Signature::size(KEPT) as i32;
        let slice = pg_sys::pg_detoast_datum_slice(value.cast_mut_ptr(), 0, size);
        let short = Signature::beginning(varlena::aligned(Datum::from(slice)), KEPT);
        let short = short.map(Signature::into_datum);
        pg_sys::pfree(slice.cast());
        short
    }
}

export! {
    guarded "minhash_signature_analyze" => analyze;
}
