//! The integration tests. `cargo xtask test` runs them; a filter selects by module and function.
mod answers;
mod builds;
mod changes;
mod concurrency;
mod crash;
mod damage;
mod dedup;
mod documents;
mod exclusion;
mod nearest;
mod options;
mod queries;
mod relations;
mod scopes;
mod servers;
mod standby;
mod support;
