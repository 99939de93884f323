//! Table, columns and object names that the statements of `neardup_setup` use.
use core::ffi::CStr;
use std::ffi::CString;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::Goal;
use crate::dedup::trigger::extension_types::ExtensionTypes;
use crate::dedup::trigger::names;
use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::local_rows::{Reader, require_local_rows};
use neardup_pg::rel::Rel;
use neardup_pg::unique_keys::primary_key_column;

/// Table and text column of a call of `neardup_setup`, and the objects that its statements create.
pub struct Subject<'a> {
    pub table: Rel<'a>,
    /// Name of the text column.
    pub text: CString,
    /// Number of the text column.
    pub text_column: i16,
    /// Number of the column whose values are used as marks. `None` unless rows are marked.
    pub key_column: Option<i16>,
    pub goal: Goal,
    /// Minimum similarity of near-duplicates, from 0 to 1.
    pub similarity: f64,
    /// Types of the extension, and its schema.
    pub types: ExtensionTypes,
    pub names: Names,
    /// Type of the mark column in SQL. Empty unless rows are marked.
    pub key_type: Vec<u8>,
}

/// Names of the objects that the statements create.
pub struct Names {
    /// Index for searches, on an expression that makes fingerprints of the text.
    pub search_index: CString,
    /// Column for fingerprints.
    pub fingerprint: CString,
    /// Index on the fingerprint column.
    pub fingerprint_index: CString,
    /// Column for marks.
    pub mark: CString,
    /// Index on the mark column.
    pub mark_index: CString,
    /// BEFORE trigger that handles near-duplicates.
    pub trigger: CString,
    /// AFTER trigger that renews marks.
    pub marks_trigger: CString,
}

impl Names {
    /// Derives the names only from the names of the table and the text column, so that the
    /// statements that remove objects find the objects that were added.
    fn new(table: &CStr, text: &CStr) -> Self {
        let in_table = |label| catalog::derived_name(text, None, label);
        let in_schema = |label| catalog::derived_name(table, Some(text), label);
        Names {
            search_index: in_schema(c"neardup"),
            fingerprint: in_table(c"neardup_fp"),
            fingerprint_index: in_schema(c"neardup_fp"),
            mark: in_table(c"neardup_of"),
            mark_index: in_schema(c"neardup_of"),
            trigger: in_table(c"neardup"),
            marks_trigger: in_table(c"neardup_marks"),
        }
    }
}

impl<'a> Subject<'a> {
    /// Finds the columns and names for a call. Raises an error if the table or its text column does
    /// not allow the goal. `function` is the extension's function being called.
    pub fn new(
        table: Rel<'a>,
        function: pg_sys::Oid,
        text: &CStr,
        goal: Goal,
        similarity: f64,
    ) -> Self {
        let text_column = text_column(table, text);
        if goal != Goal::Search {
            check_columns_may_be_added(table);
        }
        let key_column = (goal == Goal::Mark).then(|| key(table));
        Subject {
            table,
            text: text.to_owned(),
            text_column,
            key_column,
            goal,
            similarity,
            types: ExtensionTypes::beside(function),
            names: Names::new(&table.name(), text),
            key_type: key_column.map_or_else(Vec::new, |key| {
                let key = table.attribute(key);
                // The base type, because a domain may reject NULL, which is the mark of an
                // original.
                catalog::qualified_type(catalog::base_type(key.atttypid), key.atttypmod)
            }),
        }
    }
}

/// Raises an error for a relation that is not an ordinary table.
pub fn check_kind(relation: pg_sys::Oid) {
    let kind = catalog::relation_kind(relation);
    let name = catalog::relation_name(relation);
    let what = match kind {
        pg_sys::RELKIND_RELATION => return,
        0 => UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
            format!("relation with OID {name} does not exist"),
        )
        .detail("This OID is the value of the argument relation.")
        .hint("Pass the name of a table.")
        .raise(),
        pg_sys::RELKIND_PARTITIONED_TABLE => UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("table \"{name}\" is partitioned"),
        )
        .detail("CREATE INDEX CONCURRENTLY works only on the partitions of the table.")
        .hint("For searches, call neardup_setup for each partition.")
        .raise(),
        pg_sys::RELKIND_VIEW => "a view",
        pg_sys::RELKIND_MATVIEW => "a materialized view",
        pg_sys::RELKIND_FOREIGN_TABLE => "a foreign table",
        _ => "another kind of relation",
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        format!("\"{name}\" is not a table"),
    )
    .detail(format!("The relation is {what}."))
    .hint("Pass the name of the table that stores the texts.")
    .raise()
}

/// Returns the number of the text column with this name. Raises an error if it is missing or not a
/// text.
fn text_column(table: Rel, name: &CStr) -> i16 {
    let Some(column) = table.column_number(name) else {
        UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            format!(
                "column \"{}\" of table \"{}\" does not exist",
                name.to_string_lossy(),
                table.shown()
            ),
        )
        .detail(
            "The argument text_column must match the stored name exactly, including upper and \
             lower case.",
        )
        .hint(text_columns(table))
        .raise()
    };
    let column_type = table.attribute(column).atttypid;
    if !catalog::is_text_or_char(column_type) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            format!(
                "column \"{}\" of table \"{}\" does not have a text type",
                name.to_string_lossy(),
                table.shown()
            ),
        )
        .detail(format!(
            "The column has type {}. The type must be text, varchar, char, citext or a domain over \
             one of them.",
            catalog::type_name(column_type)
        ))
        .hint(text_columns(table))
        .raise();
    }
    column
}

/// Returns a hint that lists the text columns of a table.
fn text_columns(table: Rel) -> String {
    const MAX_LISTED: usize = 20;
    let listed: Vec<String> = (table.attributes())
        .filter(|column| catalog::is_text_or_char(column.atttypid))
        .map(|column| names::shown(&catalog::name_of(&column.attname)))
        .collect();
    match listed.len() {
        0 => "The table has no text column.".to_owned(),
        count => format!(
            "Pass a text column: {}{}.",
            listed[..count.min(MAX_LISTED)].join(", "),
            if count > MAX_LISTED { ", ..." } else { "" }
        ),
    }
}

/// Raises an error if columns or triggers cannot be added to the table.
fn check_columns_may_be_added(table: Rel) {
    require_local_rows(table.oid(), Reader::Trigger);
    if table.is_partition() {
        UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("table \"{}\" is a partition", table.shown()),
        )
        .detail("A partition has the columns of its partitioned table.")
        .hint("For searches, call neardup_setup with action => 'search'.")
        .raise();
    }
}

/// Returns the number of the column whose values are used as marks: the primary key. Raises an
/// error if the primary key is missing or has several columns.
fn key(table: Rel) -> i16 {
    primary_key_column(table).unwrap_or_else(|| {
        UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            format!(
                "table \"{}\" does not have a single-column primary key",
                table.shown()
            ),
        )
        .detail("A mark is the primary key of the original row.")
        .hint(
            "Add a primary key, or write the triggers yourself with 'key=...' for a column that \
             identifies rows.",
        )
        .raise()
    })
}
