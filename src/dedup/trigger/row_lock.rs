//! Locks on existing rows on which a decision about a new row rests, until the transaction ends.
use pgrx::pg_sys;

use pg_sys::LockTupleMode::{LockTupleNoKeyExclusive, LockTupleShare};
use pg_sys::LockWaitPolicy::{LockWaitBlock, LockWaitSkip};

/// An existing row as a dirty snapshot saw it.
#[derive(Clone, Copy)]
pub struct SeenRow {
    tid: pg_sys::ItemPointerData,
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
    Yes,
    /// The version is no longer the row's last one.
    Changed,
    /// Somebody holds a lock that conflicts, and waiting was not wanted.
    Busy,
}

impl SeenRow {
    /// # Safety
    /// The slot holds a row of a table.
    pub unsafe fn of(slot: *mut pg_sys::TupleTableSlot) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let mut null = false;
            let column = pg_sys::MinTransactionIdAttributeNumber;
            let writer = pg_sys::slot_getsysattr(slot, column, &mut null);
            let writer = pg_sys::TransactionId::from(writer.value() as u32);
            SeenRow {
                tid: (*slot).tts_tid,
                own: !null && pg_sys::TransactionIdIsCurrentTransactionId(writer),
            }
        }
    }

    /// Locks the row, waiting for others if `wait` says so.
    ///
    /// # Safety
    /// The row is one of this relation, which is open, and a snapshot is active.
    pub unsafe fn lock(&self, relation: pg_sys::Relation, mode: Mode, wait: bool) -> Locked {
        if self.own {
            return Locked::Yes;
        }
        // SAFETY: the caller's promise. After an error the server drops the slot.
        unsafe {
            let slot = pg_sys::table_slot_create(relation, core::ptr::null_mut());
            let mut tid = self.tid;
            let mut failure = pg_sys::TM_FailureData::default();
            let result = pg_sys::table_tuple_lock(
                relation,
                &mut tid,
                pg_sys::GetActiveSnapshot(),
                slot,
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
            );
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            match result {
                pg_sys::TM_Result::TM_Ok => Locked::Yes,
                pg_sys::TM_Result::TM_WouldBlock => Locked::Busy,
                _ => Locked::Changed,
            }
        }
    }
}
