//! The trigger's option `confirm=`: rows with near fingerprints are near-duplicates only if their
//! texts are similar, too. Texts are compared by their features, which are sequences of tokens.
use core::cell::OnceCell;
use std::ffi::CString;

use neardup_sketch::TextOptions;
use neardup_sketch::candidates::similarity_at_least;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::columns::Columns;
use super::extension_types::ExtensionTypes;
use super::trigger_arguments::Arguments;
use crate::am::makers::{TextCall, text_calls_of_column};
use crate::dedup::confirm::{feature_call, feature_hashes};
use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::{Rel, Trigger};
use neardup_pg::slot::Slot;
use neardup_pg::spi;
use neardup_pg::value::{OwnedValue, Value};

/// Comparison of the texts of a new row and of near rows by their features.
pub struct TextComparison {
    /// Attribute number of the text column.
    pub column: i16,
    /// Statement that returns the feature hashes of a text. The text is the statement's parameter.
    statement: CString,
    /// Minimum Jaccard similarity of the two texts.
    pub similarity: f64,
}

impl TextComparison {
    /// Prepares the comparison that a trigger's arguments ask for. Returns `None` without the
    /// option `confirm`. The features are those of the function that makes the fingerprints.
    pub fn new(
        table: Rel,
        trigger: &Trigger,
        arguments: &Arguments,
        columns: &Columns,
    ) -> Option<Self> {
        let (confirm, text) = (arguments.confirm.as_ref()).zip(columns.compared_text)?;
        let types = ExtensionTypes::beside(trigger.function);
        if !catalog::is_text_or_char(table.attribute(text).atttypid) {
            UserError::new(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                "neardup_dedup can compare only texts",
            )
            .detail(format!(
                "The option \"confirm\" names a column of type {}.",
                catalog::type_name(table.attribute(text).atttypid)
            ))
            .hint("Specify the text column from which the fingerprints are computed.")
            .raise();
        }
        let calls = match columns.text {
            Some(_) => vec![options(arguments)],
            None => text_calls_of_column(trigger.function, table, columns.fingerprint),
        };
        let schema = catalog::schema_name(types.schema());
        let call = feature_call(b"$1", &schema, &calls, &table.shown());
        let statement = [b"SELECT ", call.as_slice()].concat();
        Some(TextComparison {
            column: text,
            statement: CString::new(statement).expect("made of C strings"),
            similarity: confirm.similarity,
        })
    }

    /// Returns the sorted feature hashes of a text. Returns no hashes for NULL.
    pub fn features(&self, text: Option<Value>) -> Vec<u64> {
        let hashes = text.and_then(|text| spi::value(&self.statement, &[text.as_text()]));
        feature_hashes(hashes.as_ref().map(OwnedValue::get))
    }
}

/// Returns the options of the fingerprint function in a trigger's arguments, as SQL constants of
/// type `unknown`.
fn options(arguments: &Arguments) -> TextCall {
    let constant = |value: CString| Some(Some((value, pg_sys::UNKNOWNOID)));
    let mut options: TextCall = (arguments.parameters.iter())
        .map(|(name, value)| (name.clone(), constant(value.clone())))
        .collect();
    // Only simhash has another default of `shingle` than the function of feature hashes, so its
    // default is passed explicitly.
    let function = arguments.function.as_deref().unwrap_or_default();
    if function.to_bytes().starts_with(b"simhash")
        && !options
            .iter()
            .any(|(name, _)| name.as_c_str() == c"shingle")
    {
        let shingle = CString::new(TextOptions::SIMHASH.shingle.to_string());
        options.push((c"shingle".to_owned(), constant(shingle.unwrap_or_default())));
    }
    options
}

/// Text of a new row. Its features are computed when the first near row is found.
pub struct NewText<'a> {
    comparison: &'a TextComparison,
    text: Option<Value<'a>>,
    features: OnceCell<Vec<u64>>,
}

impl<'a> NewText<'a> {
    pub fn new(comparison: &'a TextComparison, row: &'a NewRow<'a>) -> Self {
        NewText {
            comparison,
            text: row.get(comparison.column),
            features: OnceCell::new(),
        }
    }

    /// Returns the Jaccard similarity of the text of the new row and the text of an existing row.
    /// Returns `None` if it is below the minimum similarity.
    pub fn similarity(&self, row: &Slot) -> Option<f64> {
        let comparison = self.comparison;
        let own = self.features.get_or_init(|| comparison.features(self.text));
        let other = comparison.features(row.get(comparison.column));
        similarity_at_least(own, &other, comparison.similarity)
    }
}
