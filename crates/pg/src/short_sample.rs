//! ANALYZE of columns whose values are too wide for the server's own statistics, such as
//! signatures. The server stores no common values and no histogram of wide values. This module runs
//! the server's analysis on shortened values, and stores the results under statistic kinds of this
//! extension (codes in the `stakind` columns of `pg_statistic`).
use core::cell::Cell;
use core::ffi::{c_int, c_void};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, VacAttrStats};

use super::fmgr::Call;
use super::memory::maintenance_work_mem;
use super::varlena;

/// Size in bytes above which the server's analysis keeps no value in its statistics
/// (`WIDTH_THRESHOLD` in analyze.c). Larger values are shortened.
const WIDE: usize = 1024;

/// Type of variable length whose wide values can be shortened for ANALYZE.
pub trait ShortSample {
    /// Number of bytes of a wide value that are read for [`ShortSample::shorten`], without the
    /// header. A shortened value has at most this number of bytes, without its header.
    const SIZE: usize;
    /// Statistic kind under which the most common shortened values are stored, with their
    /// frequencies. It replaces `STATISTIC_KIND_MCV`.
    const COMMON_KIND: u32;
    /// Statistic kind under which a sample of the less common shortened values is stored. The
    /// sample excludes the most common ones, and is evenly spaced in sort order. The kind replaces
    /// `STATISTIC_KIND_HISTOGRAM`.
    const SAMPLE_KIND: u32;

    /// Shortens a wide value. `beginning` has the first [`Self::SIZE`] bytes of the value, without
    /// its header. Returns the bytes of a shorter value of the same type, without a header; `None`
    /// if the value cannot be shortened, and then the server's analysis ignores it.
    fn shorten(beginning: &[u8]) -> Option<Vec<u8>>;
}

/// The server's own analysis of the column, which this module runs on shortened values.
struct Standard {
    /// The server's function that computes the statistics.
    compute: pg_sys::AnalyzeAttrComputeStatsFunc,
    /// Data that `compute` expects in `extra_data`.
    data: *mut c_void,
}

/// State of the column that is being analyzed. It is in a thread-local variable, because the
/// server's signature of [`fetch_short`] has no argument for it.
#[derive(Clone, Copy)]
struct Fetching {
    /// The server's function that fetches a sampled value.
    fetch: pg_sys::AnalyzeAttrFetchFunc,
    /// Memory left for shortened values, in bytes. When it is used up, wide values are not
    /// shortened.
    budget: usize,
    /// Stored size in bytes of all values that have been fetched so far. Divided by `count`, it is
    /// the average width.
    stored_bytes: f64,
    /// Number of values that have been fetched so far, without NULLs.
    count: f64,
    /// True if a value was shortened.
    has_shortened: bool,
}

thread_local! {
    static FETCHING: Cell<Option<Fetching>> = const { Cell::new(None) };
}

/// Body of the `typanalyze` function of the SQL type that `S` represents. The function's argument
/// is the server's description of the column to analyze. Returns the SQL boolean that the server's
/// `std_typanalyze` returns: false means that ANALYZE skips the column. Raises an internal error
/// unless the type is of variable length.
pub fn analyze<S: ShortSample>(call: &mut Call) -> Datum {
    let stats = call.internal::<VacAttrStats>(0);
    // SAFETY: the server passes the statistics of a column, with its type.
    let wanted = unsafe {
        assert_eq!((*(*stats).attrtype).typlen, -1);
        pg_sys::std_typanalyze(stats)
    };
    if wanted {
        // SAFETY: the allocated `Standard` lives as long as the statistics.
        unsafe {
            let standard = pg_sys::palloc(size_of::<Standard>()).cast::<Standard>();
            standard.write(Standard {
                compute: (*stats).compute_stats,
                data: (*stats).extra_data,
            });
            (*stats).extra_data = standard.cast();
            (*stats).compute_stats = Some(compute::<S>);
        }
    }
    Datum::from(wanted)
}

/// Computes the statistics of a column and stores them in `stats`. The server calls this function
/// with a sample of `rows` rows of the table, which has `all_rows` rows. `fetch` returns the
/// column's value in one row of the sample. If a value was shortened, the statistics get the kinds
/// of `S` and the width of the unshortened values.
#[pg_guard]
unsafe extern "C-unwind" fn compute<S: ShortSample>(
    stats: *mut VacAttrStats,
    fetch: pg_sys::AnalyzeAttrFetchFunc,
    rows: c_int,
    all_rows: f64,
) {
    FETCHING.set(Some(Fetching {
        fetch,
        // The server also keeps the sampled rows in memory.
        budget: maintenance_work_mem() / 2,
        stored_bytes: 0.0,
        count: 0.0,
        has_shortened: false,
    }));
    // SAFETY: `analyze` has set this function together with the data.
    unsafe {
        let standard = (*stats).extra_data.cast::<Standard>();
        (*stats).extra_data = (*standard).data;
        if let Some(compute) = (*standard).compute {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                compute(stats, Some(fetch_short::<S>), rows, all_rows)
            });
        }
        (*stats).extra_data = standard.cast();
    }
    let Some(state) = FETCHING.take().filter(|state| state.has_shortened) else {
        return;
    };
    // SAFETY: the server's statistics of this column.
    let stats = unsafe { &mut *stats };
    stats.stawidth = (state.stored_bytes / state.count) as i32;
    for kind in &mut stats.stakind {
        *kind = match *kind as u32 {
            pg_sys::STATISTIC_KIND_MCV => S::COMMON_KIND as i16,
            pg_sys::STATISTIC_KIND_HISTOGRAM => S::SAMPLE_KIND as i16,
            _ => *kind,
        };
    }
}

/// Fetches the column's value in the sampled row with the number `row`, and sets `is_null`.
/// Shortens a value that is so wide that the server's analysis would ignore it.
#[pg_guard]
unsafe extern "C-unwind" fn fetch_short<S: ShortSample>(
    stats: pg_sys::VacAttrStatsP,
    row: c_int,
    is_null: *mut bool,
) -> Datum {
    let state = FETCHING.get();
    let Some((mut state, fetch)) = state.and_then(|state| Some((state, state.fetch?))) else {
        // SAFETY: the server passes a pointer to a flag.
        unsafe { *is_null = true };
        return Datum::null();
    };
    // SAFETY: the server's own function, with the arguments that the server passes.
    let (value, is_null) = unsafe {
        let value = pg_sys::ffi::pg_guard_ffi_boundary(|| fetch(stats, row, is_null));
        (value, *is_null)
    };
    if is_null {
        return value;
    }
    // SAFETY: `analyze` has checked that the type is of variable length.
    let (stored, raw) = unsafe {
        let stored = pgrx::varlena::varsize_any(value.cast_mut_ptr());
        (stored, pg_sys::toast_raw_datum_size(value))
    };
    state.stored_bytes += stored as f64;
    state.count += 1.0;
    let size = pg_sys::VARHDRSZ + S::SIZE;
    let mut result = value;
    // When the memory for shortened values is used up, the value stays wide, so the server's
    // analysis ignores it.
    if raw > WIDE
        && state.budget >= size
        // SAFETY: a value of variable length.
        && let Some(short) = unsafe { shortened::<S>(value) }
    {
        state.budget -= size;
        state.has_shortened = true;
        result = short;
    }
    FETCHING.set(Some(state));
    result
}

/// Returns the shortened form of a wide value; `None` if it cannot be shortened. Reads only the
/// beginning of the value from TOAST.
///
/// # Safety
/// `value` is of a type of variable length.
unsafe fn shortened<S: ShortSample>(value: Datum) -> Option<Datum> {
    // SAFETY: a slice of a varlena is a varlena with a plain header.
    unsafe {
        let slice = pg_sys::pg_detoast_datum_slice(value.cast_mut_ptr(), 0, S::SIZE as i32);
        let short = S::shorten(varlena::aligned(Datum::from(slice)));
        pg_sys::pfree(slice.cast());
        short.map(|bytes| varlena::build(&[&bytes]))
    }
}
