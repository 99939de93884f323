//! Rows in flight: rows that triggers publish before they look for near-duplicates, and that are
//! not in their table's indexes yet.
//!
//! docs/dev/architecture.md describes how a row passes through the trigger.
//!
//! Two transactions that look for near-duplicates at the same time, and then both write, would not
//! see each other's rows. So a trigger publishes its row here before it looks:
//!
//! 1. The trigger locks its own token. Other backends lock it only to wait for this row, so the
//!    server's deadlock detector sees the wait and the server's timeouts end it.
//! 2. Under one short lock it compares the row with the rows of other backends, at true distance,
//!    and publishes it if none is near. If one is near, it searches the index first: an existing
//!    near row there is decisive. Otherwise it waits for the near row's token and starts over.
//! 3. It searches the index. It also sees rows of transactions that have not ended, and waits for
//!    those transactions after it has withdrawn the row.
//! 4. The row is withdrawn when it is in every index that others may search ([`written`]). A row
//!    that never gets there is withdrawn before the statement's next row, at the statement's end,
//!    or when its transaction or subtransaction is rolled back.
//!
//! If no other backend has learned a token when its row is withdrawn, the token stays locked and
//! serves the statement's next row. The table records under its lock that a token was handed out.
//!
//! When two rows are near, the one that is published later sees the other: here or, after its
//! withdrawal, in the index. Writers write to the index before they withdraw, and readers read
//! this table before the index. Rows that are not near never wait for each other.
//!
//! Every backend has its own share of the table's slots ([`quota`]), so no session can make
//! another one fail.
mod quota;
mod table;
mod value;

use std::cell::{Cell, RefCell};

use pgrx::{pg_guard, pg_sys};

use crate::server;
pub use table::{Listed, Row, Token, database};
use table::{Refusal, Table};
pub use value::Value;

/// In the last field of an advisory lock's tag: the server's own functions put 1 or 2 there.
const CLASS: u16 = 0x6e64;
const EXCLUSIVE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
const SHARE: pg_sys::LOCKMODE = pg_sys::ShareLock as pg_sys::LOCKMODE;

/// A trigger of a table in a statement: the owner of rows in flight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Number of the statement (`TriggerCall::statement`).
    pub statement: usize,
    /// The table, or the partition.
    pub table: pg_sys::Oid,
    /// The trigger.
    pub trigger: pg_sys::Oid,
}

/// A published row of this backend.
struct Own {
    owner: Owner,
    token: Token,
    slots: Vec<usize>,
    subtransaction: pg_sys::SubTransactionId,
    /// The index that the server writes last among the indexes that others may search.
    last_index: pg_sys::Oid,
    value: Value,
}

/// A locked token without a row. No other backend has learned it, so none can wait for it. The
/// statement's next row uses it, which saves taking another advisory lock.
struct Spare {
    statement: usize,
    token: Token,
    /// The subtransaction that locked it.
    subtransaction: pg_sys::SubTransactionId,
}

/// A near row of another backend, for which the caller waits.
pub struct Near(Token);

thread_local! {
    /// Own rows, in the order of their publication.
    static OWN: RefCell<Vec<Own>> = const { RefCell::new(Vec::new()) };
    /// Each statement has at most as many spares as it had rows in flight at one time.
    static SPARE: RefCell<Vec<Spare>> = const { RefCell::new(Vec::new()) };
    static TOKENS: Cell<u32> = const { Cell::new(0) };
}

impl Token {
    /// Returns a token that this backend has not used yet.
    fn next() -> Token {
        thread_local! {
            static REGISTERED: Cell<bool> = const { Cell::new(false) };
        }
        if !REGISTERED.replace(true) {
            // SAFETY: the functions are of the right kind, and the library stays loaded.
            unsafe {
                pg_sys::RegisterXactCallback(Some(at_transaction_end), core::ptr::null_mut());
                pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), core::ptr::null_mut());
            }
        }
        let number = TOKENS.get().wrapping_add(1);
        TOKENS.set(number);
        Token {
            process: server::process_id(),
            number,
        }
    }

    /// The tag of the advisory lock that represents the token.
    fn tag(self) -> pg_sys::LOCKTAG {
        pg_sys::LOCKTAG {
            locktag_field1: database().to_u32(),
            locktag_field2: self.process as u32,
            locktag_field3: self.number,
            locktag_field4: CLASS,
            locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
            locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
        }
    }

    /// Locks the token. This backend's own token is locked at once; for another backend's token
    /// this waits until that backend has withdrawn the row.
    fn lock(self, mode: pg_sys::LOCKMODE) {
        // SAFETY: the tag is whole. A deadlock or a cancellation is an error of the server.
        unsafe { pg_sys::LockAcquire(&self.tag(), mode, false, false) };
    }

    fn unlock(self, mode: pg_sys::LOCKMODE) {
        // When an error ends the transaction, or a part of it, the server releases the lock.
        if server::IsTransactionState() {
            // SAFETY: taken by `lock`, in this transaction.
            unsafe { pg_sys::LockRelease(&self.tag(), mode, false) };
        }
    }
}

/// Publishes a row. If another backend has published a row within the radius, returns that row and
/// publishes nothing.
pub fn publish(owner: Owner, row: &Row, radius: u32, last_index: pg_sys::Oid) -> Result<(), Near> {
    let table = Table::get();
    quota::check(owner, row.slots());
    let subtransaction = server::subtransaction();
    let token = take_spare(owner.statement, subtransaction).unwrap_or_else(|| {
        let token = Token::next();
        token.lock(EXCLUSIVE);
        token
    });
    let mut own = Own {
        owner,
        token,
        slots: Vec::new(),
        subtransaction,
        last_index,
        value: row.value.clone(),
    };
    // Nothing may fail between the publication and its entry in `OWN`.
    OWN.with_borrow_mut(|rows| rows.reserve(1));
    match table.publish(row, radius, token) {
        Ok(slots) => {
            own.slots = slots;
            OWN.with_borrow_mut(|rows| rows.push(own));
            Ok(())
        }
        Err(Refusal::Near(other)) => {
            token.unlock(EXCLUSIVE);
            Err(Near(other))
        }
        Err(Refusal::Full) => unreachable!("the table has enough slots for every backend"),
    }
}

impl Near {
    /// Waits until the row is withdrawn.
    pub fn wait(self) {
        let Near(token) = self;
        token.lock(SHARE);
        // A backend withdraws its row before it unlocks the token. If a row is still published,
        // no other code would ever remove it.
        Table::get().clear_all(token);
        token.unlock(SHARE);
    }
}

/// Withdraws all rows of an owner.
pub fn withdraw(owner: Owner) {
    withdraw_if(|other| other.owner == owner);
}

/// Withdraws what triggers published for the statement's previous row, which is in the index by
/// now or never will be. Keeps what other triggers of the same table published for the current
/// row.
pub fn withdraw_previous(owner: Owner) {
    withdraw_if(|other| {
        other.owner.statement == owner.statement
            && (other.owner.table != owner.table || other.owner == owner)
    });
}

/// Returns whether this backend has rows in flight that it withdraws once they are in this index.
#[inline]
pub fn awaits(index: pg_sys::Oid) -> bool {
    OWN.with_borrow(|rows| rows.iter().any(|own| own.last_index == index))
}

/// Withdraws the row with this value, which is now in the index. If several statements have such a
/// row, withdraws the row of the innermost statement.
pub fn written(index: pg_sys::Oid, value: &Value) {
    let is_written = |own: &Own| own.last_index == index && own.value == *value;
    let innermost = OWN.with_borrow(|rows| {
        let last = rows.iter().rev().find(|own| is_written(own));
        last.map(|own| own.owner.statement)
    });
    if let Some(statement) = innermost {
        withdraw_if(|own| own.owner.statement == statement && is_written(own));
    }
}

/// The rows in flight in this database, of all backends.
pub fn list() -> Vec<Listed> {
    Table::get().list()
}

/// Unlocks the tokens that a statement has kept for its next row. Callers call it at its end.
pub fn end_statement(statement: usize) {
    for spare in take_spares(|spare| spare.statement == statement) {
        spare.token.unlock(EXCLUSIVE);
    }
}

/// Takes a token that the statement kept from an earlier row in the same subtransaction.
fn take_spare(statement: usize, subtransaction: pg_sys::SubTransactionId) -> Option<Token> {
    SPARE.with_borrow_mut(|spares| {
        let fits =
            |spare: &Spare| spare.statement == statement && spare.subtransaction == subtransaction;
        let index = spares.iter().rposition(fits)?;
        Some(spares.swap_remove(index).token)
    })
}

fn take_spares(which: impl Fn(&Spare) -> bool) -> Vec<Spare> {
    SPARE.with_borrow_mut(|spares| spares.extract_if(.., |spare| which(spare)).collect())
}

fn withdraw_if(whose: impl Fn(&Own) -> bool) {
    let (taken, known) = take(whose);
    for Own {
        owner,
        token,
        subtransaction,
        ..
    } in taken
    {
        // A backend that has learned the token waits for this row, not for the statement's next.
        let is_of_now = server::IsTransactionState() && subtransaction == server::subtransaction();
        if known || !is_of_now {
            token.unlock(EXCLUSIVE);
            continue;
        }
        let statement = owner.statement;
        SPARE.with_borrow_mut(|spares| {
            spares.push(Spare {
                statement,
                token,
                subtransaction,
            });
        });
    }
}

/// Removes rows from the table. Returns them, and whether another backend may wait for one of
/// them.
fn take(whose: impl Fn(&Own) -> bool) -> (Vec<Own>, bool) {
    let taken: Vec<Own> =
        OWN.with_borrow_mut(|rows| rows.extract_if(.., |own| whose(own)).collect());
    if taken.is_empty() {
        return (taken, false);
    }
    let slots = (taken.iter()).flat_map(|own| own.slots.iter().map(|&slot| (slot, own.token)));
    let known = Table::get().clear(slots);
    (taken, known)
}

/// Forgets all rows at the end of a transaction, when the server releases the tokens' locks.
#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut core::ffi::c_void,
) {
    match event {
        pg_sys::XactEvent::XACT_EVENT_COMMIT
        | pg_sys::XactEvent::XACT_EVENT_ABORT
        | pg_sys::XactEvent::XACT_EVENT_PREPARE => {
            take(|_| true);
            take_spares(|_| true);
        }
        _ => (),
    }
}

/// Forgets the rows that a rolled-back subtransaction has published. Committed subtransactions
/// inside it have higher numbers.
#[pg_guard]
unsafe extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    number: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut core::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        take(|own| own.subtransaction >= number);
        take_spares(|spare| spare.subtransaction >= number);
    }
}
