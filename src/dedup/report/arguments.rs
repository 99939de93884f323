//! Arguments of `neardup_report`.
use std::ffi::CString;
use std::ops::RangeInclusive;

use neardup_report::data::{Limits, MOST_RADII, Measure};

use crate::dedup::distance::DistanceArgument;
use crate::dedup::source::Distances;
use crate::pg::caller_sql::{Condition, Expression};
use crate::pg::cursor::Parameter;
use crate::pg::errors::UserError;
use crate::pg::fmgr::Call;
use crate::pg::rel::Rel;
use crate::pg::text;

// Positions. `distance` is where the functions over an index have it.
pub const RELATION: usize = 0;
const DISTANCE: usize = 1;
const SIMILARITY: usize = 2;
const BODY: usize = 3;
const KEY: usize = 4;
const KEEP: usize = 5;
const TITLE: usize = 6;
const COLUMN: usize = 7;
const FILTER: usize = 8;
const RADII: usize = 9;
const GROUPS: usize = 10;
const MEMBERS: usize = 11;
const CHARACTERS: usize = 12;
const SAMPLE: usize = 13;
const EXHAUSTIVE: usize = 14;

/// The most groups, and the most rows of one.
const MOST_GROUPS: i32 = 1000;
/// The most rows of all groups together.
const MOST_ROWS: u64 = 10_000;
/// The most characters of a text.
const MOST_CHARACTERS: i32 = 100_000;
/// The most rows of a sample, as for the histogram itself.
const MOST_SAMPLED: i32 = 1_000_000;

/// Arguments of a caller but for the relation.
pub struct Arguments<'a> {
    /// The radius of the groups; `None` for the one that the index was made for.
    pub distance: Option<DistanceArgument>,
    /// Expression with the texts.
    pub body: Option<Expression>,
    /// Expression that names rows.
    pub key: Option<Expression>,
    /// The same, and the order of `keep`, as the page shows them.
    pub shown: Shown,
    /// Order that says which row of a group stays.
    pub keep: Parameter<'a>,
    /// The rows that take part; all without it.
    pub filter: Option<Condition>,
    /// The same as it was passed.
    pub filter_text: Parameter<'a>,
    /// `keep` and `filter` in the encoding of the server, by their names.
    pub clauses: [(&'static str, Option<Vec<u8>>); 2],
    /// The index's column, if a table is named.
    pub column: Option<CString>,
    /// Radii to choose from.
    pub radii: Option<Vec<f64>>,
    pub limits: Limits,
    /// Rows of the histogram's sample.
    pub sample: i32,
    /// Any amount of work is welcome.
    pub exhaustive: bool,
}

/// Texts of a caller for the page.
pub struct Shown {
    pub title: Option<String>,
    pub body: Option<String>,
    pub key: Option<String>,
    pub keep: Option<String>,
    pub filter: Option<String>,
}

impl<'a> Arguments<'a> {
    /// Reads and checks the arguments of a call.
    pub fn read(call: &'a Call) -> Self {
        if call.is_null(RELATION) {
            UserError::null_not_allowed("relation must not be NULL").raise();
        }
        let is_given = |n: usize| !call.is_null(n);
        let shown = |n: usize| is_given(n).then(|| call.utf8(n).into_owned());
        let [groups, members, characters, sample] = [
            (GROUPS, "groups", 0..=MOST_GROUPS),
            (MEMBERS, "members", 2..=MOST_GROUPS),
            (CHARACTERS, "characters", 0..=MOST_CHARACTERS),
            (SAMPLE, "sample_rows", 1..=MOST_SAMPLED),
        ]
        .map(|(n, name, range)| integer(call, n, name, range));
        let limits = Limits {
            groups: groups.unsigned_abs().into(),
            members: members.unsigned_abs().into(),
            characters: characters.unsigned_abs().into(),
        };
        check_rows(limits);
        Arguments {
            distance: (is_given(DISTANCE) || is_given(SIMILARITY))
                .then(|| DistanceArgument::of(call, Distances::Any, SIMILARITY)),
            body: call.text(BODY).map(|text| Expression::parse("body", &text)),
            key: call.text(KEY).map(|text| Expression::parse("key", &text)),
            shown: Shown {
                title: shown(TITLE),
                body: shown(BODY),
                key: shown(KEY),
                keep: shown(KEEP),
                filter: shown(FILTER),
            },
            keep: call.parameter(KEEP),
            filter: call
                .text(FILTER)
                .map(|text| Condition::parse("filter", &text)),
            filter_text: call.parameter(FILTER),
            clauses: [("keep", call.text(KEEP)), ("filter", call.text(FILTER))],
            column: call.name(COLUMN),
            radii: is_given(RADII).then(|| call.array::<f64>(RADII, "radii").iter().collect()),
            limits,
            sample,
            exhaustive: is_given(EXHAUSTIVE) && call.bool(EXHAUSTIVE),
        }
    }

    /// Has errors in the caller's filter raised now, and not after a search.
    pub fn check(&self, table: Rel) {
        if let Some(filter) = &self.filter {
            filter.check(table);
        }
    }

    /// The least similarity of signatures that a caller wants.
    pub fn least_similarity(&self) -> f64 {
        self.distance
            .map_or(0.0, DistanceArgument::least_similarity)
    }
}

fn integer(call: &Call, n: usize, name: &str, range: RangeInclusive<i32>) -> i32 {
    if call.is_null(n) {
        UserError::null_not_allowed(format!("{name} must not be NULL")).raise();
    }
    let value = call.int4(n);
    if !range.contains(&value) {
        let (least, most) = range.into_inner();
        UserError::invalid_parameter(format!("{name} must be between {least} and {most}"))
            .detail(format!("It is {value}."))
            .raise();
    }
    value
}

fn check_rows(limits: Limits) {
    let rows = limits.groups * limits.members;
    if rows > MOST_ROWS {
        UserError::invalid_parameter(format!(
            "groups times members must not be more than {MOST_ROWS}"
        ))
        .detail(format!(
            "{} groups of {} rows are {rows} rows, which is more than a page is good for.",
            limits.groups, limits.members
        ))
        .hint("neardup_clusters gives all rows of all groups.")
        .raise();
    }
}

/// The radii of a page from the least on, and the number of the one that the groups are of.
pub fn radii(given: Option<&[f64]>, chosen: f64, measure: Measure) -> (Vec<f64>, usize) {
    let mut radii = match given {
        Some(given) => {
            check_radii(given, measure);
            given.to_vec()
        }
        None => steps(chosen, measure),
    };
    radii.push(chosen);
    radii.sort_unstable_by(f64::total_cmp);
    radii.dedup();
    let number = radii.iter().position(|&radius| radius == chosen);
    (radii, number.unwrap_or_default())
}

/// Radii up to the chosen one, in even steps.
fn steps(chosen: f64, measure: Measure) -> Vec<f64> {
    let (steps, digits) = match measure {
        // Each number of bits, if they are few.
        Measure::Bits(_) => (chosen.clamp(1.0, 8.0), 1.0),
        Measure::Signatures => (4.0, 1000.0),
    };
    (0..=steps as u32)
        .map(|step| (f64::from(step) * chosen / steps * digits).round() / digits)
        .collect()
}

fn check_radii(given: &[f64], measure: Measure) {
    let most = MOST_RADII - 1;
    if given.len() > most {
        UserError::invalid_parameter(format!("radii must have at most {most} elements"))
            .detail(format!(
                "It has {}. Each takes a search of all pairs.",
                given.len()
            ))
            .raise();
    }
    let (range, is_whole, allowed) = match measure {
        Measure::Bits(bits) => (
            0.0..=f64::from(bits),
            true,
            format!("whole numbers of bits from 0 to {bits}"),
        ),
        Measure::Signatures => (0.0..=1.0, false, "distances from 0 to 1".to_owned()),
    };
    let is_allowed = |radius: f64| range.contains(&radius) && !(is_whole && radius.fract() != 0.0);
    if let Some(wrong) = given.iter().find(|&&radius| !is_allowed(radius)) {
        UserError::invalid_parameter(format!("radii must be {allowed}"))
            .detail(format!("{wrong} is among them."))
            .raise();
    }
}

/// Bytes of the server's encoding for the page.
pub fn shown(bytes: &[u8]) -> String {
    text::utf8_lossy(bytes)
}
