//! The table and the index that a report is about, as SQL and as the page shows them.
use neardup_report::data::Measure;

use super::arguments::{Arguments, shown};
use crate::am::index::{Index, metric_of, words_of};
use crate::am::keys::with_words;
use crate::pg::caller_sql::Expression;
use crate::pg::catalog::{base_type, is_text, qualified_relation};
use crate::pg::locked_index::LockedIndex;
use crate::pg::rel::Rel;
use crate::pg::unique_keys::primary_key_column;
use crate::types::signature::similarity;

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
    /// Radius of the groups.
    pub distance: f64,
}

impl Subject {
    /// Takes what the arguments say, and for the rest what the index tells.
    pub fn new(relations: &LockedIndex, arguments: &Arguments) -> Self {
        let (table, index) = (relations.table(), relations.index());
        let (measure, usual) = measure(index);
        let distance = arguments.distance.map(|argument| match measure {
            Measure::Bits(bits) => f64::from(argument.radius(bits).min(bits)),
            Measure::Signatures => {
                let hashes = metric_of(index).bands().map_or(1, |bands| bands.hashes());
                // An error if it is out of range.
                argument.mismatches(index, hashes);
                let distance = argument.given_distance();
                rounded(distance.unwrap_or_else(|| 1.0 - argument.least_similarity()))
            }
        });
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
            distance: distance.unwrap_or(usual),
        }
    }
}

/// Without the error of a subtraction.
fn rounded(distance: f64) -> f64 {
    (distance * 1e6).round() / 1e6
}

/// The measure of an index, and the distance that it was made for.
fn measure(index: Rel) -> (Measure, f64) {
    if let Some(bands) = metric_of(index).bands() {
        let distance = 1.0 - similarity(bands.guaranteed(), bands.hashes());
        // Two digits are enough to read; no more than is guaranteed.
        return (
            Measure::Signatures,
            (distance * 100.0 + 1e-9).floor() / 100.0,
        );
    }
    with_words!(words_of(index), N => {
        let layout = Index::<N>::open(index).block_layout;
        (Measure::Bits(layout.bits()), f64::from(layout.distance()))
    })
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
