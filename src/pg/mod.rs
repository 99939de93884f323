//! What stands between the extension's own code and the server's C interface.
pub mod call;
pub mod compat;
pub mod errors;
pub mod relation;
pub mod rows;
pub mod text;
pub mod varlena;
