//! `neardup_tune(...)` for signatures and `neardup_tune_radius(...)` for fingerprints: recommended
//! options of an index, and its expected costs.
use neardup_blocktree::bands::tune::{self, Choice};
use neardup_blocktree::block_layout::{BlockLayout, default_radius};
use neardup_blocktree::build::DEFAULT_LEAF_FILL;
use neardup_blocktree::layout_choice::{best_layout, search_cost};
use neardup_blocktree::leaf;
use neardup_blocktree::plan::Plan;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::Datum;

use crate::am::minhash::options::DEFAULT_HASHES;
use crate::types::signature::{Bound, HASHES};
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::varlena;

export! {
    guarded "neardup_tune" => minhash;
    guarded "neardup_tune_radius" => hamming;
}

/// Converts a number to a Datum of type float8.
fn of_float8(value: f64) -> Datum {
    Datum::from(value.to_bits())
}

/// Returns `value` if it is above 0 and at most 1. Otherwise, and for NaN, raises an error. `name`
/// is the name of the argument with this value.
fn share(name: &str, value: f64) -> f64 {
    if !(value > 0.0 && value <= 1.0) {
        UserError::invalid_parameter(format!("{name} {value} is out of range"))
            .detail("The value must be greater than 0 and at most 1.")
            .hint("For an index on fingerprints, call neardup_tune_radius(bits, radius).")
            .raise();
    }
    value
}

/// Returns the argument `rows_expected` as `f64`. Raises an error if it is below 1.
fn rows_expected(value: i64) -> f64 {
    if value < 1 {
        UserError::invalid_parameter(format!(
            "value {value} is out of range for \"rows_expected\""
        ))
        .detail("The number of rows must be at least 1.")
        .raise();
    }
    value as f64
}

/// `neardup_tune(similarity, recall, hashes, rows_expected)`: bands for an index on signatures, and
/// its expected costs.
fn minhash(call: &mut Call) -> Datum {
    let similarity = share("similarity", call.float8(0));
    let recall = share("recall", call.float8(1));
    let hashes = call.int4(2);
    let rows = rows_expected(call.int8(3));
    let Some(hashes) = usize::try_from(hashes)
        .ok()
        .filter(|it| HASHES.contains(it))
    else {
        UserError::invalid_parameter(format!("value {hashes} is out of range for \"hashes\""))
            .detail(format!(
                "The number of hashes must be from {} to {}.",
                HASHES.start(),
                HASHES.end()
            ))
            .raise()
    };
    let choice = if recall == 1.0 {
        let mismatches = Bound::Similarity.mismatches(hashes, similarity);
        tune::exact(hashes, mismatches as usize)
    } else {
        tune::approximate(similarity, recall, hashes, rows)
    };
    let Some(choice) = choice else {
        UserError::invalid_parameter(format!(
            "no number of bands reaches recall {recall} for pairs of similarity {similarity}"
        ))
        .hint("Pass a higher similarity or a lower recall.")
        .raise()
    };
    warn_of_whole_table(&choice, similarity, recall, hashes, rows);
    let mut options = format!("similarity = {similarity}");
    if !choice.exact {
        options += &format!(", bands = {}, rows = {}", choice.bands, choice.band_width);
    }
    if hashes != DEFAULT_HASHES {
        options += &format!(", hashes = {hashes}");
    }
    let options = format!("WITH ({options})");
    let found = [0.5, 0.6, 0.7, 0.8, 0.9].map(|similarity| of_float8(choice.found(similarity)));
    let [p50, p60, p70, p80, p90] = found;
    call.return_record(
        &[
            Datum::from(choice.bands as i32),
            Datum::from(choice.band_width as i32),
            Datum::from(choice.exact),
            p50,
            p60,
            p70,
            p80,
            p90,
            of_float8(choice.candidates(rows)),
            of_float8(choice.bytes_a_row(rows)),
            varlena::build(&[options.as_bytes()]),
        ]
        .map(Some),
    )
}

/// Recall (share of the near-duplicate pairs that are found) that the hint of
/// [`warn_of_whole_table`] suggests. It is suggested only to a caller who has asked for a higher
/// recall.
const LOWER_RECALL: f64 = 0.9;

/// Warns if a search of the recommended index, `choice`, would compare more than half of the
/// table's `rows` rows. `similarity`, `recall` and `hashes` are the arguments of `neardup_tune`.
fn warn_of_whole_table(choice: &Choice, similarity: f64, recall: f64, hashes: usize, rows: f64) {
    let is_whole = |choice: &Choice| choice.candidates(rows) > rows / 2.0;
    if !is_whole(choice) {
        return;
    }
    let lower = (recall > LOWER_RECALL)
        .then(|| tune::approximate(similarity, LOWER_RECALL, hashes, rows))
        .flatten()
        .filter(|choice| !is_whole(choice));
    UserError::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("an index for similarity {similarity} and recall {recall} is not worthwhile"),
    )
    .detail(format!(
        "The index takes {:.0} bytes per row in {} bands, and a search compares {:.0} % of all \
         rows.",
        choice.bytes_a_row(rows),
        choice.bands,
        100.0 * choice.candidates(rows) / rows
    ))
    .hint(match lower {
        Some(lower) => format!(
            "With recall => {LOWER_RECALL}, the index takes {:.0} bytes per row, and a search \
             compares {:.0} % of all rows.",
            lower.bytes_a_row(rows),
            100.0 * lower.candidates(rows) / rows
        ),
        None => "Pass a higher similarity.".to_owned(),
    })
    .warn();
}

/// `neardup_tune_radius(bits, radius, rows_expected, search_radius)`: layout of an index on
/// fingerprints, and its expected costs. If `search_radius` is NULL, searches have the radius of
/// the index.
fn hamming(call: &mut Call) -> Datum {
    if (0..3).any(|argument| call.is_null(argument)) {
        return call.return_null();
    }
    let (bits, radius) = (call.int4(0), call.int4(1));
    let rows = rows_expected(call.int8(2));
    let search_radius = match call.is_null(3) {
        true => radius,
        false => call.int4(3),
    };
    if !matches!(bits, 64 | 128 | 256) {
        UserError::invalid_parameter(format!("a fingerprint cannot have {bits} bits"))
            .detail("Fingerprints have 64, 128 or 256 bits.")
            .raise()
    }
    if !(0..=bits).contains(&radius) {
        UserError::invalid_parameter(format!("radius {radius} is out of range"))
            .detail(format!(
                "Fingerprints of {bits} bits have distances from 0 to {bits}."
            ))
            .raise()
    }
    let radius = radius.unsigned_abs();
    let layout = match bits {
        64 => expected::<1>(radius, rows, search_radius),
        128 => expected::<2>(radius, rows, search_radius),
        _ => expected::<4>(radius, rows, search_radius),
    };
    let options = format!("WITH (radius = {radius})");
    call.return_record(
        &[
            Datum::from(layout.guaranteed_radius as i32),
            Datum::from(layout.blocks as i32),
            Datum::from(layout.permutations as i32),
            Datum::from(layout.leading_bits as i32),
            of_float8(layout.candidates),
            of_float8(layout.bytes),
            varlena::build(&[options.as_bytes()]),
            of_float8(layout.search_cost),
            of_float8(layout.default_cost),
        ]
        .map(Some),
    )
}

/// Expected properties of an index on fingerprints with the radius and number of rows that the
/// caller gave.
struct Expected {
    /// Largest radius for which a search reads at most one range of each permutation (ordered copy
    /// of all keys).
    guaranteed_radius: u32,
    /// Number of blocks into which the bits of a fingerprint are divided.
    blocks: usize,
    /// Number of permutations of the index.
    permutations: usize,
    /// Minimum number of leading bits by which a search finds its range of a permutation.
    leading_bits: u32,
    /// Expected number of index entries that a search reads.
    candidates: f64,
    /// Number of bytes of the index for each row.
    bytes: f64,
    /// Cost of a search, in units of one leaf page that is read in sequence.
    search_cost: f64,
    /// Cost of the same search as for `search_cost`, but in an index with default options. The unit
    /// is the same.
    default_cost: f64,
}

/// Returns the expected properties of an index with the option `radius` and with `rows` rows,
/// including the costs of a search within `search_radius` bits.
fn expected<const N: usize>(radius: u32, rows: f64, search_radius: i32) -> Expected {
    let layout = |radius| best_layout::<N>(false, radius, rows);
    // A search with a negative radius finds no rows and has no plan.
    let plan = |layout: &BlockLayout<N>| {
        u32::try_from(search_radius)
            .ok()
            .map(|radius| Plan::new(layout, radius, rows))
    };
    let (chosen, default) = (layout(radius), layout(default_radius(64 * N as u32)));
    let (plan, by_default) = (plan(&chosen), plan(&default));
    let cost = |plan: &Option<Plan<N>>| plan.as_ref().map_or(0.0, search_cost);
    let permutations = chosen.permutations().len();
    let fill = f64::from(DEFAULT_LEAF_FILL) / 100.0;
    Expected {
        guaranteed_radius: chosen.radius(),
        blocks: chosen.blocks().len(),
        permutations,
        leading_bits: chosen.fewest_leading_bits(),
        candidates: plan.as_ref().map_or(0.0, |plan| plan.candidates(rows)),
        bytes: permutations as f64 * leaf::expected_size(N, rows) / fill,
        search_cost: cost(&plan),
        default_cost: cost(&by_default),
    }
}
