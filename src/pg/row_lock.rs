//! Locks on existing rows on which a decision about a new row rests, until the transaction ends.
use pgrx::pg_sys;

use pg_sys::LockTupleMode::{LockTupleNoKeyExclusive, LockTupleShare};
use pg_sys::LockWaitPolicy::{LockWaitBlock, LockWaitSkip};

use super::rel::Rel;
use super::slot::Slot;

/// An existing row as a dirty snapshot saw it.
#[derive(Clone, Copy)]
pub struct SeenRow {
    tid: pg_sys::ItemPointerData,
    /// The table.
    table: pg_sys::Oid,
    /// Whether this transaction has written this version. Nobody else can change it then.
    own: bool,
}

/// Strength of a lock on a row.
#[derive(Clone, Copy)]
pub enum Mode {
    /// No change at all by others, as FOR SHARE.
    Share,
    /// No change by others and no second lock of this kind, as FOR NO KEY UPDATE. It is what
    /// ON CONFLICT DO UPDATE takes next. Where two sessions held a shared lock on their common row,
    /// a DO UPDATE of a key column would be a deadlock of both.
    NoKeyUpdate,
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
        let slot = Slot::new(table);
        let mut tid = self.tid;
        let mut failure = pg_sys::TM_FailureData::default();
        // SAFETY: the row was seen in this table, which is open, and a row's address that is no
        // longer used is a result like others; a statement that writes has an active snapshot.
        let result = unsafe {
            pg_sys::table_tuple_lock(
                table.raw(),
                &mut tid,
                pg_sys::GetActiveSnapshot(),
                slot.raw(),
                pg_sys::GetCurrentCommandId(false),
                match mode {
                    Mode::Share => LockTupleShare,
                    Mode::NoKeyUpdate => LockTupleNoKeyExclusive,
                },
                match wait {
                    true => LockWaitBlock,
                    false => LockWaitSkip,
                },
                0,
                &mut failure,
            )
        };
        match result {
            pg_sys::TM_Result::TM_Ok => Locked::Yes,
            pg_sys::TM_Result::TM_WouldBlock => Locked::Busy,
            _ => Locked::Changed,
        }
    }
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
