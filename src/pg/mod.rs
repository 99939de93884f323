//! What stands between the extension's own code and the server's C interface.
pub mod aggregate;
pub mod call;
pub mod compat;
pub mod errors;
pub mod memory;
pub mod order;
pub mod owner;
pub mod panics;
pub mod relation;
pub mod rights;
pub mod set;
pub mod setting;
pub mod text;
pub mod tsvector;
pub mod varlena;
