//! Publishes in shared memory (`neardup_pg::registry`) the rows that a trigger is about to write. A
//! published row is in flight. Other sessions find it there before it is in the index.
use core::ops::Deref;
use std::ffi::CString;
use std::rc::Rc;

use pgrx::pg_sys;

use super::columns::{Columns, greatest_limit, scope_columns};
use super::compared::ComparedValue;
use super::trigger_arguments::Arguments;
use crate::am::keys::{Layout, scope_value_hash};
use crate::am::metric::ValueMetric;
use neardup_pg::equality::EqualColumn;
use neardup_pg::new_row::NewRow;
use neardup_pg::registry::{self, Near, Row, TriggerRun};
use neardup_pg::rel::{OpenRelation, Rel, Trigger};
use neardup_pg::value::Value;

/// Rules by which one trigger publishes rows. Published rows have no times. So a row waits for each
/// row in flight that has a near fingerprint, even if their times are not near each other. After
/// the wait, the lookup reads the other row's time in the table.
pub struct FlightRules {
    /// OID of the table.
    table: pg_sys::Oid,
    /// OID of the trigger.
    trigger: pg_sys::Oid,
    /// Attribute number of the fingerprint column.
    column: i16,
    /// Maximum distance of near rows in flight, in bits or mismatches. It is the largest bound of
    /// the triggers of the table that compare the same rows. All of these triggers use it. With
    /// bounds of their own, two sessions could both pass the trigger with the smaller bound, and
    /// then wait for each other's rows in the trigger with the larger bound.
    radius: u32,
    /// Index that the server writes last among the indexes on the fingerprint column. A row stays
    /// published until it is in this index. Other sessions may look up rows in any of these
    /// indexes, because the index that this trigger uses may be replaced.
    last_index: pg_sys::Oid,
    /// Scopes besides this trigger's own in which it publishes inserted rows, each as a list of
    /// scope columns. They are the scopes of the table's triggers that do not fire for INSERT and
    /// thus do not publish inserted rows themselves. An UPDATE that fires such a trigger then waits
    /// for the inserted row.
    others_at_insert: Vec<Vec<EqualColumn>>,
    /// Scopes besides this trigger's own in which it publishes updated rows, each as a list of
    /// scope columns. They are the scopes of the table's triggers that do not fire for UPDATE and
    /// thus do not publish updated rows themselves. An INSERT that fires such a trigger then waits
    /// for the updated row.
    others_at_update: Vec<Vec<EqualColumn>>,
}

impl FlightRules {
    /// Prepares the publishing of rows for a trigger on `table`.
    pub fn new(table: Rel, trigger: &Trigger, arguments: &Arguments, columns: &Columns) -> Self {
        let others = |event| other_scopes(table, event, trigger, arguments, columns);
        FlightRules {
            table: table.oid(),
            trigger: trigger.oid,
            column: columns.fingerprint,
            radius: radius(table, trigger.function, arguments, columns),
            last_index: last_index(table, columns.fingerprint),
            others_at_insert: others(pg_sys::TRIGGER_TYPE_INSERT),
            others_at_update: others(pg_sys::TRIGGER_TYPE_UPDATE),
        }
    }

    /// Returns the attribute numbers of all columns that belong to a scope in which the trigger
    /// publishes rows: its own scope, or the scope of another trigger.
    pub fn scope_columns(&self, columns: &Columns) -> Vec<i16> {
        let others = self.others_at_insert.iter().chain(&self.others_at_update);
        let scopes = core::iter::once(&columns.scope).chain(others);
        scopes.flatten().map(|scope| scope.column).collect()
    }

    /// Returns the form in which a row is published: its fingerprint, and a hash for each scope in
    /// which it is published. `compared` has the row's fingerprint and scope. `is_update` is true
    /// for a new version that an UPDATE writes.
    pub fn row(
        &self,
        columns: &Columns,
        row: &NewRow,
        compared: &ComparedValue,
        is_update: bool,
    ) -> Row {
        let fingerprint = compared.fingerprint.get();
        let (kind, value) = (
            columns.metric.group(fingerprint),
            columns.metric.in_flight(fingerprint),
        );
        let others = match is_update {
            true => &self.others_at_update,
            false => &self.others_at_insert,
        };
        let other_groups = others.iter().filter_map(|columns| {
            let values: Option<Vec<Value>> = (columns.iter())
                .map(|column| row.get(column.column))
                .collect();
            // A row with NULL in a scope column is not compared in that scope, so it is not
            // published for it.
            Some(self.group(kind, columns, &values?))
        });
        Row {
            group: self.group(kind, &columns.scope, &compared.scope_values()),
            other_groups: other_groups.collect(),
            value,
            table: self.table,
            column: self.column,
        }
    }

    /// Hashes the values of scope columns, together with the table, the fingerprint column and the
    /// kind of fingerprint (`kind`). Rows with equal values have equal hashes.
    fn group(&self, kind: u64, columns: &[EqualColumn], values: &[Value]) -> u64 {
        // Sorted, because indexes may have the same columns in different orders.
        let mut scope: Vec<(i16, u64)> = (columns.iter().zip(values))
            .map(|(column, &value)| (column.column, scope_value_hash(column, value)))
            .collect();
        scope.sort_unstable();
        let parts = [
            u64::from(registry::database().to_u32()),
            u64::from(self.table.to_u32()),
            self.column as u64,
            kind,
        ];
        let scope = (scope.iter()).flat_map(|&(column, hash)| [column as u64, hash]);
        hash(parts.into_iter().chain(scope))
    }
}

/// Rows in flight (published rows) of one trigger in one statement.
pub struct Flight {
    run: TriggerRun,
    rules: Rc<FlightRules>,
}

impl Deref for Flight {
    type Target = FlightRules;

    fn deref(&self) -> &FlightRules {
        &self.rules
    }
}

impl Flight {
    /// Begins the publishing of rows in one statement. `statement` is a number that identifies the
    /// statement in this backend.
    pub fn new(rules: &Rc<FlightRules>, statement: usize) -> Self {
        Flight {
            run: TriggerRun {
                statement,
                table: rules.table,
                trigger: rules.trigger,
            },
            rules: Rc::clone(rules),
        }
    }

    /// Withdraws what was published for the previous row of the statement. The trigger calls this
    /// function when it begins with the next row.
    pub fn withdraw_previous(&self) {
        registry::withdraw_previous(self.run);
    }

    /// Publishes a row. If another backend has published a near row, returns that row as the error
    /// and publishes nothing.
    pub fn publish(&self, row: &Row) -> Result<(), Near> {
        registry::publish(self.run, row, self.radius, self.last_index)
    }

    /// Withdraws the rows that this trigger has published in this statement.
    pub fn withdraw(&self) {
        registry::withdraw(self.run);
    }
}

impl Drop for Flight {
    /// Withdraws the rows of the trigger at the end of its statement.
    fn drop(&mut self) {
        self.withdraw();
        registry::end_statement(self.run.statement);
    }
}

/// Returns the names of a trigger's scope columns in a fixed order, so that scopes can be compared.
fn sorted_scope(arguments: &Arguments) -> Vec<CString> {
    let mut scope = arguments.scope.clone();
    scope.sort();
    scope
}

/// Finds the further triggers of the table that do not fire for `event` (INSERT or UPDATE), and
/// that have the same function and fingerprint column as this trigger. Returns the scope columns of
/// each of them, without repetitions. This trigger publishes rows in their scopes too.
///
/// Triggers that fire for `event` are skipped, because they publish the row themselves. This
/// trigger would publish the row in their scopes too early, before they run. Two sessions could
/// then wait for each other's rows, one in each trigger.
fn other_scopes(
    table: Rel,
    event: u32,
    trigger: &Trigger,
    arguments: &Arguments,
    columns: &Columns,
) -> Vec<Vec<EqualColumn>> {
    let mut known = vec![sorted_scope(arguments)];
    let mut others = Vec::new();
    let (at_event, elsewhere): (Vec<_>, Vec<_>) = (table.triggers().into_iter())
        .filter(|other| other.function == trigger.function)
        .filter_map(|other| Some((other.fires_for(event), Arguments::read(&other).ok()?)))
        .filter(|(_, other)| other.fingerprint == arguments.fingerprint)
        .partition(|(fires, _)| *fires);
    known.extend(at_event.iter().map(|(_, other)| sorted_scope(other)));
    for (_, other) in elsewhere {
        let scope = sorted_scope(&other);
        // Skips a trigger without an index, because it raises an error when it is called.
        if !known.contains(&scope)
            && let Some(found) = scope_columns(table, columns.fingerprint, &scope)
        {
            others.push(found);
        }
        known.push(scope);
    }
    others
}

/// Returns the largest radius, in bits or mismatches, of the table's triggers with the function
/// `function` that compare the same rows as this trigger. `arguments` and `columns` belong to this
/// trigger.
fn radius(table: Rel, function: pg_sys::Oid, arguments: &Arguments, columns: &Columns) -> u32 {
    let wanted = sorted_scope(arguments);
    let metric = columns.metric.with_hashes();
    (table.triggers().iter())
        .filter(|other| other.function == function)
        // Skips a trigger with invalid arguments, because it raises an error when it is called.
        .filter_map(|other| Arguments::read(other).ok())
        .filter(|other| other.fingerprint == arguments.fingerprint && sorted_scope(other) == wanted)
        .filter_map(|other| match other.near.max_distance(metric) {
            Ok(None) => greatest_limit(table, columns),
            limit => limit.ok().flatten(),
        })
        .fold(columns.limit, u32::max)
}

/// Returns the neardup index on the fingerprint column `column` that the server writes last. The
/// server writes indexes in the order of their list in the table. Skips indexes that the server
/// does not write yet, because CREATE INDEX CONCURRENTLY has not made them ready. Other sessions do
/// not look up rows in an index before every transaction that writes sees it as ready.
fn last_index(table: Rel, column: i16) -> pg_sys::Oid {
    let mut last = pg_sys::InvalidOid;
    for oid in table.indexes() {
        let index = OpenRelation::index(oid, pg_sys::AccessShareLock);
        let form = index.rel().index_form();
        if form.is_ready
            && form.columns.last() == Some(&column)
            && index.rel().is_neardup_index()
            && !Layout::from_index(index.rel()).has_balls
            && Layout::from_index(index.rel()).metric.has_distances()
        {
            last = oid;
        }
    }
    last
}

/// Hashes words by FNV-1a with a final step that mixes all bits. A collision only causes
/// unnecessary waiting.
fn hash(parts: impl Iterator<Item = u64>) -> u64 {
    let hash = parts.fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
        (hash ^ part).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
    });
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
