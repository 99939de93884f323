//! `neardup_tune(...)`: recommended options of an index, and their expected costs.
use neardup_blocktree::bands::tune;
use neardup_blocktree::block_layout::{BlockLayout, max_distance};
use neardup_blocktree::key::Tid;
use pgrx::pg_sys::Datum;

use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::varlena;
use crate::types::signature::{Bound, HASHES};

export! {
    guarded "neardup_tune_minhash" => minhash;
    guarded "neardup_tune_hamming" => hamming;
}

fn of_float8(value: f64) -> Datum {
    Datum::from(value.to_bits())
}

/// Checks that an argument is a share, above 0 and at most 1; NaN is not.
fn share(name: &str, value: f64) -> f64 {
    if !(value > 0.0 && value <= 1.0) {
        UserError::invalid_parameter(format!("{name} {value} is out of range"))
            .detail("It is a share, above 0 and at most 1.")
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
            of_float8(choice.bytes_a_row()),
            varlena::build(&[options.as_bytes()]),
        ]
        .map(Some),
    )
}

/// `neardup_tune(bits, distance, rows_expected)`.
fn hamming(call: &mut Call) -> Datum {
    let (bits, distance) = (call.int4(0), call.int4(1));
    let rows = rows_expected(call.int8(2));
    let layout = match (bits, u32::try_from(distance)) {
        (64, Ok(distance)) => expected::<1>(distance, rows),
        (128, Ok(distance)) => expected::<2>(distance, rows),
        (256, Ok(distance)) => expected::<4>(distance, rows),
        (64 | 128 | 256, Err(_)) => None,
        _ => UserError::invalid_parameter(format!("there are no fingerprints of {bits} bits"))
            .detail("They have 64, 128 or 256.")
            .raise(),
    };
    let Some([blocks, tables, leading, candidates, bytes]) = layout else {
        UserError::invalid_parameter(format!("an index cannot be made for distance {distance}"))
            .detail(format!(
                "Distances are from 0 to {}. Every index answers wider searches, too, in more \
                 time.",
                max_distance(bits as u32)
            ))
            .raise()
    };
    let options = format!("WITH (distance = {distance}, blocks = {blocks})");
    call.return_record(
        &[
            Datum::from(blocks as i32),
            Datum::from(tables as i32),
            Datum::from(leading as i32),
            of_float8(candidates),
            of_float8(bytes),
            varlena::build(&[options.as_bytes()]),
        ]
        .map(Some),
    )
}

/// Blocks, tables, leading bits, candidates of a search, and bytes a row, of the block layout that
/// an index of this number of rows would choose.
fn expected<const N: usize>(distance: u32, rows: f64) -> Option<[f64; 5]> {
    let blocks = BlockLayout::<N>::default_blocks(false, distance, rows);
    let layout = BlockLayout::<N>::new(distance, blocks).ok()?;
    let tables = layout.tables().len() as f64;
    let leading = f64::from(
        (0..layout.tables().len())
            .map(|t| layout.leading_bits(t))
            .min()?,
    );
    let candidates = tables * rows / leading.exp2();
    let bytes = tables * (8 * N + Tid::SIZE) as f64 / 0.9;
    Some([f64::from(blocks), tables, leading, candidates, bytes])
}
