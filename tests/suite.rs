//! The integration tests. `cargo xtask test` runs them; a filter selects by folder, module and
//! function.
mod clients;
mod dedup;
mod distributed;
mod maintenance;
mod pairs;
mod search;
mod server;
mod support;
