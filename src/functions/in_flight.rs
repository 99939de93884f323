//! `neardup_rows_in_flight`: the rows that triggers are writing.
use pgrx::pg_sys::Datum;

use crate::pg::backend::column_name;
use crate::pg::fmgr::{Call, export};
use crate::registry;

export! {
    guarded "neardup_rows_in_flight" => rows_in_flight;
}

/// `neardup_rows_in_flight()`: the backend, table and column of each row in flight in this
/// database.
fn rows_in_flight(call: &mut Call) -> Datum {
    call.return_collected(|_, add| {
        for row in registry::list() {
            add(&[
                Some(Datum::from(row.process)),
                Some(Datum::from(row.table)),
                column_name(row.table, row.column),
            ]);
        }
    })
}
