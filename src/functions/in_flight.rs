//! `neardup_rows_in_flight`: the rows that triggers are writing.
use pgrx::pg_sys;

use crate::pg::fmgr::{Call, export};
use crate::registry;

export! {
    guarded "neardup_rows_in_flight" => rows_in_flight;
}

/// `neardup_rows_in_flight()`: the backend, table and column of each row in flight in this
/// database.
fn rows_in_flight(call: &mut Call) -> pg_sys::Datum {
    call.return_collected(|_, add| {
        for row in registry::list() {
            // SAFETY: a catalogue look-up; null for a column that is no longer there. The name is
            // in memory of a whole `NameData`, as its type wants it.
            let name = unsafe {
                let name = pg_sys::get_attname(row.table, row.column, true);
                (!name.is_null()).then(|| {
                    let place = pg_sys::palloc0(size_of::<pg_sys::NameData>());
                    pg_sys::namestrcpy(place.cast(), name);
                    pg_sys::Datum::from(place)
                })
            };
            add(&[
                Some(pg_sys::Datum::from(row.process)),
                Some(pg_sys::Datum::from(row.table)),
                name,
            ]);
        }
    })
}
