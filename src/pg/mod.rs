//! What stands between the extension's own code and the server's C interface.
pub mod acl;
pub mod aggregate;
pub mod compat;
pub mod errors;
pub mod fmgr;
pub mod guc_text;
pub mod memory;
pub mod order_by;
pub mod panics;
pub mod relation;
pub mod security_context;
pub mod srf;
pub mod text;
pub mod tsvector;
pub mod varlena;
