//! Columns that a trigger's arguments name, and the index for the trigger's lookups.
use core::cmp::Ordering;
use core::ops::Deref;
use std::ffi::{CStr, CString};

use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::metric::Metric;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::bound_argument::{BoundArgument, max_distance};
use super::extension_types::ExtensionTypes;
use super::names;
use super::time_window::TimeWindow;
use super::trigger_arguments::{Action, Arguments};
use crate::am::cost::search_cost;
use crate::am::index::metric_of;
use crate::am::keys::Layout;
use crate::am::strategies;
use crate::dedup::bound::{Bound, IndexBounds};
use neardup_pg::catalog;
use neardup_pg::equality::EqualColumn;
use neardup_pg::errors::UserError;
use neardup_pg::local_rows::{Reader, require_local_rows};
use neardup_pg::rel::{OpenRelation, Rel};
use neardup_pg::unique_keys::primary_key_column;

/// Columns that a trigger's arguments name, as attribute numbers.
pub struct NamedColumns {
    /// Column of the fingerprint or signature.
    pub fingerprint: i16,
    /// Column of the text that the trigger computes fingerprints from. `None` if it computes none.
    pub text: Option<i16>,
    /// Column that identifies rows to users. `None` if it is not named and the table has no primary
    /// key of one column.
    pub key: Option<i16>,
    /// Column of the texts that are compared if the fingerprints of two rows are near each other.
    /// `None` without the option `confirm`.
    pub compared_text: Option<i16>,
    /// Column for marks. The mark of a near-duplicate is the key of its original, which is the row
    /// that it repeats. `None` unless the action is `mark`.
    pub mark: Option<i16>,
    /// Scope columns, in the order of the arguments. Only rows with equal values in them are
    /// compared.
    pub scope: Vec<i16>,
    /// Column of the times or ranges. `None` without the option `time`.
    pub time: Option<i16>,
}

impl NamedColumns {
    /// Finds the columns that a trigger's arguments name. Raises an error if one is missing or
    /// unsuitable.
    pub fn find(table: Rel, arguments: &Arguments) -> Self {
        require_local_rows(table.oid(), Reader::Trigger);
        let column = |name: &CString, argument| column(table, name, argument);
        let fingerprint = column(&arguments.fingerprint, "The first argument");
        let text = (arguments.text.as_ref()).map(|name| column(name, "The second argument"));
        let confirm = arguments.confirm.as_ref();
        let compared_text =
            confirm.map(|confirm| column(&confirm.column, "The option \"confirm\""));
        let mark = match &arguments.action {
            Action::Mark(name) => Some(column(name, "The option \"mark\"")),
            _ => None,
        };
        let key = match &arguments.key {
            Some(name) => Some(column(name, "The option \"key\"")),
            None => primary_key_column(table),
        };
        let scope = (arguments.scope.iter())
            .map(|name| column(name, "The option \"scope\""))
            .collect();
        let time =
            (arguments.time.as_ref()).map(|time| column(&time.column, "The option \"time\""));
        if key.is_none() && matches!(arguments.action, Action::Mark(_) | Action::Log(_)) {
            UserError::new(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!(
                    "table \"{}\" does not have a single-column primary key",
                    table.shown()
                ),
            )
            .detail("neardup_dedup stores the key of the original row.")
            .hint("Specify the column that identifies rows, such as 'key=id'.")
            .raise();
        }
        if let (Some(mark), Some(key)) = (mark, key) {
            check_types(table, mark, key);
        }
        if mark.is_some_and(|mark| table.is_generated(mark)) {
            UserError::new(
                PgSqlErrorCode::ERRCODE_GENERATED_ALWAYS,
                "the column for marks is a generated column",
            )
            .detail("The trigger writes the key of the original row to this column.")
            .hint("Specify a column that is not generated.")
            .raise();
        }
        NamedColumns {
            fingerprint,
            text,
            key,
            compared_text,
            mark,
            scope,
            time,
        }
    }
}

/// Columns of the trigger's table, as attribute numbers, and the index in which the trigger looks
/// up near rows.
pub struct Columns {
    named: NamedColumns,
    /// Scope columns, in index order. Only rows with equal values in them are compared.
    pub scope: Vec<EqualColumn>,
    /// Condition on the times of compared rows. `None` without the option `time`.
    pub window: Option<TimeWindow>,
    /// OID of the index in which the trigger looks up near rows.
    pub index: pg_sys::Oid,
    pub metric: IndexMetric,
    /// Maximum distance of near-duplicates, in bits or mismatches.
    pub limit: u32,
}

impl Deref for Columns {
    type Target = NamedColumns;

    fn deref(&self) -> &NamedColumns {
        &self.named
    }
}

impl Columns {
    /// Finds the columns and the index for a trigger on `table`. Raises an error if a column or the
    /// index is missing.
    pub fn find(table: Rel, types: ExtensionTypes, arguments: &Arguments) -> Self {
        let named = NamedColumns::find(table, arguments);
        let column_type = table.attribute(named.fingerprint).atttypid;
        require_fingerprints(table, types, named.fingerprint);
        let holds_signatures = types.name(column_type).as_deref() == Some(c"minhash_signature");
        // Invalid arguments are reported before a missing index. Their validity does not depend on
        // the number of bits or positions.
        let any_width = match holds_signatures {
            true => Metric::Jaccard(1),
            false => Metric::Hamming { bits: 64 },
        };
        arguments.or_invalid(arguments.near.max_distance(any_width));
        arguments.or_invalid(arguments.check_similarity());
        let window = TimeWindow::new(table, named.time, arguments);
        let found = find_index(table, &named, arguments);
        let Some((index, scope, metric, limit)) = found else {
            no_index(table, arguments, holds_signatures);
        };
        Columns {
            named,
            scope,
            window,
            index,
            metric,
            limit,
        }
    }
}

/// Returns the attribute number of the column `name`. Raises an error if the table has no such
/// column. `argument` describes the trigger's argument that names it.
pub fn column(table: Rel, name: &CStr, argument: &str) -> i16 {
    table
        .column_number(name)
        .unwrap_or_else(|| no_column(table, name, argument))
}

/// Raises error 42804 unless a column's type is for fingerprints or signatures, or is `bigint`.
fn require_fingerprints(table: Rel, types: ExtensionTypes, column: i16) {
    let column_type = table.attribute(column).atttypid;
    let name = types.name(column_type);
    let has_distances = [
        c"fingerprint",
        c"fingerprint128",
        c"fingerprint256",
        c"minhash_signature",
    ]
    .into_iter()
    .any(|known| name.as_deref() == Some(known));
    if has_distances || catalog::base_type(column_type) == pg_sys::INT8OID {
        return;
    }
    let name = names::shown(&table.column_name(column));
    let error = UserError::new(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        format!(
            "column \"{name}\" of table \"{}\" does not contain fingerprints",
            table.shown()
        ),
    )
    .detail(format!(
        "The first argument of neardup_dedup names this column. The column has type {}.",
        catalog::type_name(column_type)
    ));
    match catalog::is_text(catalog::base_type(column_type)) {
        true => error.hint(format!(
            "Add a fingerprint column, and pass its name before the text column: \
             neardup_dedup('fp', '{name}')."
        )),
        false => error.hint("Specify a column of type fingerprint."),
    }
    .raise()
}

/// Maximum number of columns that a hint lists. A longer list ends with an ellipsis.
const MOST_LISTED: usize = 20;

fn no_column(table: Rel, name: &CStr, argument: &str) -> ! {
    let all: Vec<String> = (table.attributes())
        .map(|column| names::shown(&catalog::name_of(&column.attname)))
        .collect();
    let more = if all.len() > MOST_LISTED { ", ..." } else { "" };
    UserError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        format!(
            "column \"{}\" of table \"{}\" does not exist",
            name.to_string_lossy(),
            table.shown()
        ),
    )
    .detail(format!("{argument} of neardup_dedup names this column."))
    .hint(format!(
        "Drop the trigger, and create it again with the correct names. The table's columns are \
         {}{more}.",
        all[..all.len().min(MOST_LISTED)].join(", ")
    ))
    .raise()
}

/// Raises an error unless the mark column has the type of the key.
fn check_types(table: Rel, mark: i16, key: i16) {
    let [mark, key] = [mark, key].map(|column| table.attribute(column).atttypid);
    if catalog::base_type(mark) != catalog::base_type(key) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            "the column for marks and the key have different types",
        )
        .detail(format!(
            "The column has type {}, but the key has type {}.",
            catalog::type_name(mark),
            catalog::type_name(key)
        ))
        .hint("Give both columns the same type.")
        .raise();
    }
}

/// Index in which a trigger can look up near rows. The index has exactly the scope columns of the
/// trigger.
struct Suitable<'a> {
    index: Rel<'a>,
    scope: Vec<EqualColumn>,
    metric: IndexMetric,
    limit: u32,
}

impl<'a> Suitable<'a> {
    /// Describes an index for a trigger's lookups of near rows. Returns `None` if the trigger
    /// cannot use the index.
    fn new(
        table: Rel,
        index: Rel<'a>,
        named: &NamedColumns,
        arguments: &Arguments,
    ) -> Option<Self> {
        let scope = columns_in_front(index, named.fingerprint, &named.scope)?;
        let layout = Layout::from_index(index);
        if !index.holds_all_with_null(table, named.mark)
            || layout.has_balls
            || !layout.metric.has_distances()
        {
            return None;
        }
        let metric = metric_of(index);
        let values = metric.with_hashes();
        let limit = (arguments.or_invalid(arguments.near.max_distance(values)))
            .unwrap_or_else(|| max_distance(Bound::from_index(index), values));
        (metric.finds_all_within(limit)).then_some(Suitable {
            index,
            scope,
            metric,
            limit,
        })
    }

    /// Orders two indexes by their suitability for the trigger's lookups, the more suitable index
    /// first. A partial index is more suitable than an index of all rows. If both or neither are
    /// partial, the lower search cost decides, and between equal costs the name. The order does not
    /// depend on OIDs, because REINDEX CONCURRENTLY changes them and keeps names.
    fn compare(&self, other: &Self) -> Ordering {
        let partial_first = |it: &Self| !it.index.is_partial();
        let cost = |it: &Self| search_cost(it.index, it.limit);
        let name = |it: &Self| catalog::relation_name(it.index.oid());
        (partial_first(self).cmp(&partial_first(other)))
            .then_with(|| cost(self).total_cmp(&cost(other)))
            .then_with(|| name(self).cmp(&name(other)))
    }
}

/// Finds the most suitable index for a trigger's lookups. Returns its OID, its scope columns, its
/// metric, and the maximum distance of near-duplicates. Returns `None` if the trigger can use no
/// index.
fn find_index(
    table: Rel,
    named: &NamedColumns,
    arguments: &Arguments,
) -> Option<(pg_sys::Oid, Vec<EqualColumn>, IndexMetric, u32)> {
    // Opens and locks all indexes, so that no session can drop one during the comparison.
    let indexes = table.indexes().into_iter();
    let opened: Vec<OpenRelation> = indexes
        .map(|oid| OpenRelation::index(oid, pg_sys::AccessShareLock))
        .collect();
    let suitable: Vec<Suitable> = (opened.iter())
        .filter_map(|index| Suitable::new(table, index.rel(), named, arguments))
        .collect();
    if arguments.near == BoundArgument::OfIndex && !suitable.is_empty() {
        let bounds = IndexBounds::new(suitable.iter().map(|one| one.index));
        arguments.require_bound_of_marks(&bounds);
        if !bounds.agree() {
            let hint = format!(
                "Specify the bound in the trigger's arguments, such as '{}'.",
                bounds.example("=")
            );
            bounds.refuse(&table.shown(), &hint);
        }
    }
    let best = suitable.into_iter().min_by(Suitable::compare)?;
    Some((best.index.oid(), best.scope, best.metric, best.limit))
}

/// Returns the largest bound, in bits or mismatches, of the table's indexes on the fingerprint and
/// scope columns in `columns`. A trigger that states no bound may use any of these indexes. Returns
/// `None` if there is no such index.
pub fn greatest_limit(table: Rel, columns: &Columns) -> Option<u32> {
    let scope: Vec<i16> = columns.scope.iter().map(|scope| scope.column).collect();
    let limit = |oid| {
        let index = OpenRelation::index(oid, pg_sys::AccessShareLock);
        let index = index.rel();
        columns_in_front(index, columns.fingerprint, &scope)?;
        let layout = Layout::from_index(index);
        let has_values = !layout.has_balls && layout.metric.has_distances();
        has_values.then(|| max_distance(Bound::from_index(index), columns.metric.with_hashes()))
    };
    table.indexes().into_iter().filter_map(limit).max()
}

/// Finds an index with exactly the columns `names`, in any order, before the fingerprint column.
/// `fingerprint` is the attribute number of that column. Returns the columns `names` in index
/// order, or `None` if a column or such an index is missing.
pub fn scope_columns(table: Rel, fingerprint: i16, names: &[CString]) -> Option<Vec<EqualColumn>> {
    let wanted: Vec<i16> = (names.iter())
        .map(|name| table.column_number(name))
        .collect::<Option<_>>()?;
    table.indexes().into_iter().find_map(|oid| {
        let index = OpenRelation::index(oid, pg_sys::AccessShareLock);
        columns_in_front(index.rel(), fingerprint, &wanted)
    })
}

/// Returns the columns before the fingerprint in an index, in index order. `fingerprint` and
/// `wanted` are attribute numbers. Returns `None` unless the index is a usable neardup index on the
/// column `fingerprint` with exactly the columns `wanted` before it.
fn columns_in_front(index: Rel, fingerprint: i16, wanted: &[i16]) -> Option<Vec<EqualColumn>> {
    let form = index.index_form();
    if !index.is_neardup_index() || !form.is_valid || !form.is_ready {
        return None;
    }
    let (last, front) = form.columns.split_last()?;
    let same_scope =
        front.len() == wanted.len() && wanted.iter().all(|column| front.contains(column));
    let scope = (0..front.len()).map(|i| EqualColumn::new(index, i, strategies::EQUAL));
    (*last == fingerprint && same_scope).then(|| scope.collect())
}

fn no_index(table: Rel, arguments: &Arguments, of_signatures: bool) -> ! {
    let mut columns: Vec<String> = (arguments.scope.iter())
        .map(|name| names::shown(name))
        .collect();
    columns.push(names::shown(&arguments.fingerprint));
    let (what, options) = match of_signatures {
        true => {
            let similarity = arguments.near.similarity();
            let wanted = format!("WITH (similarity = {similarity})");
            (
                format!(" for a similarity of {similarity}"),
                format!(
                    " {wanted}. Add hashes = ... to the options unless signatures have 128 hashes."
                ),
            )
        }
        false => (
            String::new(),
            "; add the operator class bigint_hamming_ops after a bigint column.".to_owned(),
        ),
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        format!(
            "table \"{}\" has no neardup index on {}{what}",
            table.shown(),
            columns.join(", ")
        ),
    )
    .detail("Without such an index, neardup_dedup would read the whole table for each row.")
    .hint(format!(
        "CREATE INDEX ON {} USING neardup ({}){options}",
        String::from_utf8_lossy(&table.qualified_name()),
        columns.join(", ")
    ))
    .raise()
}
