//! Snapshots of the server that are registered while Rust code uses them.
use pgrx::pg_sys;

use super::compat::OldSnapshotCheck;

/// Snapshot that stays registered until this value is dropped or an error ends the transaction.
pub struct RegisteredSnapshot {
    raw: pg_sys::Snapshot,
    xmin: pg_sys::TransactionId,
}

impl RegisteredSnapshot {
    /// Registers the transaction's snapshot. In READ COMMITTED this is a new snapshot. In
    /// REPEATABLE READ and SERIALIZABLE it is the one that all statements of the transaction use.
    pub fn from_transaction() -> Self {
        // SAFETY: within a transaction.
        unsafe {
            let raw = pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot());
            let xmin = (*raw).xmin;
            RegisteredSnapshot { raw, xmin }
        }
    }

    /// Registers a new snapshot, whatever the isolation level is. It sees all changes that this
    /// transaction has made so far.
    pub fn latest() -> Self {
        // SAFETY: within a transaction.
        unsafe {
            pg_sys::CommandCounterIncrement();
            let raw = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
            let xmin = (*raw).xmin;
            RegisteredSnapshot { raw, xmin }
        }
    }

    /// Pointer to the server's snapshot.
    pub fn raw(&self) -> pg_sys::Snapshot {
        self.raw
    }

    /// Returns the check that a reader with this snapshot must apply to each page that it reads.
    /// The check raises an error if rows that the snapshot sees may have been removed from the
    /// page. Before version 17 the setting `old_snapshot_threshold` allows such removals.
    pub fn old_snapshot_check(&self) -> OldSnapshotCheck {
        // SAFETY: the snapshot is registered.
        OldSnapshotCheck::new(unsafe { &*self.raw })
    }

    /// Oldest transaction that was still running when the snapshot was taken (`xmin`).
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
