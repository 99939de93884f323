//! Locks on existing rows on which a decision about a new row rests, until the transaction ends.
use pgrx::pg_sys;

use neardup_blocktree::key::Tid;
use pg_sys::LockTupleMode::{LockTupleExclusive, LockTupleKeyShare, LockTupleNoKeyExclusive};
use pg_sys::LockWaitPolicy::{LockWaitBlock, LockWaitSkip};

use super::rel::Rel;
use super::slot::Slot;
use super::snapshot::RegisteredSnapshot;
use super::tid::item_pointer;

/// An existing row as a dirty snapshot saw it.
#[derive(Clone, Copy)]
pub struct SeenRow {
    tid: pg_sys::ItemPointerData,
    /// The table.
    table: pg_sys::Oid,
    /// True if this transaction has written this version. Nobody else can change it then.
    own: bool,
}

/// Strength of a lock on a row.
#[derive(Clone, Copy)]
pub enum Mode {
    /// FOR KEY SHARE. Other sessions cannot delete the row or lock it FOR UPDATE. They can change
    /// columns that are in no unique index, unless the code that changes them takes
    /// [`Mode::Update`] first. Sessions that hold this lock can update the row one after the other.
    KeyShare,
    /// No change by others and no second lock of this kind, as FOR NO KEY UPDATE. It is what
    /// ON CONFLICT DO UPDATE takes next. Where two sessions held a shared lock on their common row,
    /// a DO UPDATE of a key column would be a deadlock of both.
    NoKeyUpdate,
    /// FOR UPDATE. Waits for all other sessions that hold a lock, [`Mode::KeyShare`] included.
    Update,
}

/// Result of an attempt to lock a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The row is locked.
    Yes,
    /// The version is no longer the row's last one.
    Changed,
    /// Somebody holds a lock that conflicts, and waiting was not wanted.
    Busy,
}

impl SeenRow {
    /// The row of a table that a slot holds.
    pub fn new(table: Rel, slot: &Slot) -> Self {
        SeenRow {
            tid: slot.address(),
            table: table.oid(),
            own: slot.is_own(),
        }
    }

    /// Locks the row, waiting for others if `wait` says so.
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
        // Also locks the new version of an UPDATE that is not committed. Otherwise the lock would
        // end with that UPDATE.
        Mode::KeyShare => (
            LockTupleKeyShare,
            pg_sys::TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS,
        ),
        Mode::NoKeyUpdate => (LockTupleNoKeyExclusive, 0),
        Mode::Update => (LockTupleExclusive, 0),
    };
    let slot = Slot::new(table);
    let mut failure = pg_sys::TM_FailureData::default();
    // SAFETY: the row was seen in this table, which is open, and a row's address that is no longer
    // used is a result like others; a statement that writes has an active snapshot.
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
        // SAFETY: the table is open; a dirty snapshot needs nothing set but its type.
        let found = unsafe {
            pg_sys::table_tuple_fetch_row_version(table.raw(), &mut tid, &mut snapshot, slot.raw())
        };
        found.then(|| Version {
            slot,
            is_undecided: [snapshot.xmin, snapshot.xmax] != [pg_sys::InvalidTransactionId; 2],
        })
    }
}

/// Locks a row FOR UPDATE that this transaction is updating or has updated. Waits for sessions that
/// hold a lock FOR KEY SHARE on it. The address is that of the newest version or an earlier one.
pub fn hold_off_sharers(table: Rel, version: Tid) {
    let snapshot = RegisteredSnapshot::latest();
    let mut tid = item_pointer(version);
    // SAFETY: the table is open, the address one of its rows', and the snapshot registered.
    unsafe {
        let scan = pg_sys::table_beginscan_tid(table.raw(), snapshot.raw());
        pg_sys::table_tuple_get_latest_tid(scan, &mut tid);
        pg_sys::table_endscan(scan);
    }
    // The lock fails if this transaction has deleted the row since. The DELETE took the same lock.
    lock_version(table, tid, Mode::Update, true);
}

/// Waits until a transaction ends, or until it has decided about the row that it is inserting
/// speculatively, if the token is not 0.
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
