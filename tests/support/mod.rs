//! What the tests of the index share: data, and the comparison with the sequential scan.
pub mod clients;
pub mod data;
pub mod oracle;
pub mod table;

/// What a test returns.
pub type Outcome = anyhow::Result<()>;
