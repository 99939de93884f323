//! Searches of an index during planning, for values that many rows of a join have.
//!
//! Statistics do not show whether a value that is common on one side of a semi-join has a match on
//! the other side, which decides about all its rows. One search does. The access method, which
//! this folder does not import, makes the search.
use core::cell::Cell;

use pgrx::pg_sys::Oid;

use neardup_pg::value::Value;

/// Returns whether an index has a row within a radius of a value; `None` if a search costs too
/// much, or the index cannot tell.
pub type Probe = fn(Oid, Value, f64) -> Option<bool>;

thread_local! {
    static PROBE: Cell<Option<Probe>> = const { Cell::new(None) };
}

/// Installs the search. Called once, when the library is loaded.
pub fn install(probe: Probe) {
    PROBE.set(Some(probe));
}

/// Returns whether an index, which the planner has locked, has a row within a radius of a value.
/// Dead rows count until VACUUM removes them.
pub fn finds(index: Oid, center: Value, radius: f64) -> Option<bool> {
    PROBE.get()?(index, center, radius)
}
