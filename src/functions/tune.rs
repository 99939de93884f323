//! `neardup_tune(...)` and `neardup_tune_radius(...)`: recommended options of an index, and their
//! expected costs.
use neardup_blocktree::bands::tune;
use neardup_blocktree::block_layout::{BlockLayout, default_distance, max_distance};
use neardup_blocktree::leaf;
use neardup_blocktree::plan::Plan;
use pgrx::pg_sys::Datum;

use crate::types::signature::{Bound, HASHES};
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::varlena;

export! {
    guarded "neardup_tune" => minhash;
    guarded "neardup_tune_radius" => hamming;
}

fn of_float8(value: f64) -> Datum {
    Datum::from(value.to_bits())
}

/// Checks that an argument is a share, above 0 and at most 1; NaN is not.
fn share(name: &str, value: f64) -> f64 {
    if !(value > 0.0 && value <= 1.0) {
        UserError::invalid_parameter(format!("{name} {value} is out of range"))
            .detail("It is a share, above 0 and at most 1.")
            .hint("For an index on fingerprints call neardup_tune_radius(bits, distance).")
            .raise();
    }
    value
}

fn rows_expected(value: i64) -> f64 {
    if value < 1 {
        UserError::invalid_parameter(format!("rows_expected {value} is out of range"))
            .detail("It is a number of rows, at least 1.")
            .raise();
    }
    value as f64
}

/// `neardup_tune(similarity, recall, hashes, rows_expected)`.
fn minhash(call: &mut Call) -> Datum {
    let similarity = share("similarity", call.float8(0));
    let recall = share("recall", call.float8(1));
    let hashes = call.int4(2);
    let rows = rows_expected(call.int8(3));
    let Some(hashes) = usize::try_from(hashes)
        .ok()
        .filter(|it| HASHES.contains(it))
    else {
        UserError::invalid_parameter(format!("hashes {hashes} is out of range"))
            .detail(format!(
                "It is from {} to {}.",
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
            "no bands find a share of {recall} of all pairs of similarity {similarity}"
        ))
        .hint("Ask for a higher similarity or a lower recall.")
        .raise()
    };
    let mut options = match (choice.exact, hashes) {
        (true, 128) => format!("similarity = {similarity}"),
        (true, _) => format!("similarity = {similarity}, hashes = {hashes}"),
        (false, 128) => format!("bands = {}, rows = {}", choice.bands, choice.rows),
        (false, _) => {
            format!(
                "bands = {}, rows = {}, hashes = {hashes}",
                choice.bands, choice.rows
            )
        }
    };
    options = format!("WITH ({options})");
    let found = [0.5, 0.6, 0.7, 0.8, 0.9].map(|similarity| of_float8(choice.found(similarity)));
    let [p50, p60, p70, p80, p90] = found;
    call.return_record(
        &[
            Datum::from(choice.bands as i32),
            Datum::from(choice.rows as i32),
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

/// `neardup_tune_radius(bits, distance, rows_expected, radius)`. The last may be NULL.
fn hamming(call: &mut Call) -> Datum {
    if (0..3).any(|argument| call.is_null(argument)) {
        return call.return_null();
    }
    let (bits, distance) = (call.int4(0), call.int4(1));
    let rows = rows_expected(call.int8(2));
    let radius = match call.is_null(3) {
        true => distance,
        false => call.int4(3),
    };
    let layout = match (bits, u32::try_from(distance)) {
        (64, Ok(distance)) => expected::<1>(distance, rows, radius),
        (128, Ok(distance)) => expected::<2>(distance, rows, radius),
        (256, Ok(distance)) => expected::<4>(distance, rows, radius),
        (64 | 128 | 256, Err(_)) => None,
        _ => UserError::invalid_parameter(format!("there are no fingerprints of {bits} bits"))
            .detail("They have 64, 128 or 256.")
            .raise(),
    };
    let Some(layout) = layout else {
        UserError::invalid_parameter(format!("an index cannot be made for distance {distance}"))
            .detail(format!(
                "Distances are from 0 to {}. Every index answers wider searches, too, in more \
                 time.",
                max_distance(bits as u32)
            ))
            .raise()
    };
    let options = format!("WITH (distance = {distance}, blocks = {})", layout.blocks);
    call.return_record(
        &[
            Datum::from(layout.blocks as i32),
            Datum::from(layout.tables as i32),
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

/// Properties of the block layout that an index of a distance and a number of rows would choose.
struct Expected {
    blocks: usize,
    tables: usize,
    leading_bits: u32,
    /// Entries that a search within the distance meets.
    candidates: f64,
    /// Bytes a row.
    bytes: f64,
    /// Cost of a search within the radius, in leaf pages read one after the other.
    search_cost: f64,
    /// The same in an index with default options.
    default_cost: f64,
}

/// `None` if there is no layout for the distance.
fn expected<const N: usize>(distance: u32, rows: f64, radius: i32) -> Option<Expected> {
    let layout = |distance| {
        let blocks = BlockLayout::<N>::default_blocks(false, distance, rows);
        BlockLayout::<N>::new(distance, blocks).ok()
    };
    let cost = |layout: &BlockLayout<N>| {
        // No row is nearer than 0.
        u32::try_from(radius).map_or(0.0, |radius| Plan::new(layout, radius, rows).cost())
    };
    let (chosen, default) = (layout(distance)?, layout(default_distance(64 * N as u32))?);
    let (tables, leading_bits) = (chosen.tables().len(), chosen.fewest_leading_bits());
    Some(Expected {
        blocks: chosen.blocks().len(),
        tables,
        leading_bits,
        candidates: tables as f64 * rows / f64::from(leading_bits).exp2(),
        bytes: tables as f64 * leaf::expected_size(N, rows) / 0.9,
        search_cost: cost(&chosen),
        default_cost: cost(&default),
    })
}
