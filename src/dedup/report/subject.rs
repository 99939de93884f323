//! Table and index of a report, in SQL and as shown on the page.
use neardup_report::data::Measure;
use pgrx::pg_sys;

use super::report_arguments::{Arguments, shown};
use crate::am::index::{Index, metric_of, words_of};
use crate::am::keys::with_words;
use crate::dedup::bound::{Bound, SearchBound};
use crate::dedup::estimate::SimilarityEstimate;
use neardup_pg::caller_sql::Expression;
use neardup_pg::catalog::{base_type, is_text, qualified_relation};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::rel::Rel;
use neardup_pg::unique_keys::primary_key_column;

/// Table of a report, with its index, the expressions for the keys and texts of rows, and the
/// bounds.
pub struct Subject {
    /// Qualified name of the table in SQL.
    pub table: Vec<u8>,
    /// Qualified name of the index in SQL.
    pub index: Vec<u8>,
    /// Expression that identifies rows: as SQL that returns a text, and as shown on the page.
    pub key: (Vec<u8>, String),
    /// Expression for the text of a row: as SQL that returns a text, and as shown on the page.
    /// `None` if the caller passes none and the index has no text column.
    pub body: Option<(Vec<u8>, String)>,
    /// Kind of the distances in the index.
    pub measure: Measure,
    /// Bound of the clusters that the page lists.
    pub bound: Bound,
    /// Other bounds among which the reader of the page can choose. `None` if the caller passes
    /// none.
    pub others: Option<Vec<Bound>>,
}

impl Subject {
    /// Creates the subject from the caller's arguments. Derives missing values from the index and
    /// its table.
    pub fn new(function: pg_sys::Oid, relations: &LockedIndex, arguments: &Arguments) -> Self {
        let (table, index) = (relations.table(), relations.index());
        let measure = measure(function, table, index);
        // For fingerprints the page shows radii, even if the caller passed similarities.
        let in_index = |bound| match (SearchBound::new(function, relations, Some(bound)), measure) {
            (SearchBound::Fingerprints(found), Measure::Bits(bits) | Measure::Estimated(bits)) => {
                Bound::Radius(found.radius.min(bits))
            }
            _ => bound,
        };
        let others = arguments.others.as_ref();
        let column = |number: i16| {
            let name = table.column_name(number);
            let sql = Expression::column(&name).as_text(table.attribute(number).atttypid);
            (sql, shown(name.to_bytes()))
        };
        // Checks the caller's expressions before the search, so that an invalid expression raises
        // an error at once.
        let given = |name, expression: &Option<Expression>, text: &Option<String>| {
            let expression = expression.as_ref()?;
            let sql = expression.as_text(expression.check(name, table));
            Some((sql, text.clone().unwrap_or_default()))
        };
        Subject {
            table: table.qualified_name(),
            index: qualified_relation(index.oid()).unwrap_or_default(),
            key: given("key", &arguments.key, &arguments.shown.key)
                .or_else(|| primary_key_column(table).map(column))
                .unwrap_or_else(|| {
                    (
                        b"ctid::pg_catalog.text".to_vec(),
                        "ctid, the row's address in the table".into(),
                    )
                }),
            body: given("body", &arguments.body, &arguments.shown.body)
                .or_else(|| text_column(table, index).map(column)),
            measure,
            bound: arguments
                .bound
                .map_or_else(|| Bound::from_index(index), in_index),
            others: others.map(|others| others.iter().copied().map(in_index).collect()),
        }
    }
}

fn measure(function: pg_sys::Oid, table: Rel, index: Rel) -> Measure {
    if metric_of(index).bands().is_some() {
        return Measure::Signatures;
    }
    let bits = with_words!(words_of(index), N => Index::<N>::open(index).block_layout.bits());
    match SimilarityEstimate::from_index(function, table, index) {
        SimilarityEstimate::Defined => Measure::Estimated(bits),
        SimilarityEstimate::Undefined(_) | SimilarityEstimate::Unknown => Measure::Bits(bits),
    }
}

/// Returns the attribute number of the text column from which the indexed fingerprints or
/// signatures are computed. They are computed by an expression of the index or by a generated
/// column. Returns `None` if the computation uses no text column, or several.
fn text_column(table: Rel, index: Rel) -> Option<i16> {
    let columns = match index.index_form().columns[index.searched_column()] {
        0 => index.columns_of_searched_expression(),
        column => vec![column],
    };
    let sources = columns.into_iter().flat_map(|column| match column {
        1.. if table.is_generated(column) => table.columns_of_generated(column),
        _ => vec![column],
    });
    let mut texts: Vec<i16> = sources
        .filter(|&column| column > 0 && is_text(base_type(table.attribute(column).atttypid)))
        .collect();
    texts.sort_unstable();
    texts.dedup();
    match texts[..] {
        [one] => Some(one),
        _ => None,
    }
}
