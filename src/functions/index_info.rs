//! `neardup_index_info` and `neardup_expert_index_statistics`: layout and size of an index, and its
//! largest bucket. An index has several permutations, which are ordered copies of all keys. A
//! bucket is the set of entries of a permutation with equal leading bits. A search reads whole
//! buckets.
use std::rc::Rc;

use neardup_blocktree::bands::Bands;
use neardup_blocktree::build::Fill;
use neardup_blocktree::info::{Advice, Info, LargestBucket};
use neardup_blocktree::key::Key;
use neardup_blocktree::metric::UsualBound;
use neardup_blocktree::page::PAGE_SIZE;
use neardup_blocktree::plan::{probed_bits, probed_radius};
use pgrx::pg_sys;

use crate::am::index::{Index, bound_of, words_of};
use crate::am::inspection::open_for_one_pass;
use crate::am::keys::with_words;
use crate::am::layout_change::{Description, next_layout};
use crate::am::options::BuildOptions;
use crate::types::signature::similarity;
use neardup_pg::acl;
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::tid::tid_datum;
use neardup_pg::varlena;

export! {
    guarded "neardup_index_info" => index_info;
    guarded "neardup_expert_index_statistics" => index_statistics;
}

/// `neardup_index_info(index)`: radius, layout, size and fill of an index, for users.
fn index_info(call: &mut Call) -> pg_sys::Datum {
    measured(call, |measured| measured.info.to_vec())
}

/// `neardup_expert_index_statistics(index)`: parameters of an index, numbers of its pages of each
/// kind, and bits of its largest bucket, for experts.
fn index_statistics(call: &mut Call) -> pg_sys::Datum {
    measured(call, |measured| measured.statistics.to_vec())
}

/// Measures the index whose OID is argument 0, and returns a record. `columns` selects the record's
/// columns from the measurement: those of the called SQL function. Reads every page of the index.
/// Other sessions may read and write rows meanwhile.
fn measured(call: &mut Call, columns: fn(&Measured) -> Vec<ColumnValue>) -> pg_sys::Datum {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let index = call.oid(0);
    acl::check_owner_or_monitor(index);
    let relations = LockedIndex::open(index, lock);
    let measured = with_words!(words_of(relations.index()), N => {
        let opened = open_for_one_pass::<N>(&relations, OldSnapshotCheck::NONE);
        let options = BuildOptions::from_index(relations.index());
        let next = |rows| next_layout(relations.table(), &opened, &options, rows);
        measure(&opened, acl::owns_table_of(index), options.fill, next)
    });
    call.return_record(&columns(&measured))
}

/// Value of a column of the result. `None` for NULL.
type ColumnValue = Option<pg_sys::Datum>;

/// Result columns of `neardup_index_info` and `neardup_expert_index_statistics`. Each array has the
/// columns in the order in which the SQL script declares them.
struct Measured {
    /// Columns of `neardup_index_info`.
    info: [ColumnValue; 17],
    /// Columns of `neardup_expert_index_statistics`.
    statistics: [ColumnValue; 14],
}

/// Reads the index and computes the result columns of both SQL functions. If `with_bits` is false
/// (because the user does not own the table), columns that show bits of fingerprints are NULL.
///
/// The column `advice` says what REINDEX would improve, and uses the other parameters. `fill` has
/// the fill factors of pages that REINDEX would use. `next_layout` returns the layout that REINDEX
/// would choose for a number of rows; `None` if that is the present layout.
fn measure<const N: usize>(
    index: &Index<N>,
    with_bits: bool,
    fill: Fill,
    next_layout: impl FnOnce(f64) -> Option<Description>,
) -> Measured {
    let layout = &index.block_layout;
    let info = index.or_corrupt(index.tree().measure(layout));
    let leading =
        (0..layout.permutations().len()).map(|permutation| probed_bits(layout, permutation));
    let pages = u64::from(index.pages.blocks());
    // The 1 is the meta page. Pages that were added after the tree was read are in none of the
    // counts.
    let known = 1 + info.inner_pages + info.leaf_pages + info.empty_leaves;
    let rows = info.rows + info.null_rows;
    let bytes = pages as f64 * PAGE_SIZE as f64;
    let [entries, permutation, mask, bits, tid] = largest_bucket(index, &info, with_bits);
    // Columns about fingerprints are NULL for an index on signatures and vice versa. For an index
    // on arrays both are NULL.
    let bands = index.metric.bands().map(Rc::as_ref);
    let of_bits = |column| index.metric.is_hamming().then_some(column).flatten();
    let of_values = |value: fn(&Bands) -> usize| bands.map(value);
    let guaranteed = bands.map(|bands| similarity(bands.guaranteed(), bands.hashes()));
    let [radius, similarity] = bound_columns(index);
    let advice = match next_layout(info.rows as f64) {
        Some(next) => Some(format!("REINDEX changes the layout: {next}")),
        None => (info.advice(pages, layout.permutations().len(), fill)).map(advice_text),
    };
    Measured {
        info: [
            radius,
            similarity,
            of_bits(integer(layout.radius())),
            guaranteed.map(float8),
            probed_radius_column(index, info.rows),
            of_bits(integer(layout.blocks().len() as u32)),
            integer(layout.permutations().len() as u32),
            advice.map(|text| varlena::build(&[text.as_bytes()])),
            bigint(info.rows),
            bigint(info.null_rows),
            bigint(pages),
            bigint(pages.saturating_sub(known)),
            (rows > 0).then(|| rounded_float8(bytes / rows as f64)),
            info.fill().map(|fill| rounded_float8(100.0 * fill)),
            Some(rounded_float8(info.mean_candidates)),
            entries,
            tid,
        ],
        statistics: [
            of_bits(integer(layout.bits())),
            integer(index.layout.scope_columns as u32),
            integer(leading.min().unwrap_or(0)),
            of_values(Bands::hashes).and_then(|hashes| integer(hashes as u32)),
            of_values(Bands::count).and_then(|bands| integer(bands as u32)),
            of_values(Bands::min_band_width).and_then(|rows| integer(rows as u32)),
            integer(u32::from(info.height)),
            bigint(info.inner_pages),
            bigint(info.leaf_pages),
            bigint(info.empty_leaves),
            bigint(info.entries),
            permutation,
            mask,
            bits,
        ],
    }
}

/// Returns the text of the column `advice` if REINDEX would not change the layout of the index.
fn advice_text(advice: Advice) -> String {
    match advice {
        Advice::Reindex(saved) => format!("REINDEX makes the index {saved} % smaller"),
        Advice::Fillfactor(fill) => format!("REINDEX with fillfactor = {fill}"),
    }
}

/// Returns the column `probed_radius`: the largest radius, in bits, at which a search reads only
/// buckets, not a whole permutation. `rows` is the number of index entries in a permutation, on
/// which this radius depends. The column is NULL for an index with scope columns, because the
/// radius then depends on the number of rows in the scope. It is also NULL for signatures.
fn probed_radius_column<const N: usize>(index: &Index<N>, rows: u64) -> ColumnValue {
    let is_whole = index.metric.is_hamming() && index.layout.scope_columns == 0;
    let probed = is_whole.then(|| probed_radius(&index.block_layout, rows as f64));
    probed.flatten().and_then(integer)
}

/// Returns the columns `radius` and `similarity`. At most one of them is not NULL.
fn bound_columns<const N: usize>(index: &Index<N>) -> [ColumnValue; 2] {
    match bound_of(index.relation()) {
        Some(UsualBound::Radius(radius)) => [integer(radius), None],
        Some(UsualBound::Similarity(similarity)) => [None, Some(float8(similarity))],
        None => [None, None],
    }
}

/// Returns the columns about the largest bucket: number of entries, permutation, mask, bits and row
/// address. The mask and the bits are NULL if `with_bits` is false, and for signatures. All columns
/// are NULL if no row has a value.
fn largest_bucket<const N: usize>(
    index: &Index<N>,
    info: &Info<N>,
    with_bits: bool,
) -> [ColumnValue; 5] {
    let Some(LargestBucket {
        permutation,
        entries,
        mask,
        bits,
        tid,
    }) = info.largest_bucket
    else {
        return [None; 5];
    };
    let with_bits = with_bits && index.metric.bands().is_none();
    let bit_string = |key: &Key<N>| {
        // The bytes are those of a value of type bit: its length in bits, then the bits.
        let length = index.meta.metric.value_size() as i32;
        let words = &key[index.layout.scope_words()..];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        varlena::build(&[&length.to_ne_bytes(), &bytes])
    };
    [
        bigint(entries),
        // Users count permutations from 1.
        integer(u32::from(permutation) + 1),
        with_bits.then(|| bit_string(&mask)),
        with_bits.then(|| bit_string(&bits)),
        Some(tid_datum(tid)),
    ]
}

fn integer(value: u32) -> ColumnValue {
    Some(pg_sys::Datum::from(value as i32))
}

fn bigint(value: u64) -> ColumnValue {
    Some(pg_sys::Datum::from(value as i64))
}

/// Converts a number to a float8 without rounding.
fn float8(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(value.to_bits())
}

/// Converts a number to a float8, rounded to hundredths.
fn rounded_float8(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(((value * 100.0).round() / 100.0).to_bits())
}
