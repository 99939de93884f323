//! The statements of `neardup_setup`: on a table in use, and on names of every kind.
mod in_use;
mod names;
mod options;
mod refused;

/// The SQLSTATE of an error.
fn code(error: &postgres::Error) -> &str {
    error.code().map_or("no SQLSTATE", |code| code.code())
}
