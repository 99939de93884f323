//! Locks on existing rows that decide about a new row. They stay until the transaction ends.
use pgrx::pg_sys;

use neardup_blocktree::key::Tid;
use pg_sys::LockTupleMode::{LockTupleExclusive, LockTupleKeyShare, LockTupleNoKeyExclusive};
use pg_sys::LockWaitPolicy::{LockWaitBlock, LockWaitSkip};

use super::rel::Rel;
use super::slot::Slot;
use super::snapshot::RegisteredSnapshot;
use super::tid::item_pointer;

/// Existing row that a dirty snapshot saw.
#[derive(Clone, Copy)]
pub struct SeenRow {
    tid: pg_sys::ItemPointerData,
    /// The table.
    table: pg_sys::Oid,
    /// True if this transaction has written this version, so no other session can change it.
    own: bool,
}

/// Strength of a lock on a row.
#[derive(Clone, Copy)]
pub enum Mode {
    /// FOR KEY SHARE. Other sessions cannot delete the row or lock it FOR UPDATE. They can change
    /// columns that are not in a unique index, unless the code that changes them takes
    /// [`Mode::Update`] first. Sessions that hold this lock can update the row in turn.
    KeyShare,
    /// FOR NO KEY UPDATE. Other sessions cannot change the row or take the same lock. ON CONFLICT
    /// DO UPDATE takes this lock next. If two sessions held a shared lock on the row, a DO UPDATE
    /// of a key column in both would deadlock.
    NoKeyUpdate,
    /// FOR UPDATE. Waits for all other sessions that hold a lock, [`Mode::KeyShare`] included.
    Update,
}

/// Result of an attempt to lock a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The row is locked.
    Yes,
    /// The version is no longer the newest one of the row.
    Changed,
    /// Another session holds a conflicting lock, and the caller does not wait.
    Busy,
}

impl SeenRow {
    /// The row in a slot.
    pub fn new(table: Rel, slot: &Slot) -> Self {
        SeenRow {
            tid: slot.address(),
            table: table.oid(),
            own: slot.is_own(),
        }
    }

    /// Locks the row. Waits for other sessions if `wait` is true.
    pub fn lock(&self, table: Rel, mode: Mode, wait: bool) -> Locked {
        assert_eq!(self.table, table.oid());
        if self.own {
            return Locked::Yes;
        }
        lock_version(table, self.tid, mode, wait)
    }
}

/// Locks the row version at an address.
fn lock_version(table: Rel, mut tid: pg_sys::ItemPointerData, mode: Mode, wait: bool) -> Locked {
    let (mode, flags) = match mode {
        // The flag also locks the new version of an uncommitted UPDATE. Otherwise the lock would
        // not protect the row after that UPDATE.
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
        // A lock FOR KEY SHARE does not conflict with an UPDATE of other columns. It may have been
        // granted on a version that was replaced while the lock waited at the new version.
        pg_sys::TM_Result::TM_Ok if mode == LockTupleKeyShare && !is_current(table, tid) => {
            Locked::Changed
        }
        pg_sys::TM_Result::TM_Ok => Locked::Yes,
        pg_sys::TM_Result::TM_WouldBlock => Locked::Busy,
        _ => Locked::Changed,
    }
}

/// Returns whether the row version at an address exists and was not replaced or deleted by a
/// committed transaction or by this one.
pub fn is_current(table: Rel, tid: pg_sys::ItemPointerData) -> bool {
    Version::fetch(table, tid).is_some()
}

/// Row version for which [`is_current`] holds.
pub struct Version<'a> {
    /// The row.
    pub slot: Slot<'a>,
    /// True if another transaction is writing, replacing or deleting it.
    pub is_undecided: bool,
}

impl<'a> Version<'a> {
    /// Reads the version at an address; `None` if it is not current.
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

/// Locks a row FOR UPDATE that this transaction is updating or has updated. Waits for sessions
/// that hold a FOR KEY SHARE lock on it. `version` is the address of any version of the row.
pub fn hold_off_sharers(table: Rel, version: Tid) {
    let snapshot = RegisteredSnapshot::latest();
    let mut tid = item_pointer(version);
    // SAFETY: the table is open, the address belongs to one of its rows, and the snapshot is
    // registered.
    unsafe {
        let scan = pg_sys::table_beginscan_tid(table.raw(), snapshot.raw());
        pg_sys::table_tuple_get_latest_tid(scan, &mut tid);
        pg_sys::table_endscan(scan);
    }
    // The lock fails if this transaction has deleted the row since. The DELETE took the same lock.
    lock_version(table, tid, Mode::Update, true);
}

/// Waits until a transaction ends. If the token is not 0, waits only until the transaction has
/// finished its speculative insertion.
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
