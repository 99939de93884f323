//! Index searches during the planning of a semi-join. They find out whether a value has a match, if
//! many of the outer rows have this value.
//!
//! All rows with a common value either have a match on the other side of a semi-join, or have none.
//! Statistics do not show whether they have a match, but one index search does. The access method
//! installs its search function here, because this folder must not import the access method.
use core::cell::Cell;

use pgrx::pg_sys::Oid;

use neardup_pg::value::Value;

/// Function that searches an index for a row within a radius of a value. The parameters are the OID
/// of the index, the value, and the radius: in bits, or as a share of positions for signatures.
/// Returns whether there is such a row; `None` if the search would cost too much, or the index
/// cannot find all such rows.
pub type Probe = fn(Oid, Value, f64) -> Option<bool>;

thread_local! {
    static PROBE: Cell<Option<Probe>> = const { Cell::new(None) };
}

/// Installs the search function of the access method. Called once, when the library is loaded.
pub fn install(probe: Probe) {
    PROBE.set(Some(probe));
}

/// Returns whether an index has a row within a radius of `center`. The planner must have locked the
/// index. Dead rows count until VACUUM removes them. Returns `None` if no search is possible, see
/// [`Probe`].
pub fn finds(index: Oid, center: Value, radius: f64) -> Option<bool> {
    PROBE.get()?(index, center, radius)
}
