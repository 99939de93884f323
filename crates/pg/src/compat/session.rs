//! Version differences in the state of the backend's transaction.
use pgrx::pg_sys;

/// The local id (`lxid`) of this backend's current transaction. It differs from the ids of the
/// backend's other transactions, even if the transaction writes nothing.
pub fn local_transaction() -> u32 {
    // SAFETY: a backend's `MyProc` is valid while the backend lives. Only the backend itself
    // changes this field.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return (*pg_sys::MyProc).lxid;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return (*pg_sys::MyProc).vxid.lxid;
    }
}
