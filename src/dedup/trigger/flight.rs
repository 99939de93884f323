//! Publishing the rows that a trigger compares (`neardup_pg::registry`).
use std::ffi::CString;

use pgrx::pg_sys;

use super::columns::{Columns, greatest_limit, scope_columns};
use super::compared::Compared;
use super::trigger_arguments::Arguments;
use crate::am::keys::{Layout, scope_value_hash};
use crate::am::metric::ValueMetric;
use neardup_pg::equality::EqualColumn;
use neardup_pg::new_row::NewRow;
use neardup_pg::registry::{self, Near, Owner, Row};
use neardup_pg::rel::{OpenRelation, Rel, Trigger};
use neardup_pg::value::Value;

/// The rows of one trigger in one statement.
pub struct Flight {
    owner: Owner,
    column: i16,
    /// The greatest distance of near rows, in bits or mismatches. All triggers of the table that
    /// compare the same rows have the same: if one of them let a row pass that another one of them
    /// waits for, two rows could wait for each other between the two triggers.
    radius: u32,
    /// The index that the server writes last of those on the column. Others may look rows up in any
    /// of them: the one that this trigger uses may be replaced meanwhile.
    last_index: pg_sys::Oid,
    /// Scopes of triggers that do not fire for INSERT, and of those that do not for UPDATE.
    others_at_insert: Vec<Vec<EqualColumn>>,
    others_at_update: Vec<Vec<EqualColumn>>,
}

impl Flight {
    /// The rows of a trigger of this table, with its arguments and columns, in a statement.
    pub fn new(
        table: Rel,
        statement: usize,
        trigger: &Trigger,
        arguments: &Arguments,
        columns: &Columns,
    ) -> Self {
        let others = |event| other_scopes(table, event, trigger, arguments, columns);
        Flight {
            owner: Owner {
                statement,
                table: table.oid(),
                trigger: trigger.oid,
            },
            column: columns.fingerprint,
            radius: radius(table, trigger.function, arguments, columns),
            last_index: last_index(table, columns.fingerprint),
            others_at_insert: others(pg_sys::TRIGGER_TYPE_INSERT),
            others_at_update: others(pg_sys::TRIGGER_TYPE_UPDATE),
        }
    }

    /// Withdraws what was published for the statement's last row.
    pub fn withdraw_previous(&self) {
        registry::withdraw_previous(self.owner);
    }

    /// Publishes the row that is compared, or returns a near one of another backend.
    pub fn publish(&self, row: &Row) -> Result<(), Near> {
        registry::publish(self.owner, row, self.radius, self.last_index)
    }

    /// Withdraws what was published for the row at hand.
    pub fn withdraw(&self) {
        registry::withdraw(self.owner);
    }

    /// Returns the values of a new row, or of a new version, with which others compare their rows.
    pub fn row(
        &self,
        columns: &Columns,
        row: &NewRow,
        compared: &Compared,
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
            // Without a value in one of them it is compared with none.
            Some(self.group(kind, columns, &values?))
        });
        Row {
            group: self.group(kind, &columns.scope, &compared.scope_values()),
            other_groups: other_groups.collect(),
            value,
            table: self.owner.table,
            column: self.column,
        }
    }
}

impl Flight {
    /// The columns of the trigger's scope, and of those of others for which rows are published.
    pub fn scope_columns(&self, columns: &Columns) -> Vec<i16> {
        let others = self.others_at_insert.iter().chain(&self.others_at_update);
        let scopes = core::iter::once(&columns.scope).chain(others);
        scopes.flatten().map(|scope| scope.column).collect()
    }

    /// The group of rows with these values in the columns of a scope.
    fn group(&self, kind: u64, columns: &[EqualColumn], values: &[Value]) -> u64 {
        // In one order, whichever index's columns these are.
        let mut scope: Vec<(i16, u64)> = (columns.iter().zip(values))
            .map(|(column, &value)| (column.column, scope_value_hash(column, value)))
            .collect();
        scope.sort_unstable();
        let parts = [
            u64::from(registry::database().to_u32()),
            u64::from(self.owner.table.to_u32()),
            self.column as u64,
            kind,
        ];
        let scope = (scope.iter()).flat_map(|&(column, hash)| [column as u64, hash]);
        hash(parts.into_iter().chain(scope))
    }
}

impl Drop for Flight {
    /// At the end of a statement.
    fn drop(&mut self) {
        self.withdraw();
        registry::end_statement(self.owner.statement);
    }
}

/// The columns of a trigger's scope, in one order.
fn sorted_scope(arguments: &Arguments) -> Vec<CString> {
    let mut scope = arguments.scope.clone();
    scope.sort();
    scope
}

/// The scopes of the table's triggers with this trigger's function and column that do not fire for
/// an event. One that does publishes the row itself: were it published for that trigger before, two
/// rows could wait for each other between the two triggers.
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
        // Without an index that trigger raises an error when it is called.
        if !known.contains(&scope)
            && let Some(found) = scope_columns(table, columns.fingerprint, &scope)
        {
            others.push(found);
        }
        known.push(scope);
    }
    others
}

/// The greatest radius of the table's triggers with this function that compare the same rows.
fn radius(table: Rel, function: pg_sys::Oid, arguments: &Arguments, columns: &Columns) -> u32 {
    let wanted = sorted_scope(arguments);
    let metric = columns.metric.with_hashes();
    (table.triggers().iter())
        .filter(|other| other.function == function)
        // What makes no sense is an error when that trigger is called.
        .filter_map(|other| Arguments::read(other).ok())
        .filter(|other| other.fingerprint == arguments.fingerprint && sorted_scope(other) == wanted)
        .filter_map(|other| match other.near.limit(metric) {
            Ok(None) => greatest_limit(table, columns),
            limit => limit.ok().flatten(),
        })
        .fold(columns.limit, u32::max)
}

/// The index of the access method that the server writes last of those that have a column as their
/// fingerprint: it writes them in the order of this list. One in which others may look rows up is
/// ready in every transaction that writes.
fn last_index(table: Rel, column: i16) -> pg_sys::Oid {
    let mut last = pg_sys::InvalidOid;
    for oid in table.indexes() {
        let index = OpenRelation::index(oid, pg_sys::AccessShareLock);
        let form = index.rel().index_form();
        if form.is_ready
            && form.columns.last() == Some(&column)
            && index.rel().is_neardup_index()
            && !Layout::of(index.rel()).has_balls
            && Layout::of(index.rel()).metric.has_distances()
        {
            last = oid;
        }
    }
    last
}

/// FNV-1a, and a last step that spreads it over all bits. A collision costs some waiting.
fn hash(parts: impl Iterator<Item = u64>) -> u64 {
    let hash = parts.fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
        (hash ^ part).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
    });
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
