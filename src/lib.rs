//! neardup: near-duplicate documents in PostgreSQL, found by ordinary SQL.
//!
//! docs/dev/architecture.md is the map of the code.
use pgrx::prelude::*;

mod am;
mod dedup;
mod functions;
mod pg;
mod planner;
mod registry;
mod settings;
mod storage;
mod types;

::pgrx::pg_module_magic!();

/// Called by the server when it loads the library into a backend.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::panics::keep_backtraces_for_bugs();
    pg::memory::register();
    am::options::register();
    functions::dictionary::register();
    planner::conditions::install();
    settings::register();
    // Last: a setting of this name that is not known by now is a mistake.
    pg::server::MarkGUCPrefixReserved(c"neardup");
}
