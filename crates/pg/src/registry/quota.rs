//! Limit on the number of slots that one backend uses for its rows in flight, in the table of all
//! rows in flight in shared memory.
//!
//! A backend counts its own slots, and the table in shared memory has room for all backends at
//! their limits. So a session reaches its limit only by its own rows.
use core::cmp::Reverse;
use std::collections::HashMap;

use pgrx::{PgSqlErrorCode, pg_sys};

use super::table::SLOTS_PER_BACKEND;
use super::{OWN, TriggerRun};
use crate::catalog;
use crate::errors::UserError;

/// Maximum number of tables that the error lists by name. The error states how many others there
/// are.
const MAX_LISTED_TABLES: usize = 5;

/// Raises error 54000 if this backend would exceed [`SLOTS_PER_BACKEND`] by using `needed` more
/// slots. The trigger `run` calls it before it publishes a row that needs these slots.
pub fn check(run: TriggerRun, needed: usize) {
    let used = OWN.with_borrow(|rows| rows.iter().map(|own| own.slots.len()).sum::<usize>());
    if used + needed > SLOTS_PER_BACKEND {
        refuse(run, needed);
    }
}

/// Slots and rows in flight of this backend for one table.
#[derive(Default)]
struct Usage {
    /// Number of slots that this backend's rows of the table use.
    slots: usize,
    /// Number of this backend's rows in flight in the table.
    rows: usize,
    /// Number of the statement whose row was counted last; 0 before the first row. A statement has
    /// at most one row in flight in a table. If several triggers have published this row, it is
    /// counted once.
    last_statement: usize,
}

fn refuse(run: TriggerRun, needed: usize) -> ! {
    let needed = match needed {
        1 => "1 slot".to_owned(),
        _ => format!("{needed} slots"),
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "too many rows of this session have not been indexed yet",
    )
    .detail(format!(
        "neardup_dedup stores each new row in slots of shared memory until the row is in the \
         index. A session has {SLOTS_PER_BACKEND} slots. These tables use slots: {}. The next row \
         of table {} needs {needed}.",
        in_use(),
        catalog::relation_name(run.table),
    ))
    .hint(
        "A row keeps its slots while later BEFORE triggers write other rows. Nest such triggers \
         less deeply, or make them AFTER triggers. Each trigger that compares a row needs one slot \
         for a fingerprint, or four slots for a signature of 128 hashes.",
    )
    .raise()
}

/// Text for the detail of the error: the tables that have rows of this backend in flight, each with
/// its number of slots and rows. Names at most [`MAX_LISTED_TABLES`] tables, those with the most
/// slots.
fn in_use() -> String {
    let mut tables: HashMap<pg_sys::Oid, Usage> = HashMap::new();
    OWN.with_borrow(|rows| {
        for own in rows {
            let usage = tables.entry(own.run.table).or_default();
            usage.slots += own.slots.len();
            // A statement has at most one row in flight in a table. Several triggers may publish
            // the same row.
            usage.rows += usize::from(usage.last_statement != own.run.statement);
            usage.last_statement = own.run.statement;
        }
    });
    let mut tables: Vec<_> = tables.into_iter().collect();
    tables.sort_by_key(|(table, usage)| (Reverse(usage.slots), table.to_u32()));
    let mut listed: Vec<String> = (tables.iter().take(MAX_LISTED_TABLES))
        .map(|(table, Usage { slots, rows, .. })| {
            let name = catalog::relation_name(*table);
            format!("{name} ({slots} slots for {rows} rows)")
        })
        .collect();
    if tables.len() > MAX_LISTED_TABLES {
        listed.push(format!("and {} more", tables.len() - MAX_LISTED_TABLES));
    }
    match listed.is_empty() {
        true => "none".to_owned(),
        false => listed.join(", "),
    }
}
