//! Fingerprint of the row that a statement writes: passed with the row, computed from its text, or
//! computed by the expression of a generated column. The server evaluates that expression only
//! after the BEFORE triggers.
use std::ffi::{CStr, CString};
use std::rc::Rc;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::columns::Columns;
use super::extension_types::ExtensionTypes;
use super::trigger_arguments::{Arguments, OPTIONS};
use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::generated::{GeneratedColumns, PlannedColumns};
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::Rel;
use neardup_pg::spi;
use neardup_pg::value::{OwnedValue, Value};

/// Source of the fingerprints of new rows. `G` is the type of the expressions of generated columns,
/// which are either planned or compiled.
pub enum Source<G> {
    /// The statement passes the fingerprint with the row.
    Given,
    /// The trigger computes the fingerprint from the text. The first field is the SQL statement
    /// that computes it; its parameter is the text. The second field is the expression of the text
    /// column, if that column is generated.
    OfText(Rc<CStr>, Option<G>),
    /// The fingerprint column is generated. Has the expression of that column.
    Generated(G),
}

/// Source of fingerprints with planned expressions, which can be kept between statements.
pub type FingerprintSource = Source<PlannedColumns>;

/// Source of fingerprints with compiled expressions, for the rows of one statement.
pub type Fingerprints = Source<GeneratedColumns>;

impl FingerprintSource {
    /// Prepares the source of fingerprints for the rows of a trigger's table.
    pub fn new(
        table: Rel,
        types: ExtensionTypes,
        arguments: &Arguments,
        columns: &Columns,
    ) -> Self {
        let generated = table.is_stored_generated(columns.fingerprint);
        match (columns.text, generated) {
            (None, false) => Source::Given,
            (None, true) => Source::Generated(PlannedColumns::new(table, &[columns.fingerprint])),
            (Some(_), true) => UserError::new(
                PgSqlErrorCode::ERRCODE_GENERATED_ALWAYS,
                "neardup_dedup cannot compute a generated column",
            )
            .detail("The expression of the generated column already computes the fingerprint.")
            .hint("Remove the text column from the trigger's arguments.")
            .raise(),
            (Some(text), false) => {
                let text_type = table.attribute(text).atttypid;
                if !catalog::is_text_or_char(text_type) {
                    UserError::new(
                        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                        "neardup_dedup computes fingerprints only from texts",
                    )
                    .detail(format!(
                        "The source column has type {}. The type must be text, varchar, char, \
                         citext or a domain over one of them.",
                        catalog::type_name(text_type)
                    ))
                    .hint(
                        "Compute the fingerprint yourself, and pass only its column to the \
                         trigger.",
                    )
                    .raise();
                }
                let fingerprint = table.attribute(columns.fingerprint).atttypid;
                let statement = statement(types, fingerprint, arguments);
                let generated = table.is_generated(text);
                let generated = generated.then(|| PlannedColumns::new(table, &[text]));
                Source::OfText(statement.into(), generated)
            }
        }
    }

    /// Returns whether the plans of generated columns are still valid.
    pub fn is_valid(&self) -> bool {
        match self {
            Source::Given | Source::OfText(_, None) => true,
            Source::OfText(_, Some(planned)) | Source::Generated(planned) => planned.is_valid(),
        }
    }

    /// Compiles the expressions for the rows of one statement.
    pub fn compile(&self, table: Rel) -> Fingerprints {
        match self {
            Source::Given => Source::Given,
            Source::OfText(statement, planned) => Source::OfText(
                Rc::clone(statement),
                planned.as_ref().map(|planned| planned.compile(table)),
            ),
            Source::Generated(planned) => Source::Generated(planned.compile(table)),
        }
    }
}

impl Fingerprints {
    /// Returns the fingerprint of a new row, or `None` for NULL. A fingerprint that the trigger
    /// computes from the text is also stored in the row. `table` must be the table that was passed
    /// to [`FingerprintSource::new`].
    pub fn of_row<'a>(
        &self,
        table: Rel,
        row: &mut NewRow<'a>,
        columns: &Columns,
    ) -> Option<OwnedValue> {
        match self {
            Source::Given => row.get(columns.fingerprint).map(Value::to_owned),
            Source::OfText(statement, generated) => {
                let made = generated.as_ref();
                let made = made.and_then(|generated| generated.values(table, row).pop().flatten());
                let text = match &made {
                    Some(made) => Some(made.get()),
                    None => columns.text.and_then(|column| row.get(column)),
                };
                let fingerprint = text.and_then(|text| spi::value(statement, &[text.as_text()]));
                row.set(
                    columns.fingerprint,
                    fingerprint.as_ref().map(OwnedValue::get),
                );
                // Reads the fingerprint from the column, whose type may be a domain.
                row.get(columns.fingerprint).map(Value::to_owned)
            }
            Source::Generated(column) => column.values(table, row).pop().flatten(),
        }
    }
}

/// Functions that make fingerprints from texts, each with its result type. The first function for a
/// result type is the default for columns of that type.
const FUNCTIONS: [(&CStr, &CStr); 5] = [
    (c"minhash64", c"fingerprint"),
    (c"minhash128", c"fingerprint128"),
    (c"minhash", c"minhash_signature"),
    (c"simhash", c"fingerprint"),
    (c"simhash128", c"fingerprint128"),
];

/// Hint of errors about a fingerprint that the trigger cannot compute.
const OTHERWISE: &str = "To compute any other fingerprint, use a generated column: fp \
                         fingerprint128 GENERATED ALWAYS AS (minhash128(body, shingle => 4)) \
                         STORED. Then remove the text column from the trigger's arguments.";

/// Returns the SELECT statement that computes a fingerprint of type `column_type` from its
/// parameter, a text.
fn statement(types: ExtensionTypes, column_type: pg_sys::Oid, arguments: &Arguments) -> CString {
    let (function, cast) = function(types, column_type, arguments);
    let call = call(types, function, &arguments.parameters, b"$1");
    CString::new([b"SELECT ", call.as_slice(), cast].concat()).expect("made of C strings")
}

/// Returns the SQL call of a function that makes fingerprints from a text. `text` is the SQL
/// expression for the text. `parameters` has the names and values of the function's other
/// parameters. Raises error 22023 for an unknown name.
pub fn call(
    types: ExtensionTypes,
    function: &CStr,
    parameters: &[(CString, CString)],
    text: &[u8],
) -> Vec<u8> {
    // The variant `*_without` of the function has all parameters of the function. Its parameter
    // `without` is the set of common features.
    let without = CString::new([function.to_bytes(), b"_without"].concat()).expect("C strings");
    let mut known = catalog::parameters_of_text_functions(types.schema(), &without);
    known.sort_by_key(|name| name.as_c_str() == c"without");
    let has_set = (parameters.iter()).any(|(name, _)| name.as_c_str() == c"without");
    let mut call = catalog::quoted(&catalog::schema_name(types.schema()));
    call.push(b'.');
    call.extend(if has_set { &without } else { function }.to_bytes());
    call.push(b'(');
    call.extend(text);
    for (name, value) in parameters {
        if !known.contains(name) {
            refuse_option(name, function, &known);
        }
        call.extend(b", ");
        call.extend(catalog::quoted(name));
        call.extend(b" => ");
        call.extend(catalog::literal(value));
    }
    call.push(b')');
    call
}

/// Returns the name of the function that makes the fingerprints of a column type, and the SQL cast
/// of its result to that type, if one is needed.
fn function(
    types: ExtensionTypes,
    column_type: pg_sys::Oid,
    arguments: &Arguments,
) -> (&'static CStr, &'static [u8]) {
    let in_bigint = catalog::base_type(column_type) == pg_sys::INT8OID;
    let (made, cast) = match (in_bigint, types.name(column_type)) {
        (true, _) => (c"fingerprint".to_owned(), b"::pg_catalog.int8".as_slice()),
        (false, name) => (name.unwrap_or_default(), b"".as_slice()),
    };
    let fits = |makes: &CStr| makes == made.as_c_str();
    let Some(wanted) = &arguments.function else {
        let default = (FUNCTIONS.into_iter()).find(|(_, makes)| !in_bigint && fits(makes));
        let Some((function, _)) = default else {
            no_function(column_type, in_bigint)
        };
        return (function, cast);
    };
    match (FUNCTIONS.into_iter()).find(|(name, _)| *name == wanted.as_c_str()) {
        Some((function, makes)) if fits(makes) => (function, cast),
        Some((function, makes)) => refuse_function(
            function,
            makes,
            column_type,
            &arguments.fingerprint,
            &listed(fits),
        ),
        None => UserError::invalid_parameter(format!(
            "neardup_dedup does not support the function \"{}\"",
            wanted.to_string_lossy()
        ))
        .detail(format!("The supported functions are {}.", listed(|_| true)))
        .hint(OTHERWISE)
        .raise(),
    }
}

/// Lists the functions in [`FUNCTIONS`] whose result types satisfy `makes`, for messages.
fn listed(makes: impl Fn(&CStr) -> bool) -> String {
    let names: Vec<_> = (FUNCTIONS.iter())
        .filter(|(_, result)| makes(result))
        .map(|(name, _)| name.to_string_lossy())
        .collect();
    names.join(", ")
}

/// Raises error 42804: no function is the default for the column's type. `in_bigint` is true if
/// that type is `bigint`, or a domain over it.
fn no_function(column_type: pg_sys::Oid, in_bigint: bool) -> ! {
    let type_name = catalog::type_name(column_type);
    UserError::new(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        "neardup_dedup cannot compute this column from a text",
    )
    .detail(match in_bigint {
        true => format!(
            "The column has type {type_name}, but the trigger's arguments do not specify a \
             function."
        ),
        false => format!(
            "The column has type {type_name}. The functions minhash64 and simhash return a \
             fingerprint. The functions minhash128 and simhash128 return a fingerprint128. The \
             function minhash returns a minhash_signature."
        ),
    })
    .hint(match in_bigint {
        true => "Add 'function=minhash64' or 'function=simhash'.",
        false => "Compute the value yourself, and pass only its column to the trigger.",
    })
    .raise()
}

/// Raises error 42804: the function in the trigger's arguments makes values of type `makes`, and
/// the column has another type. The hint lists `others`, the functions that fit the column.
fn refuse_function(
    function: &CStr,
    makes: &CStr,
    column_type: pg_sys::Oid,
    column: &CStr,
    others: &str,
) -> ! {
    let function = function.to_string_lossy();
    UserError::new(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        format!(
            "{function} does not return the type of column \"{}\"",
            column.to_string_lossy()
        ),
    )
    .detail(format!(
        "The function returns a {}, but the column has type {}.",
        makes.to_string_lossy(),
        catalog::type_name(column_type)
    ))
    .hint(match others.is_empty() {
        true => "Compute the value yourself, and pass only its column to the trigger.".to_owned(),
        false => format!(
            "Specify {others}, or change the type of the column to the type that the function \
             returns."
        ),
    })
    .raise()
}

fn refuse_option(name: &CStr, function: &CStr, known: &[CString]) -> ! {
    let known: Vec<_> = known.iter().map(|name| name.to_string_lossy()).collect();
    UserError::invalid_parameter(format!(
        "neardup_dedup has no option \"{}\"",
        name.to_string_lossy()
    ))
    .detail(format!(
        "The options of neardup_dedup are {}. The options of {} are {}.",
        OPTIONS.join(", "),
        function.to_string_lossy(),
        match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        }
    ))
    .hint(format!(
        "Drop the trigger, and create it again with valid options. {OTHERWISE}"
    ))
    .raise()
}
