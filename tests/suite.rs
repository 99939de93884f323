//! The integration tests. `cargo xtask test` runs them; a filter selects by module and function.
mod answers;
mod changes;
mod queries;
mod servers;
mod support;
