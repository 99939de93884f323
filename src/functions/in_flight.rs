//! `neardup_expert_rows_in_flight`: rows that triggers have published and that are not in the index
//! yet.
use pgrx::pg_sys::Datum;

use neardup_pg::backend::column_name;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::registry;

export! {
    guarded "neardup_expert_rows_in_flight" => rows_in_flight;
}

/// `neardup_expert_rows_in_flight()`: process, table and column of each row in flight in this
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
