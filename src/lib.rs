//! neardup: near-duplicate documents in PostgreSQL, found by ordinary SQL.
use pgrx::prelude::*;

mod am;
mod dedup;
mod functions;
mod pg;
mod planner;
mod settings;
mod storage;
mod types;

::pgrx::pg_module_magic!();

/// Called by the server when it loads the library into a backend.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    am::options::register();
    functions::dictionary::register();
    planner::conditions::install();
    settings::register();
}
