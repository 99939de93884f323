//! `ambuild` and `ambuildempty`: a new index from a table's rows.
use core::ffi::c_void;

use neardup_blocktree::build::build as write_tree;
use neardup_blocktree::sort::ExternalSort;
use pgrx::{pg_guard, pg_sys};

use super::bands;
use super::index::name;
use super::keys::{Layout, require_hashes, with_words};
use super::options::BuildOptions;
use super::progress::{NULL_MEMORY, PHASE_SCAN, PHASE_WRITE, Writer, report, report_table};
use super::validate::require_valid_classes;
use crate::pg::memory::maintenance_work_mem;
use crate::pg::rel::Rel;
use crate::pg::tid::tid_of;
use crate::storage::bulk::BulkWriter;

/// State of the scan of the table.
struct Collected<const N: usize> {
    layout: Layout,
    writer: Writer,
    rows: ExternalSort<Writer, N>,
    nulls: ExternalSort<Writer, N>,
}

/// Builds an index of the rows that its table has.
pub unsafe fn build(
    heap: pg_sys::Relation,
    index: pg_sys::Relation,
    index_info: *mut pg_sys::IndexInfo,
) -> *mut pg_sys::IndexBuildResult {
    // SAFETY: the server passes open relations, and a fresh result is all zero.
    unsafe {
        let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
        if pg_sys::RelationGetNumberOfBlocksInFork(index, fork) != 0 {
            panic!("index {} already contains data", name(Rel::new(index)));
        }
        let layout = usable_layout(index);
        let (heap_tuples, index_tuples) = with_words!(layout.words(), N => {
            if layout.signatures {
                bands::build::build::<N>(layout, heap, index, index_info)
            } else {
                build_of::<N>(layout, heap, index, index_info)
            }
        });
        let result = pg_sys::palloc0(size_of::<pg_sys::IndexBuildResult>())
            .cast::<pg_sys::IndexBuildResult>();
        *result = pg_sys::IndexBuildResult {
            heap_tuples,
            index_tuples,
        };
        result
    }
}

/// The layout of a new index; raises an error if its columns, or their operator classes, make none.
unsafe fn usable_layout(index: pg_sys::Relation) -> Layout {
    // SAFETY: the server passes an open index.
    unsafe {
        let layout = Layout::of(Rel::new(index));
        require_valid_classes(index);
        require_hashes(Rel::new(index), &layout);
        layout
    }
}

/// Builds an index with keys of `N` words and returns the rows seen and the rows indexed.
unsafe fn build_of<const N: usize>(
    layout: Layout,
    heap: pg_sys::Relation,
    index: pg_sys::Relation,
    index_info: *mut pg_sys::IndexInfo,
) -> (f64, f64) {
    // SAFETY: open relations from the server; nobody else sees the index before the build is
    // committed. The collected rows outlive the scan that fills them.
    unsafe {
        let options = BuildOptions::of(index);
        // Impossible options are refused before the table is read.
        options.design::<N>(&layout, 0.0);
        let memory = maintenance_work_mem();
        let writer = BulkWriter::new(
            index,
            pg_sys::ForkNumber::MAIN_FORKNUM,
            report_table as fn(usize, usize),
        );
        let (rows, nulls) = (ExternalSort::new(memory), ExternalSort::new(NULL_MEMORY));
        let mut collected = Collected::<N> {
            layout,
            writer,
            rows,
            nulls,
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
            mut writer,
            mut rows,
            mut nulls,
            ..
        } = collected;
        let index_tuples = (rows.len() + nulls.len()) as f64;
        report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
        let design = options.design(&layout, rows.len() as f64);
        report_table(0, design.tables().len());
        write_tree(&mut writer, &design, &mut rows, &mut nulls, options.fill);
        writer.finish();
        (heap_tuples, index_tuples)
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
    // SAFETY: the server passes a row and what `build_of` gave it.
    unsafe {
        let Collected {
            layout,
            writer,
            rows,
            nulls,
        } = &mut *state.cast::<Collected<N>>();
        let (key, has_fingerprint) = layout.key(Rel::new(index), values, isnull);
        let rows = if has_fingerprint { rows } else { nulls };
        rows.push(writer, key, tid_of(*tid));
    }
}

/// Writes the empty index that an unlogged one is reset to after a crash.
pub unsafe fn build_empty(index: pg_sys::Relation) {
    // SAFETY: the server passes an open index whose init fork it has just made.
    unsafe {
        let layout = usable_layout(index);
        let options = BuildOptions::of(index);
        let mut writer: Writer =
            BulkWriter::new(index, pg_sys::ForkNumber::INIT_FORKNUM, report_table);
        with_words!(layout.words(), N => if layout.signatures {
            bands::build::write_empty::<N>(&mut writer, &options);
        } else {
            let design = options.design::<N>(&layout, 0.0);
            let (mut rows, mut nulls) = (ExternalSort::new(0), ExternalSort::new(0));
            write_tree(&mut writer, &design, &mut rows, &mut nulls, options.fill);
        });
        writer.finish();
    }
}
