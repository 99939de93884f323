//! neardup: near-duplicate documents in PostgreSQL, found by ordinary SQL.
//!
//! docs/dev/architecture.md is the map of the code.
#![deny(unsafe_code)]

use pgrx::prelude::*;

mod am;
mod dedup;
mod functions;
mod planner;
mod settings;
mod types;

::pgrx::pg_module_magic!();

/// Called by the server when it loads the library into a backend.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    neardup_pg::panics::keep_backtraces_for_bugs();
    neardup_pg::memory::register();
    am::options::register();
    am::altered_options::register();
    am::probe::register();
    functions::dictionary::register();
    planner::conditions::install();
    settings::register();
    // Last: a setting of this name that is not known by now is a mistake.
    neardup_pg::server::MarkGUCPrefixReserved(c"neardup");
}
