//! Common parts of the tests of the index: data, and the comparison with the sequential scan.
pub mod clients;
pub mod data;
pub mod fixtures;
pub mod memory;
pub mod oracle;
pub mod roles;
pub mod skip;
pub mod table;
pub mod texts;
pub mod timed_rows;
pub mod waiting;
pub mod workload;

/// Result of a test.
pub type Outcome = anyhow::Result<()>;

/// Runs a test with its own server. Panics instead of returning an error, because a server dropped
/// by a panic keeps its data and its log for inspection.
pub fn with<T>(mut server: T, test: impl FnOnce(&mut T) -> Outcome) -> Outcome {
    if let Err(error) = test(&mut server) {
        panic!("{error:?}");
    }
    Ok(())
}
