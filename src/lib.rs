//! neardup finds near-duplicate documents in PostgreSQL by ordinary SQL.
//!
//! docs/dev/architecture.md describes the code.
#![deny(unsafe_code)]

use pgrx::prelude::*;

mod am;
mod dedup;
mod functions;
mod planner;
mod settings;
mod types;

::pgrx::pg_module_magic!();

/// Initializes the extension. The server calls this when it loads the library into a backend.
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
    // Must be last: the server rejects each setting `neardup.*` that is not defined by now.
    neardup_pg::server::MarkGUCPrefixReserved(c"neardup");
}
