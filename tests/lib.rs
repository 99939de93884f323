//! Helpers of the integration tests: a connection to the server that `cargo xtask test` started.
