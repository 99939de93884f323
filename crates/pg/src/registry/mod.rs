//! Rows in flight: rows that triggers publish to other backends before they look for
//! near-duplicates, and that are not in their table's indexes yet. They are in slots of a table in
//! shared memory. A token, which has an advisory lock, identifies each of them.
//!
//! docs/dev/architecture.md describes how a row passes through the trigger.
//!
//! Two transactions that look for near-duplicates at the same time, and then both write, would not
//! see each other's rows. So a trigger publishes its row in a table in shared memory before it
//! looks for near-duplicates:
//!
//! 1. The trigger locks a token, which identifies the row. Other backends lock the token only to
//!    wait for this row, so the server's deadlock detector sees the wait and the server's timeouts
//!    end it.
//! 2. Under one short lock it compares the row with the rows of other backends, at true distance,
//!    and publishes it if none is near. If one is near, the trigger searches the index first: an
//!    existing near row there is decisive. Otherwise it waits for the near row's token and starts
//!    over.
//! 3. It searches the index. It also sees rows of transactions that have not ended, and waits for
//!    those transactions after it has withdrawn the row.
//! 4. It withdraws the row, that is, removes it from the table in shared memory, when the row is in
//!    every index that other backends may search ([`withdraw_written`]). A row that never gets
//!    there is withdrawn before the statement's next row, at the statement's end, or when its
//!    transaction or subtransaction is rolled back.
//!
//! If no other backend has read the token when the row is withdrawn, the token stays locked and
//! serves the statement's next row. The table records that another backend has read a token.
//!
//! When two rows are near, the trigger of the row that is published later sees the other row: in
//! the table or, after its withdrawal, in the index. Writers write to the index before they
//! withdraw, and readers read the table before the index. Rows that are not near never wait for
//! each other.
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

/// Last field in the lock tag of a token. It separates tokens from the server's own advisory locks,
/// which have 1 or 2 in this field.
const CLASS: u16 = 0x6e64;
const EXCLUSIVE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
const SHARE: pg_sys::LOCKMODE = pg_sys::ShareLock as pg_sys::LOCKMODE;

/// One trigger of one table in one statement. It owns the rows in flight that it publishes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TriggerRun {
    /// Number that identifies the statement (`TriggerCall::statement`).
    pub statement: usize,
    /// OID of the table, or of the partition, whose row is written.
    pub table: pg_sys::Oid,
    /// OID of the trigger.
    pub trigger: pg_sys::Oid,
}

/// Row in flight that this backend has published.
struct OwnRow {
    run: TriggerRun,
    token: Token,
    /// Numbers of the row's slots in the table in shared memory.
    slots: Vec<usize>,
    /// Subtransaction that published the row.
    subtransaction: pg_sys::SubTransactionId,
    /// OID of the index that the server writes last, among the indexes in which other backends may
    /// search for the row. The row is withdrawn once the server has inserted it into this index.
    last_index: pg_sys::Oid,
    value: Value,
}

/// Token that is still locked although its row was withdrawn. No other backend has read the token,
/// so none can wait for it. The statement's next row uses the token, which saves taking another
/// advisory lock.
struct Spare {
    statement: usize,
    token: Token,
    /// Subtransaction that locked the token.
    subtransaction: pg_sys::SubTransactionId,
}

/// Row in flight of another backend that is near the caller's row. The caller can wait for it.
pub struct Near(Token);

thread_local! {
    /// Rows in flight of this backend, in the order of their publication.
    static OWN: RefCell<Vec<OwnRow>> = const { RefCell::new(Vec::new()) };
    /// Spare tokens of this backend. A statement has at most as many spare tokens as it had rows in
    /// flight at one time.
    static SPARE: RefCell<Vec<Spare>> = const { RefCell::new(Vec::new()) };
    /// Number of this backend's last token.
    static TOKENS: Cell<u32> = const { Cell::new(0) };
}

impl Token {
    /// Makes a token that this backend has not used yet. The first call of this function registers
    /// the callbacks for the end of transactions.
    fn next() -> Token {
        thread_local! {
            static REGISTERED: Cell<bool> = const { Cell::new(false) };
        }
        if !REGISTERED.replace(true) {
            // SAFETY: the callbacks have the types that the server calls. The library stays loaded.
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

    /// Tag of the advisory lock that represents the token.
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

    /// Takes the token's advisory lock in the mode `mode`. The backend that publishes the row locks
    /// the token exclusively, and never has to wait. Another backend locks the token in shared mode
    /// to wait for the row: it gets the lock when the row has been withdrawn. The lock lasts until
    /// [`Token::unlock`] or the end of the transaction.
    fn lock(self, mode: pg_sys::LOCKMODE) {
        // SAFETY: all fields of the tag are set. The server raises an error for a deadlock or a
        // cancellation.
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

/// Publishes `row` for the trigger `run`. If another backend has a row in flight in the group
/// `row.group` at a distance of at most `radius`, publishes nothing and returns that row as the
/// error. `radius` is a number of bits for fingerprints, and a number of hashes for signatures.
///
/// `last_index` is the OID of an index. When `row` has been inserted into this index,
/// [`withdraw_written`] withdraws it. Raises error 54000 if this backend has too few slots left.
pub fn publish(
    run: TriggerRun,
    row: &Row,
    radius: u32,
    last_index: pg_sys::Oid,
) -> Result<(), Near> {
    let table = Table::get();
    quota::check(run, row.slots());
    let subtransaction = server::subtransaction();
    let token = take_spare(run.statement, subtransaction).unwrap_or_else(|| {
        let token = Token::next();
        token.lock(EXCLUSIVE);
        token
    });
    let mut own = OwnRow {
        run,
        token,
        slots: Vec::new(),
        subtransaction,
        last_index,
        value: row.value.clone(),
    };
    // Reserves memory now, because nothing may fail between the publication and the push to `OWN`.
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
    /// Waits until the other backend has withdrawn the row.
    pub fn wait(self) {
        let Near(token) = self;
        token.lock(SHARE);
        // A backend withdraws its row before it unlocks the token. A row that is still published
        // now would never be removed by other code.
        Table::get().clear_all(token);
        token.unlock(SHARE);
    }
}

/// Withdraws all rows in flight that the trigger `run` has published.
pub fn withdraw(run: TriggerRun) {
    withdraw_if(|other| other.run == run);
}

/// Withdraws the statement's previous row, which is in the indexes by now or never will be. The
/// trigger `run` calls this function when it begins with the statement's next row. The previous row
/// may be in another partition.
///
/// Other triggers of the same table may already have published the next row. So this function does
/// not withdraw rows that they have published: each trigger withdraws its own previous row.
pub fn withdraw_previous(run: TriggerRun) {
    withdraw_if(|other| {
        other.run.statement == run.statement && (other.run.table != run.table || other.run == run)
    });
}

/// Returns whether this backend has a row in flight that it will withdraw when the row has been
/// inserted into the index with the OID `index`.
#[inline]
pub fn awaits(index: pg_sys::Oid) -> bool {
    OWN.with_borrow(|rows| rows.iter().any(|own| own.last_index == index))
}

/// Withdraws this backend's row in flight with the value `value`, which is now in the index
/// `index`. If several nested statements have such a row in flight, withdraws the row of the
/// innermost statement only.
pub fn withdraw_written(index: pg_sys::Oid, value: &Value) {
    let is_written = |own: &OwnRow| own.last_index == index && own.value == *value;
    let innermost = OWN.with_borrow(|rows| {
        let last = rows.iter().rev().find(|own| is_written(own));
        last.map(|own| own.run.statement)
    });
    if let Some(statement) = innermost {
        withdraw_if(|own| own.run.statement == statement && is_written(own));
    }
}

/// Lists the rows in flight of all backends in this database.
pub fn list() -> Vec<Listed> {
    Table::get().list()
}

/// Unlocks the spare tokens of a statement. Called at the end of the statement.
pub fn end_statement(statement: usize) {
    for spare in take_spares(|spare| spare.statement == statement) {
        spare.token.unlock(EXCLUSIVE);
    }
}

/// Returns a spare token for the statement's next row, and removes it from [`SPARE`]. The token was
/// locked by the same statement in the same subtransaction, and is still locked. `None` if there is
/// no such token.
fn take_spare(statement: usize, subtransaction: pg_sys::SubTransactionId) -> Option<Token> {
    SPARE.with_borrow_mut(|spares| {
        let fits =
            |spare: &Spare| spare.statement == statement && spare.subtransaction == subtransaction;
        let index = spares.iter().rposition(fits)?;
        Some(spares.swap_remove(index).token)
    })
}

/// Removes from [`SPARE`] the spare tokens for which `which` returns true. Returns the removed
/// tokens, which are still locked.
fn take_spares(which: impl Fn(&Spare) -> bool) -> Vec<Spare> {
    SPARE.with_borrow_mut(|spares| spares.extract_if(.., |spare| which(spare)).collect())
}

/// Withdraws this backend's rows in flight for which `whose` returns true, and unlocks their
/// tokens. A token that was locked in the current subtransaction stays locked, as a spare for a
/// later row, if no other backend can wait for any of the withdrawn rows.
fn withdraw_if(whose: impl Fn(&OwnRow) -> bool) {
    let (taken, was_read) = take(whose);
    for OwnRow {
        run,
        token,
        subtransaction,
        ..
    } in taken
    {
        // A backend that has read the token waits for this row, so the token cannot serve the
        // statement's next row.
        let is_of_now = server::IsTransactionState() && subtransaction == server::subtransaction();
        if was_read || !is_of_now {
            token.unlock(EXCLUSIVE);
            continue;
        }
        let statement = run.statement;
        SPARE.with_borrow_mut(|spares| {
            spares.push(Spare {
                statement,
                token,
                subtransaction,
            });
        });
    }
}

/// Removes from the table in shared memory this backend's rows for which `whose` returns true.
/// Returns the removed rows. Also returns whether another backend has read the token of one of
/// these rows and may wait for the row.
fn take(whose: impl Fn(&OwnRow) -> bool) -> (Vec<OwnRow>, bool) {
    let taken: Vec<OwnRow> =
        OWN.with_borrow_mut(|rows| rows.extract_if(.., |own| whose(own)).collect());
    if taken.is_empty() {
        return (taken, false);
    }
    let slots = (taken.iter()).flat_map(|own| own.slots.iter().map(|&slot| (slot, own.token)));
    let was_read = Table::get().clear(slots);
    (taken, was_read)
}

/// Callback of the server at the end of a transaction: withdraws all rows of this backend. The
/// server releases the locks of the tokens.
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

/// Callback of the server when a subtransaction ends: after a rollback, withdraws the rows that the
/// subtransaction has published. Subtransactions that were committed inside it have higher numbers,
/// so their rows are withdrawn too.
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
