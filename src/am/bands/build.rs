//! Building an index on signatures: the rows of each band, sorted and written one band after the
//! other.
use core::ffi::c_void;

use neardup_blocktree::bands::Bands;
use neardup_blocktree::build::build_bands;
use neardup_blocktree::sort::ExternalSort;
use pgrx::{PgSqlErrorCode, pg_guard, pg_sys};

use super::{expect_length, scheme_hash, with_signature};
use crate::am::keys::Layout;
use crate::am::options::BuildOptions;
use crate::am::progress::{NULL_MEMORY, PHASE_SCAN, PHASE_WRITE, Writer, report, report_table};
use crate::am::strategies;
use crate::pg::errors::UserError;
use crate::pg::memory::maintenance_work_mem;
use crate::pg::rel::Rel;
use crate::pg::tid::tid_of;
use crate::storage::bulk::BulkWriter;
use crate::types::signature::near_duplicate;

/// State of the scan of the table.
struct Collected<const N: usize> {
    layout: Layout,
    bands: Bands,
    writer: Writer,
    rows: Vec<ExternalSort<Writer, N>>,
    nulls: ExternalSort<Writer, N>,
}

/// Builds an index with keys of `N` words and returns the rows seen and the rows indexed.
///
/// # Safety
/// Open relations from the server, of an index on signatures that nobody else sees yet.
pub unsafe fn build<const N: usize>(
    layout: Layout,
    heap: pg_sys::Relation,
    index: pg_sys::Relation,
    index_info: *mut pg_sys::IndexInfo,
) -> (f64, f64) {
    // SAFETY: the caller's promise. The collected rows outlive the scan that fills them.
    unsafe {
        let options = BuildOptions::of(index);
        let bands = options.bands();
        check_exclusion(&bands, &layout, index_info);
        let memory = maintenance_work_mem();
        let writer = BulkWriter::new(
            index,
            pg_sys::ForkNumber::MAIN_FORKNUM,
            report_table as fn(usize, usize),
        );
        let rows = (0..bands.count())
            .map(|_| ExternalSort::new(memory / bands.count()))
            .collect();
        let mut collected = Collected::<N> {
            layout,
            bands,
            writer,
            rows,
            nulls: ExternalSort::new(NULL_MEMORY),
        };
        report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
        let heap_tuples = pg_sys::table_index_build_scan(
            heap,
            index,
            index_info,
            true,
            true,
            Some(collect::<N>),
            (&raw mut collected).cast(),
            core::ptr::null_mut(),
        );
        let Collected {
            bands,
            mut writer,
            mut rows,
            mut nulls,
            ..
        } = collected;
        let index_tuples = (rows[0].len() + nulls.len()) as f64;
        report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
        report_table(0, bands.count());
        build_bands(&mut writer, &bands, &mut rows, &mut nulls, options.fill);
        writer.finish();
        (heap_tuples, index_tuples)
    }
}

/// Writes an index without rows.
///
/// # Safety
/// The options are those of an index on signatures with keys of `N` words.
pub unsafe fn write_empty<const N: usize>(writer: &mut Writer, options: &BuildOptions) {
    let bands = options.bands();
    let mut rows: Vec<ExternalSort<Writer, N>> =
        (0..bands.count()).map(|_| ExternalSort::new(0)).collect();
    build_bands(
        writer,
        &bands,
        &mut rows,
        &mut ExternalSort::new(0),
        options.fill,
    );
}

/// A constraint looks its rows up at each insert, and must find them all: an index whose bands do
/// not guarantee that would be read whole.
unsafe fn check_exclusion(bands: &Bands, layout: &Layout, index_info: *mut pg_sys::IndexInfo) {
    // SAFETY: the server's description of the index, with a strategy for each column if it is for
    // a constraint.
    let excludes_near = unsafe {
        let strategies = (*index_info).ii_ExclusionStrats;
        !strategies.is_null() && *strategies.add(layout.scope_columns) == strategies::NEAR
    };
    let needed = near_duplicate(bands.hashes());
    if excludes_near && bands.guaranteed() < needed {
        UserError::new(
            PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
            "an exclusion constraint with ~= needs bands that find all signatures of \
             similarity 0.8",
        )
        .detail(format!(
            "With {} bands those of up to {} mismatches are found; of {} values {needed} may \
             differ.",
            bands.count(),
            bands.guaranteed(),
            bands.hashes()
        ))
        .hint(format!(
            "Use at least {} bands, or leave out the options.",
            needed + 1
        ))
        .raise();
    }
}

/// Takes one row of the table.
#[pg_guard]
unsafe extern "C-unwind" fn collect<const N: usize>(
    index: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    isnull: *mut bool,
    _tuple_is_alive: bool,
    state: *mut c_void,
) {
    // SAFETY: the server passes a row and what `build` gave it.
    unsafe {
        let Collected {
            layout,
            bands,
            writer,
            rows,
            nulls,
        } = &mut *state.cast::<Collected<N>>();
        let tid = tid_of(*tid);
        let scope = layout.row_scope(Rel::new(index), values, isnull);
        if *isnull.add(layout.scope_columns) {
            nulls.push(writer, Bands::row(scope, &[0; 2]), tid);
            return;
        }
        with_signature(*values.add(layout.scope_columns), |signature| {
            expect_length(Rel::new(index), bands, signature);
            let (kind, sketch) = (scheme_hash(signature), bands.sketch(signature.values));
            for (band, rows) in rows.iter_mut().enumerate() {
                let key = bands.key(band, signature.values, kind, scope, &sketch);
                rows.push(writer, key, tid);
            }
        });
    }
}
