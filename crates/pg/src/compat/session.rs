//! State of the backend's transaction.
use pgrx::pg_sys;

/// The local transaction id (`lxid`) of this backend's current transaction.
pub fn local_transaction() -> u32 {
    // SAFETY: a backend has its entry from its start to its end, and changes this part alone.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return (*pg_sys::MyProc).lxid;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return (*pg_sys::MyProc).vxid.lxid;
    }
}
