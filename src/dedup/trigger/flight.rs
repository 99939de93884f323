//! Publishing the rows that a trigger looks at (`crate::registry`).
use std::ffi::CStr;

use pgrx::pg_sys;

use super::arguments::Arguments;
use super::columns::Columns;
use crate::am::keys::Layout;
use crate::registry::{self, Near, Owner, Row};

/// The rows of one trigger in one statement.
pub struct Flight {
    owner: Owner,
    column: i16,
    /// The greatest distance of near rows, in bits or mismatches. All triggers of the table that
    /// compare the same rows have the same: if one of them let a row pass that another one of them
    /// waits for, two rows could wait for each other between the two triggers.
    radius: u32,
    /// The index that the server writes last of those on the column. Others may look through any of
    /// them: the one that this trigger looks through may be replaced meanwhile.
    last_index: pg_sys::Oid,
}

impl Flight {
    /// # Safety
    /// The relation is open, the columns are its own, and the trigger is one of its triggers.
    pub unsafe fn new(
        relation: pg_sys::Relation,
        statement: pg_sys::MemoryContext,
        trigger: &pg_sys::Trigger,
        arguments: &Arguments,
        columns: &Columns,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Flight {
                owner: Owner {
                    statement,
                    table: (*relation).rd_id,
                    trigger: trigger.tgoid,
                },
                column: columns.fingerprint,
                radius: radius(relation, trigger.tgfoid, arguments, columns),
                last_index: last_index(relation, columns.fingerprint),
            }
        }
    }

    /// Withdraws what was published for the statement's last row.
    pub fn withdraw_previous(&self) {
        registry::withdraw_previous(self.owner);
    }

    /// Publishes the row that is looked at, or returns a near one of another backend.
    pub fn publish(&self, row: &Row) -> Result<(), Near> {
        registry::publish(self.owner, row, self.radius, self.last_index)
    }

    /// Withdraws what was published for the row at hand.
    pub fn withdraw(&self) {
        registry::withdraw(self.owner);
    }

    /// The row that is looked at, as others compare theirs with it.
    ///
    /// # Safety
    /// The values are of the columns' types.
    pub unsafe fn row(
        &self,
        columns: &Columns,
        fingerprint: pg_sys::Datum,
        scope: &[pg_sys::Datum],
    ) -> Row {
        // SAFETY: the caller's promise; the database is set when the backend connects to it.
        unsafe {
            let (kind, value) = columns.metric.in_flight(fingerprint);
            // In one order, whichever index's columns these are.
            let mut scope: Vec<(i16, u64)> = (columns.scope.iter().zip(scope))
                .map(|(column, &value)| (column.column, column.hash(value)))
                .collect();
            scope.sort_unstable();
            let parts = [
                u64::from(pg_sys::MyDatabaseId.to_u32()),
                u64::from(self.owner.table.to_u32()),
                self.column as u64,
                kind,
            ];
            let scope = scope
                .iter()
                .flat_map(|&(column, hash)| [column as u64, hash]);
            Row {
                group: hash(parts.into_iter().chain(scope)),
                value,
                table: self.owner.table,
                column: self.column,
            }
        }
    }
}

impl Drop for Flight {
    /// At the end of a statement.
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// The greatest radius of the table's triggers with this function that compare the same rows.
unsafe fn radius(
    relation: pg_sys::Relation,
    function: pg_sys::Oid,
    arguments: &Arguments,
    columns: &Columns,
) -> u32 {
    let scope = |arguments: &Arguments| {
        let mut scope = arguments.scope.clone();
        scope.sort();
        scope
    };
    // SAFETY: the relation is open; its triggers are as many as are counted.
    unsafe {
        let Some(all) = (*relation).trigdesc.as_ref() else {
            return columns.metric.limit();
        };
        let triggers = core::slice::from_raw_parts(all.triggers, all.numtriggers as usize);
        (triggers.iter())
            .filter(|other| other.tgfoid == function)
            // What makes no sense is an error when that trigger is called.
            .filter_map(|other| Arguments::read(other).ok())
            .filter(|other| {
                other.fingerprint == arguments.fingerprint && scope(other) == scope(arguments)
            })
            .filter_map(|other| columns.metric.radius(&other.near))
            .fold(columns.metric.limit(), u32::max)
    }
}

/// The index of the access method that the server writes last of those that have a column as their
/// fingerprint: it goes through them in the order of this list. One on which others
/// may look is ready in every transaction that writes.
unsafe fn last_index(relation: pg_sys::Relation, column: i16) -> pg_sys::Oid {
    // SAFETY: the relation is open, and each of its indexes while it is looked at.
    unsafe {
        let indexes = pg_sys::RelationGetIndexList(relation);
        let mut last = pg_sys::InvalidOid;
        for i in 0..pg_sys::list_length(indexes) {
            let oid = pg_sys::list_nth_oid(indexes, i);
            let index = pg_sys::index_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            let form = &*(*index).rd_index;
            let name = pg_sys::get_am_name((*(*index).rd_rel).relam);
            let fingerprint = *form.indkey.values.as_ptr().add(form.indnatts as usize - 1);
            if form.indisready
                && fingerprint == column
                && !name.is_null()
                && CStr::from_ptr(name) == c"neardup"
                && !Layout::of(index).balls
            {
                last = oid;
            }
            pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
        pg_sys::list_free(indexes);
        last
    }
}

/// FNV-1a, and a last step that spreads it over all bits. A collision costs some waiting.
fn hash(parts: impl Iterator<Item = u64>) -> u64 {
    let hash = parts.fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
        (hash ^ part).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
    });
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
