//! The table and the index that a report is about, as SQL and as the page shows them.
use neardup_report::data::Measure;
use pgrx::pg_sys;

use super::report_arguments::{Arguments, shown};
use crate::am::index::{Index, metric_of, words_of};
use crate::am::keys::with_words;
use crate::dedup::bound::{Bound, SearchBound};
use crate::dedup::estimate::Estimate;
use neardup_pg::caller_sql::Expression;
use neardup_pg::catalog::{base_type, is_text, qualified_relation};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::rel::Rel;
use neardup_pg::unique_keys::primary_key_column;

/// A table with its index.
pub struct Subject {
    /// The table's name in SQL.
    pub table: Vec<u8>,
    /// The index's name in SQL.
    pub index: Vec<u8>,
    /// Expression that names rows, as a text in SQL, and as the page shows it.
    pub key: (Vec<u8>, String),
    /// Expression with the texts, likewise; `None` if none is given and none can be told.
    pub body: Option<(Vec<u8>, String)>,
    pub measure: Measure,
    /// Bound of the groups.
    pub bound: Bound,
    /// Other bounds to choose from, if the caller names some.
    pub others: Option<Vec<Bound>>,
}

impl Subject {
    /// Takes what the arguments say, and for the rest what the index tells.
    pub fn new(function: pg_sys::Oid, relations: &LockedIndex, arguments: &Arguments) -> Self {
        let (table, index) = (relations.table(), relations.index());
        let measure = measure(function, table, index);
        // For fingerprints the page shows radii, also if the caller passed similarities.
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
        // Has errors in the caller's expressions raised now, and not after a search.
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
                        "ctid, the row's place in the table".into(),
                    )
                }),
            body: given("body", &arguments.body, &arguments.shown.body)
                .or_else(|| text_column(table, index).map(column)),
            measure,
            bound: arguments
                .bound
                .map_or_else(|| Bound::of_index(index), in_index),
            others: others.map(|others| others.iter().copied().map(in_index).collect()),
        }
    }
}

/// The measure of an index.
fn measure(function: pg_sys::Oid, table: Rel, index: Rel) -> Measure {
    if metric_of(index).bands().is_some() {
        return Measure::Signatures;
    }
    let bits = with_words!(words_of(index), N => Index::<N>::open(index).block_layout.bits());
    match Estimate::of_index(function, table, index) {
        Estimate::Defined => Measure::Estimated(bits),
        Estimate::Undefined(_) | Estimate::Unknown => Measure::Bits(bits),
    }
}

/// The only column of texts that the indexed values are computed from, by an expression of the
/// index or of a generated column; `None` if there is none or several.
fn text_column(table: Rel, index: Rel) -> Option<i16> {
    let columns = match index.index_form().columns.last() {
        Some(0) | None => index.columns_of_last_expression(),
        Some(&column) => vec![column],
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
