//! Snapshots.
use pgrx::pg_sys;

use super::compat::OldSnapshotCheck;

/// Snapshot that is registered until this is dropped or an error ends the transaction.
pub struct RegisteredSnapshot {
    raw: pg_sys::Snapshot,
    xmin: pg_sys::TransactionId,
}

impl RegisteredSnapshot {
    /// The transaction's snapshot. This is a new snapshot unless the transaction uses one snapshot
    /// for all of its statements.
    pub fn from_transaction() -> Self {
        // SAFETY: within a transaction.
        unsafe {
            let raw = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
            let xmin = (*raw).xmin;
            RegisteredSnapshot { raw, xmin }
        }
    }

    /// A new snapshot at every isolation level. It sees the changes of this transaction.
    pub fn latest() -> Self {
        // SAFETY: within a transaction.
        unsafe {
            pg_sys::CommandCounterIncrement();
            let raw = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
            let xmin = (*raw).xmin;
            RegisteredSnapshot { raw, xmin }
        }
    }

    /// The server's pointer.
    pub fn raw(&self) -> pg_sys::Snapshot {
        self.raw
    }

    /// Page check for a reader that must find all rows that the snapshot sees.
    pub fn old_snapshot_check(&self) -> OldSnapshotCheck {
        // SAFETY: the snapshot is registered.
        OldSnapshotCheck::new(unsafe { &*self.raw })
    }

    /// The oldest transaction that was running when the snapshot was taken.
    pub fn xmin(&self) -> pg_sys::TransactionId {
        self.xmin
    }
}

impl Drop for RegisteredSnapshot {
    fn drop(&mut self) {
        // After an error the server unregisters the snapshot with the transaction's resources.
        if !std::thread::panicking() {
            // SAFETY: registered by us.
            unsafe { pg_sys::UnregisterSnapshot(self.raw) }
        }
    }
}
