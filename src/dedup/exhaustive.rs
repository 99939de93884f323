//! Work beyond what an index guarantees: estimated first, and refused if it is too much.
//!
//! Up to the radius or similarity that an index was made for, a search compares the few rows that
//! its tables put together. Beyond, it compares more of them, in the end each with each other.
use neardup_blocktree::bands::exhaustive_work;
use neardup_blocktree::block_layout::MAX_DISTANCE;
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::PairPlan;
use pgrx::PgSqlErrorCode;

use super::distance::DistanceArgument;
use crate::am::index::Index;
use crate::pg::errors::UserError;
use crate::pg::locked_index::LockedIndex;
use crate::pg::server;
use crate::types::signature::{distance, similarity};

/// Most comparisons of two sketches, each of which takes some nanoseconds.
const MOST_COMPARISONS: f64 = 1e10;
/// Most pairs of rows that are looked up in the table, each of which takes about a microsecond.
const MOST_CANDIDATES: f64 = 2e7;
/// Rows that are few enough for any search.
const FEW_ROWS: f64 = 5000.0;
/// Longest search of an index on fingerprints, in estimated nanoseconds.
const LONGEST: f64 = 60e9;
/// Most pairs of unrelated fingerprints that come close by chance.
const MOST_PAIRS: f64 = 1e8;

/// The way out of the error for a function with a parameter `exhaustive`.
pub const BY_PARAMETER: &str = "pass exhaustive => true to search all the same";

/// Raises an error if a search of an index on signatures goes beyond what its bands guarantee and
/// would take too much work. The end of its hint says how to do otherwise.
pub fn check_signatures<const N: usize>(
    relations: &LockedIndex,
    index: &Index<N>,
    argument: DistanceArgument,
    otherwise: &str,
    wanted: &mut impl FnMut(Tid) -> bool,
) {
    let Some(bands) = index.metric.bands() else {
        return;
    };
    let hashes = bands.hashes();
    let mismatches = argument.mismatches(relations.index(), hashes);
    if mismatches <= bands.guaranteed() || index.rows() <= FEW_ROWS {
        return;
    }
    let work = index.or_corrupt(exhaustive_work(&index.tree(), mismatches, wanted));
    if work.comparisons <= MOST_COMPARISONS && work.candidates <= MOST_CANDIDATES {
        return;
    }
    let limit = argument.least_similarity();
    let guaranteed = (similarity(bands.guaranteed(), hashes) * 1000.0).ceil() / 1000.0;
    let made_for = distance(bands.guaranteed(), hashes);
    let mut hint = String::new();
    // A similarity that was passed as a distance.
    if let Some(given) = argument
        .given_distance()
        .filter(|given| 1.0 - given <= made_for)
    {
        hint = format!(
            "distance => {given} is a similarity of {limit}. If a similarity of {given} is meant, \
             give similarity => {given}. Otherwise: "
        );
    }
    let of = if hashes == 128 {
        String::new()
    } else {
        format!(", hashes = {hashes}")
    };
    let options = format!("similarity = {limit}{of}");
    hint += &make_index(relations, &options);
    too_much(
        relations,
        format!("It was made for similarities from {guaranteed}, and {limit} is asked for"),
        format!(
            "each two of {} rows: {:.0} comparisons, and some {:.0} pairs to look up in the table",
            work.rows, work.comparisons, work.candidates
        ),
        hint,
        otherwise,
    )
}

/// Raises an error if a search of an index on fingerprints goes beyond its distance and would take
/// too much work.
pub fn check_fingerprints<const N: usize>(
    relations: &LockedIndex,
    index: &Index<N>,
    plan: &PairPlan<N>,
) {
    let (bits, made_for) = (index.block_layout.bits(), index.block_layout.distance());
    let rows = index.rows();
    if plan.radius <= made_for || rows <= FEW_ROWS {
        return;
    }
    let pairs = rows * rows / 2.0 * share_within(bits, plan.radius);
    if plan.cost <= LONGEST && pairs <= MOST_PAIRS {
        return;
    }
    let hint = match plan.radius {
        radius @ ..=MAX_DISTANCE => make_index(relations, &format!("distance = {radius}")),
        _ => "Take a smaller distance".to_owned(),
    };
    too_much(
        relations,
        format!(
            "It was made for distances up to {made_for}, and {} is asked for",
            plan.radius
        ),
        format!(
            "{rows:.0} rows with many others: some {:.0} seconds, and some {pairs:.0} pairs by \
             chance alone",
            plan.cost / 1e9
        ),
        hint,
        BY_PARAMETER,
    )
}

/// The share of random fingerprints within a radius of one.
fn share_within(bits: u32, radius: u32) -> f64 {
    let n = f64::from(bits);
    let mut term = (-n).exp2();
    let mut sum = term;
    for k in 1..=radius.min(bits) {
        let k = f64::from(k);
        term *= (n - k + 1.0) / k;
        sum += term;
    }
    sum
}

/// The statement that makes an index with these options on what another one is on.
fn make_index(relations: &LockedIndex, options: &str) -> String {
    let table = relations.table().qualified_name();
    let columns = server::pg_get_indexdef_columns(relations.index().oid(), false);
    let predicate = if relations.index().is_partial() {
        " WHERE ..."
    } else {
        ""
    };
    format!(
        "Make an index for it, CREATE INDEX ON {} USING neardup ({}) WITH ({options}){predicate}",
        String::from_utf8_lossy(&table),
        columns.unwrap_or_default().to_string_lossy()
    )
}

/// 54000.
fn too_much(
    relations: &LockedIndex,
    limit: String,
    work: String,
    hint: String,
    otherwise: &str,
) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!(
            "index \"{}\" does not guarantee so wide a search, which would take very long",
            relations.index().shown()
        ),
    )
    .detail(format!("{limit}. This compares {work}."))
    .hint(format!("{hint}; or {otherwise}."))
    .raise()
}
