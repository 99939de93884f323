//! The log table of `action=log`: a record of the rows that the trigger skips.
use std::ffi::CString;

use pgrx::pg_sys;

use super::columns::{self, Columns};
use super::lookup::NearRow;
use super::own_row::{AllPlanned, Generated};
use super::trigger_arguments;
use crate::am::metric::ValueMetric;
use neardup_pg::catalog::{self, base_type};
use neardup_pg::errors::UserError;
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::{OpenRelation, Rel};
use neardup_pg::spi;

/// Name of the optional column of a log table for the skipped row's fingerprint or signature.
const FINGERPRINT: &core::ffi::CStr = c"fingerprint";

/// Statement that writes a skipped row to the log table, and the generated columns that the log
/// needs.
pub struct LogTable {
    insert: CString,
    /// True if the log table has a column for the row's fingerprint or signature.
    takes_fingerprint: bool,
    generated: Generated,
}

impl LogTable {
    /// Finds the log table that a trigger on `table` names, and prepares the INSERT into it.
    /// `columns` are the columns of `table` that the trigger uses. `planned` has the plans of its
    /// generated columns.
    pub fn new(
        log: &trigger_arguments::Log,
        table: Rel,
        columns: &Columns,
        planned: &AllPlanned,
    ) -> Self {
        for name in &log.omit {
            columns::column(table, name, "The option \"omit\"");
        }
        let (oid, name) = catalog::find_table(&log.table, table.schema());
        let opened = OpenRelation::any(oid, pg_sys::AccessShareLock);
        let fingerprint = base_type(table.attribute(columns.fingerprint).atttypid);
        let takes_fingerprint = (opened.rel().attributes()).any(|column| {
            catalog::name_of(&column.attname).as_c_str() == FINGERPRINT
                && base_type(column.atttypid) == fingerprint
        });
        let mut insert = [
            b"INSERT INTO ",
            name.as_slice(),
            b" (kept, distance, dropped",
        ]
        .concat();
        if takes_fingerprint {
            insert.extend(b", fingerprint");
        }
        insert.extend(b") VALUES ($1, $2, pg_catalog.to_jsonb($3)");
        if !log.omit.is_empty() {
            let names: Vec<Vec<u8>> = (log.omit.iter())
                .map(|name| catalog::literal(name))
                .collect();
            insert.extend(b" OPERATOR(pg_catalog.-) ARRAY[");
            insert.extend(names.join(b", ".as_slice()));
            insert.extend(b"]::pg_catalog.text[]");
        }
        if takes_fingerprint {
            insert.extend(b", $4");
        }
        insert.push(b')');
        if keeps_each_once(opened.rel()) {
            insert.extend(b" ON CONFLICT DO NOTHING");
        }
        LogTable {
            insert: CString::new(insert).expect("made of C strings"),
            takes_fingerprint,
            generated: Generated::new(planned),
        }
    }

    /// Writes the skipped row `row`, a near-duplicate of `found`, to the log table, with the rights
    /// of the user who runs the statement.
    pub fn write(&self, table: Rel, columns: &Columns, found: &NearRow, row: &NewRow) {
        let Some(existing) = &found.key else {
            UserError::null_not_allowed("cannot log a near-duplicate of a row that has no key")
                .hint("Specify a column that is never NULL, such as 'key=id'.")
                .raise();
        };
        let complete = self.generated.get(table).complete(table, row);
        let row = complete.as_ref().unwrap_or(row);
        let distance = columns.metric.shown(found.distance);
        let mut values = vec![existing.get(), distance, row.as_record()];
        if self.takes_fingerprint {
            let fingerprint = row.get(columns.fingerprint);
            let fingerprint = fingerprint.expect("what has no fingerprint is near nothing");
            values.push(fingerprint.relabelled(base_type(fingerprint.type_oid())));
        }
        spi::insert(&self.insert, &values);
    }
}

/// Returns whether ON CONFLICT DO NOTHING can keep the trigger from recording a row twice in a log
/// table. This requires a unique index that the server checks at once. ON CONFLICT does not support
/// deferrable constraints or rules.
fn keeps_each_once(log: Rel) -> bool {
    let indexes = log.indexes().into_iter();
    let opened: Vec<OpenRelation> = indexes
        .map(|oid| OpenRelation::index(oid, pg_sys::AccessShareLock))
        .collect();
    let forms = || opened.iter().map(|index| index.rel().index_form());
    !log.has_rules()
        && forms().any(|form| form.is_unique_at_once)
        && !forms().any(|form| form.is_deferrable)
}
