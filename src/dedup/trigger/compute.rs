//! The new row's fingerprint: given with the row, computed from its text, or by the expression of
//! a generated column, which the server itself evaluates only after the triggers.
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::arguments::{Arguments, OPTIONS};
use super::columns::{Columns, Types};
use crate::pg::catalog;
use crate::pg::errors::UserError;
use crate::pg::generated::GeneratedColumns;
use crate::pg::new_row::NewRow;
use crate::pg::rel::Rel;
use crate::pg::spi;
use crate::pg::value::{OwnedValue, Value};

/// Source of fingerprints.
pub enum Fingerprints {
    Given,
    /// A statement with the text as its parameter.
    OfText(CString),
    /// The expression of the generated column.
    Generated(GeneratedColumns),
}

impl Fingerprints {
    /// Prepares what computes the fingerprints of a table's rows.
    pub fn new(table: Rel, types: Types, arguments: &Arguments, columns: &Columns) -> Self {
        let generated = table.is_stored_generated(columns.fingerprint);
        match (columns.text, generated) {
            (None, false) => Fingerprints::Given,
            (None, true) => {
                Fingerprints::Generated(GeneratedColumns::new(table, &[columns.fingerprint]))
            }
            (Some(_), true) => UserError::new(
                PgSqlErrorCode::ERRCODE_GENERATED_ALWAYS,
                "a generated fingerprint column is not computed by neardup_dedup as well",
            )
            .detail("The column's own expression makes the fingerprint.")
            .hint("Leave the text's column out of the trigger's arguments.")
            .raise(),
            (Some(text), false) => {
                let text_type = table.attribute(text).atttypid;
                if !is_text(text_type) {
                    UserError::new(
                        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                        "neardup_dedup computes fingerprints of texts only",
                    )
                    .detail(format!(
                        "The column to compute from is of type {}, and not text, varchar, \
                         char, citext or a domain over one of them.",
                        catalog::type_name(text_type)
                    ))
                    .hint("Compute the fingerprint yourself, and name only its column.")
                    .raise();
                }
                let fingerprint = table.attribute(columns.fingerprint).atttypid;
                Fingerprints::OfText(statement(types, fingerprint, arguments))
            }
        }
    }

    /// The fingerprint of a row of the table that this was made for, which gets it if it was
    /// computed; `None` for NULL.
    pub fn of_row<'a>(
        &self,
        table: Rel,
        row: &mut NewRow<'a>,
        columns: &Columns,
    ) -> Option<OwnedValue> {
        match self {
            Fingerprints::Given => row.get(columns.fingerprint).map(Value::to_owned),
            Fingerprints::OfText(statement) => {
                let text = columns.text.and_then(|column| row.get(column));
                let fingerprint = text.and_then(|text| spi::value(statement, &[text.as_text()]));
                row.set(
                    columns.fingerprint,
                    fingerprint.as_ref().map(OwnedValue::get),
                );
                // As the column has it, whose type may be a domain.
                row.get(columns.fingerprint).map(Value::to_owned)
            }
            Fingerprints::Generated(column) => column.values(table, row).pop().flatten(),
        }
    }
}

/// Returns whether a fingerprint can be computed from values of a type: of text and what is stored
/// alike, and of `char(n)`, whose cast to text takes the blanks at its end away.
fn is_text(column: pg_sys::Oid) -> bool {
    let base = catalog::base_type(column);
    base == pg_sys::BPCHAROID || catalog::is_text(base)
}

/// The statement that makes a fingerprint of this type from a text.
fn statement(types: Types, fingerprint: pg_sys::Oid, arguments: &Arguments) -> CString {
    let function = match types.name(fingerprint).as_deref().map(CStr::to_bytes) {
        Some(b"fingerprint") => c"simhash",
        Some(b"fingerprint128") => c"simhash128",
        Some(b"minhash_signature") => c"minhash",
        _ => UserError::new(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            "neardup_dedup cannot compute this column from a text",
        )
        .detail(format!(
            "It is of type {}; simhash makes a fingerprint, simhash128 a fingerprint128, \
             minhash a minhash_signature.",
            catalog::type_name(fingerprint)
        ))
        .hint("Compute it yourself, and name only its column.")
        .raise(),
    };
    let known = catalog::parameters_of_text_functions(types.schema(), function);
    let mut text = b"SELECT ".to_vec();
    text.extend(catalog::quoted(&catalog::schema_name(types.schema())));
    text.push(b'.');
    text.extend(function.to_bytes());
    text.extend(b"($1");
    for (name, value) in &arguments.parameters {
        if !known.contains(name) {
            refuse_option(name, function, &known);
        }
        text.extend(b", ");
        text.extend(catalog::quoted(name));
        text.extend(b" => ");
        text.extend(catalog::literal(value));
    }
    text.push(b')');
    CString::new(text).expect("made of C strings")
}

fn refuse_option(name: &CStr, function: &CStr, known: &[CString]) -> ! {
    let known: Vec<_> = known.iter().map(|name| name.to_string_lossy()).collect();
    UserError::invalid_parameter(format!(
        "neardup_dedup knows no option \"{}\"",
        name.to_string_lossy()
    ))
    .detail(format!(
        "The trigger's own options are {}; those of {} are {}.",
        OPTIONS.join(", "),
        function.to_string_lossy(),
        match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        }
    ))
    .hint("Drop the trigger and create it with the right options.")
    .raise()
}
