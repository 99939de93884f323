//! Arguments of `neardup_report`.
use std::ffi::CString;
use std::ops::RangeInclusive;

use neardup_report::data::{Limits, MAX_RADII};

use crate::dedup::bound::Bound;
use neardup_pg::caller_sql::{Condition, Expression};
use neardup_pg::cursor::Parameter;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::rel::Rel;
use neardup_pg::text;

// Positions of the arguments of `neardup_report`.
pub const RELATION: usize = 0;
const RADIUS: usize = 1;
const SIMILARITY: usize = 2;
const BODY: usize = 3;
const KEY: usize = 4;
const KEEP: usize = 5;
const TITLE: usize = 6;
const COLUMN: usize = 7;
const FILTER: usize = 8;
const RADII: usize = 9;
const SIMILARITIES: usize = 10;
const CLUSTERS: usize = 11;
const MEMBERS: usize = 12;
const CHARACTERS: usize = 13;
const SAMPLE: usize = 14;
const EXHAUSTIVE: usize = 15;

/// Maximum of the argument `clusters`, the number of clusters on the page. Also the maximum of the
/// argument `members`, the number of rows that the page lists of each cluster. Higher arguments
/// raise an error.
const MAX_CLUSTERS: i32 = 1000;
/// Maximum number of rows that a page lists: `clusters` times `members`. A higher product raises an
/// error.
const MOST_ROWS: u64 = 10_000;
/// Maximum of the argument `characters`, the number of characters shown of each text. A higher
/// value raises an error.
const MOST_CHARACTERS: i32 = 100_000;
/// Maximum of the argument `sample_rows`, as in `neardup_distance_histogram`. A higher value raises
/// an error.
const MOST_SAMPLED: i32 = 1_000_000;

/// Arguments of `neardup_report` without the relation.
pub struct Arguments<'a> {
    /// Bound of the clusters that the page lists. `None` for the bound of the index.
    pub bound: Option<Bound>,
    /// Argument `body`: expression for the text of a row. `None` for the text column from which the
    /// indexed values are computed.
    pub body: Option<Expression>,
    /// Argument `key`: expression that identifies rows. `None` for the primary key or, without one,
    /// the row's address.
    pub key: Option<Expression>,
    /// Arguments as the page shows them, in UTF-8.
    pub shown: Shown,
    /// Argument `keep`: an order of the rows. In each cluster, the first row in this order is kept.
    pub keep: Parameter<'a>,
    /// Condition on the rows that take part. `None` takes all rows.
    pub filter: Option<Condition>,
    /// Argument `filter` as the caller passed it.
    pub filter_text: Parameter<'a>,
    /// Arguments `keep` and `filter`, each as its name and its text in the server encoding (`None`
    /// for NULL). The page shows them in a statement that calls `neardup_clusters`.
    pub clauses: [(&'static str, Option<Vec<u8>>); 2],
    /// Argument `column_name`: the indexed column, which selects an index of the table.
    pub column: Option<CString>,
    /// Further bounds among which the reader of the page can choose: the argument `radii` or
    /// `similarities`. `None` if both arguments are NULL.
    pub others: Option<Vec<Bound>>,
    /// Maximum numbers of clusters on the page, of listed rows in a cluster, and of characters
    /// shown of a text.
    pub limits: Limits,
    /// Number of rows in the histogram's sample.
    pub sample: i32,
    /// True if the work of the searches is not limited.
    pub exhaustive: bool,
}

/// Arguments as the page shows them: the caller's texts in UTF-8. `None` for NULL.
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
            UserError::null_not_allowed("\"relation\" must not be NULL").raise();
        }
        let is_given = |n: usize| !call.is_null(n);
        let shown = |n: usize| is_given(n).then(|| call.utf8(n).into_owned());
        let [clusters, members, characters, sample] = [
            (CLUSTERS, "clusters", 0..=MAX_CLUSTERS),
            (MEMBERS, "members", 2..=MAX_CLUSTERS),
            (CHARACTERS, "characters", 0..=MOST_CHARACTERS),
            (SAMPLE, "sample_rows", 1..=MOST_SAMPLED),
        ]
        .map(|(n, name, range)| integer(call, n, name, range));
        let limits = Limits {
            clusters: clusters.unsigned_abs().into(),
            members: members.unsigned_abs().into(),
            characters: characters.unsigned_abs().into(),
        };
        check_rows(limits);
        Arguments {
            bound: Bound::read(call, [RADIUS, SIMILARITY]),
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
            others: others(call),
            limits,
            sample,
            exhaustive: is_given(EXHAUSTIVE) && call.bool(EXHAUSTIVE),
        }
    }

    /// Raises an error if the caller's filter is invalid for `table`. Called before the search
    /// begins, because a search may take long.
    pub fn check(&self, table: Rel) {
        if let Some(filter) = &self.filter {
            filter.check(table);
        }
    }
}

/// Returns the bounds in the argument `radii` or `similarities`, or `None` if both are NULL.
fn others(call: &Call) -> Option<Vec<Bound>> {
    let [has_radii, has_similarities] = [RADII, SIMILARITIES].map(|n| !call.is_null(n));
    if has_radii && has_similarities {
        UserError::invalid_parameter("cannot specify both radii and similarities")
            .detail("A report shows either radii or similarities.")
            .raise();
    }
    let others: Vec<Bound> = if has_radii {
        let radii = call.array::<i32>(RADII, "radii");
        radii.iter().map(Bound::from_radius).collect()
    } else if has_similarities {
        let similarities = call.array::<f64>(SIMILARITIES, "similarities");
        similarities.iter().map(Bound::from_similarity).collect()
    } else {
        return None;
    };
    let most = MAX_RADII - 1;
    if others.len() > most {
        let name = if has_radii { "radii" } else { "similarities" };
        UserError::invalid_parameter(format!("\"{name}\" must have at most {most} elements"))
            .detail(format!(
                "The array has {} elements. Each element requires a search for all pairs.",
                others.len()
            ))
            .raise();
    }
    Some(others)
}

fn integer(call: &Call, n: usize, name: &str, range: RangeInclusive<i32>) -> i32 {
    if call.is_null(n) {
        UserError::null_not_allowed(format!("\"{name}\" must not be NULL")).raise();
    }
    let value = call.int4(n);
    if !range.contains(&value) {
        let (least, most) = range.into_inner();
        UserError::invalid_parameter(format!("\"{name}\" must be between {least} and {most}"))
            .detail(format!("The value is {value}."))
            .raise();
    }
    value
}

fn check_rows(limits: Limits) {
    let rows = limits.clusters * limits.members;
    if rows > MOST_ROWS {
        UserError::invalid_parameter(format!(
            "\"clusters\" times \"members\" must not exceed {MOST_ROWS}"
        ))
        .detail(format!(
            "{} clusters of {} rows are {rows} rows, which is too many for one page.",
            limits.clusters, limits.members
        ))
        .hint("Use neardup_clusters to get all rows of all clusters.")
        .raise();
    }
}

/// Converts bytes in the server encoding to the UTF-8 of the page.
pub fn shown(bytes: &[u8]) -> String {
    text::utf8_lossy(bytes)
}
