//! Table, columns and object names that the statements of `neardup_setup` use. If near-duplicates
//! are marked, the mark of a row is the key of its original, which is the row that it repeats.
use core::ffi::CStr;
use std::ffi::CString;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::object_names::ObjectNames;
use super::{Goal, options};
use crate::dedup::trigger::extension_types::ExtensionTypes;
use crate::dedup::trigger::names;
use crate::dedup::trigger::trigger_arguments::Arguments;
use neardup_pg::catalog;
use neardup_pg::errors::UserError;
use neardup_pg::local_rows::{Reader, require_local_rows};
use neardup_pg::order_by::OrderBy;
use neardup_pg::rel::Rel;
use neardup_pg::unique_keys::primary_key_column;

/// Table and text column of a call of `neardup_setup`, and the objects that its statements create.
pub struct Subject<'a> {
    pub table: Rel<'a>,
    /// Name of the text column.
    pub text: CString,
    /// Attribute number of the text column.
    pub text_column: i16,
    /// Attribute number of the column whose values are used as marks. `None` unless rows are
    /// marked.
    pub key_column: Option<i16>,
    pub goal: Goal,
    /// Minimum similarity of near-duplicates, from 0 to 1.
    pub similarity: f64,
    /// Order in which existing rows become originals. `None` for the order in which they are
    /// stored.
    pub keep: Option<OrderBy>,
    /// Arguments of the triggers, as texts for CREATE TRIGGER.
    pub written: Vec<CString>,
    /// The arguments in `written`, parsed. [`Goal::Search`] creates an index but no trigger. The
    /// statement for the index then uses only the bound, the scope columns and the options of the
    /// fingerprint function.
    pub arguments: Arguments,
    /// SQL types of the extension, with the schema of the extension.
    pub types: ExtensionTypes,
    pub names: ObjectNames,
    /// Type of the mark column in SQL. Empty unless rows are marked.
    pub key_type: Vec<u8>,
}

/// Arguments of `neardup_setup` that describe what the statements add to a table.
pub struct Wanted {
    pub goal: Goal,
    /// Minimum similarity of near-duplicates, from 0 to 1.
    pub similarity: f64,
    /// Argument `options`: further arguments of the triggers.
    pub options: Vec<CString>,
    /// Order in which existing rows become originals. `None` for the order in which they are
    /// stored.
    pub keep: Option<OrderBy>,
}

impl<'a> Subject<'a> {
    /// Finds the columns and names for a call. Raises an error if the table or its text column does
    /// not allow the goal. `function` is the extension's function being called.
    pub fn new(table: Rel<'a>, function: pg_sys::Oid, text: &CStr, wanted: Wanted) -> Self {
        let Wanted {
            goal,
            similarity,
            options,
            keep,
        } = wanted;
        let text_column = text_column(table, text);
        if goal != Goal::Search {
            check_columns_may_be_added(table);
        }
        let key_column = (goal == Goal::Mark).then(|| key(table));
        let names = ObjectNames::new(&table.name(), text);
        let written = options::written(goal, similarity, text, &names, options);
        let arguments = options::parse(table, goal, &names, &written);
        Subject {
            written,
            arguments,
            table,
            text: text.to_owned(),
            text_column,
            key_column,
            goal,
            similarity,
            keep,
            types: ExtensionTypes::beside(function),
            names,
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
        .detail("This OID is the value of the argument \"relation\".")
        .hint("Pass the name of a table.")
        .raise(),
        pg_sys::RELKIND_PARTITIONED_TABLE => UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("table \"{name}\" is partitioned"),
        )
        .detail("CREATE INDEX CONCURRENTLY cannot create an index on a partitioned table.")
        .hint("Call neardup_setup for each partition, with action => 'search'.")
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

/// Returns the attribute number of the text column with this name. Raises an error if the column is
/// missing or does not have a text type.
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
            "The argument \"text_column\" must match the stored name exactly, including upper and \
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
        .detail("A partition cannot have columns that its partitioned table does not have.")
        .hint("For a partition, neardup_setup supports only action => 'search'.")
        .raise();
    }
}

/// Returns the attribute number of the column whose values are used as marks: the primary key.
/// Raises an error if the primary key is missing or has several columns.
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
            "Add a primary key. Or write the triggers yourself with the option 'key=...', which \
             names a column that identifies rows.",
        )
        .raise()
    })
}
