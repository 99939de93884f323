//! Locks on existing rows of a table. A trigger locks the rows on which its decision about a new
//! row depends. The locks last until the transaction ends.
use pgrx::pg_sys;

use neardup_blocktree::key::Tid;
use pg_sys::LockTupleMode::{LockTupleExclusive, LockTupleKeyShare, LockTupleNoKeyExclusive};
use pg_sys::LockWaitPolicy::{LockWaitBlock, LockWaitSkip};

use super::rel::Rel;
use super::slot::Slot;
use super::snapshot::RegisteredSnapshot;
use super::tid::item_pointer;

/// Existing row that a search with a dirty snapshot has found, and that can be locked later.
#[derive(Clone, Copy)]
pub struct SeenRow {
    /// Address of the row version that was found.
    tid: pg_sys::ItemPointerData,
    /// OID of the row's table.
    table: pg_sys::Oid,
    /// True if this transaction has written the row version, so no other session can change it.
    own: bool,
}

/// Strength of a lock on a row, as in SELECT ... FOR.
#[derive(Clone, Copy)]
pub enum Mode {
    /// FOR KEY SHARE. Several sessions can hold this lock on a row at the same time. Other sessions
    /// cannot delete the row, change its columns in unique indexes, or lock it FOR UPDATE. They can
    /// change other columns. A trigger that is called for such a change can take [`Mode::Update`]
    /// first, which waits until this lock is released.
    KeyShare,
    /// FOR NO KEY UPDATE. Other sessions cannot change the row or take this lock on it. Used for a
    /// row that ON CONFLICT DO UPDATE may be about to change. With [`Mode::KeyShare`] instead, two
    /// sessions could both lock the row. If each of them then changed a key column of the row by DO
    /// UPDATE, each would wait for the lock of the other, which is a deadlock.
    NoKeyUpdate,
    /// FOR UPDATE. Waits for all other sessions that hold any lock on the row, [`Mode::KeyShare`]
    /// included.
    Update,
}

/// Result of an attempt to lock a row version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The row is locked.
    Yes,
    /// A transaction has replaced or deleted this row version. The row's newest version is not
    /// locked.
    Changed,
    /// The row is not locked, because another session holds a conflicting lock and the caller does
    /// not wait.
    Busy,
}

impl SeenRow {
    /// Remembers the row in `slot`, which must be a row of `table`.
    pub fn new(table: Rel, slot: &Slot) -> Self {
        SeenRow {
            tid: slot.address(),
            table: table.oid(),
            own: slot.is_own(),
        }
    }

    /// Locks the row in the mode `mode`. If this transaction has written the row version, returns
    /// [`Locked::Yes`] without a lock. `wait` decides what happens if another session holds a
    /// conflicting lock: true waits for that session, and false returns [`Locked::Busy`].
    pub fn lock(&self, table: Rel, mode: Mode, wait: bool) -> Locked {
        assert_eq!(self.table, table.oid());
        if self.own {
            return Locked::Yes;
        }
        lock_version(table, self.tid, mode, wait)
    }
}

/// Locks the row version at the address `tid` in `table`. `mode`, `wait` and the result are as for
/// [`SeenRow::lock`].
fn lock_version(table: Rel, mut tid: pg_sys::ItemPointerData, mode: Mode, wait: bool) -> Locked {
    let (mode, flags) = match mode {
        // With this flag, the lock also covers the new version that a running UPDATE has written.
        // Otherwise the lock would not protect the row after that UPDATE commits.
        Mode::KeyShare => (
            LockTupleKeyShare,
            pg_sys::TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS,
        ),
        Mode::NoKeyUpdate => (LockTupleNoKeyExclusive, 0),
        Mode::Update => (LockTupleExclusive, 0),
    };
    let slot = Slot::new(table);
    let mut failure = pg_sys::TM_FailureData::default();
    // SAFETY: the row was seen in this table, which is open. An address that is no longer used is
    // reported as a result. A statement that writes has an active snapshot.
    let result = unsafe {
        pg_sys::table_tuple_lock(
            table.raw(),
            &mut tid,
            pg_sys::GetActiveSnapshot(),
            slot.raw(),
            pg_sys::GetCurrentCommandId(false),
            mode,
            match wait {
                true => LockWaitBlock,
                false => LockWaitSkip,
            },
            flags as u8,
            &mut failure,
        )
    };
    match result {
        // A lock FOR KEY SHARE does not conflict with an UPDATE of other columns. So the server may
        // grant it on a version that another session has replaced meanwhile.
        pg_sys::TM_Result::TM_Ok if mode == LockTupleKeyShare && !is_current(table, tid) => {
            Locked::Changed
        }
        pg_sys::TM_Result::TM_Ok => Locked::Yes,
        pg_sys::TM_Result::TM_WouldBlock => Locked::Busy,
        _ => Locked::Changed,
    }
}

/// Returns whether the row version at an address exists, and neither a committed transaction nor
/// this transaction has replaced or deleted it.
pub fn is_current(table: Rel, tid: pg_sys::ItemPointerData) -> bool {
    Version::fetch(table, tid).is_some()
}

/// Row version that neither a committed transaction nor this transaction has replaced or deleted
/// (see [`is_current`]).
pub struct Version<'a> {
    /// Slot with the row.
    pub slot: Slot<'a>,
    /// True if another transaction, which is still running, has inserted, replaced or deleted the
    /// row.
    pub is_undecided: bool,
}

impl<'a> Version<'a> {
    /// Reads the row version at an address; `None` if [`is_current`] is false for it.
    pub fn fetch(table: Rel<'a>, mut tid: pg_sys::ItemPointerData) -> Option<Self> {
        let slot = Slot::new(table);
        let mut snapshot = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        // SAFETY: the table is open; the only field that a dirty snapshot needs is its type.
        let found = unsafe {
            pg_sys::table_tuple_fetch_row_version(table.raw(), &mut tid, &mut snapshot, slot.raw())
        };
        found.then(|| Version {
            slot,
            is_undecided: [snapshot.xmin, snapshot.xmax] != [pg_sys::InvalidTransactionId; 2],
        })
    }
}

/// Locks FOR UPDATE a row that this transaction is updating or has updated. Waits for sessions that
/// hold a FOR KEY SHARE lock on it. `version` is the address of any version of the row.
pub fn lock_for_update(table: Rel, version: Tid) {
    let snapshot = RegisteredSnapshot::latest();
    let mut tid = item_pointer(version);
    // SAFETY: the table is open, the address belongs to one of its rows, and the snapshot is
    // registered.
    unsafe {
        let scan = pg_sys::table_beginscan_tid(table.raw(), snapshot.raw());
        pg_sys::table_tuple_get_latest_tid(scan, &mut tid);
        pg_sys::table_endscan(scan);
    }
    // The result does not matter: the lock fails only if this transaction has deleted the row
    // since, and the DELETE has taken the same lock.
    lock_version(table, tid, Mode::Update, true);
}

/// Waits until the transaction `transaction` ends. `token` is the number of its speculative
/// insertion into `table`, or 0. If `token` is not 0, waits only until that insertion has finished.
pub fn wait_for(transaction: pg_sys::TransactionId, token: u32, table: Rel) {
    let mut nowhere = pg_sys::ItemPointerData::default();
    // SAFETY: the table is open. A deadlock or a cancellation is an error of the server.
    unsafe {
        match token {
            0 => {
                let operation = pg_sys::XLTW_Oper::XLTW_None;
                pg_sys::XactLockTableWait(transaction, table.raw(), &mut nowhere, operation);
            }
            token => pg_sys::SpeculativeInsertionWait(transaction, token),
        }
    }
}
