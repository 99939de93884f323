//! Rows in flight: rows that triggers publish before they look for near-duplicates, and that do not
//! stand in their table's indexes yet.
//!
//! docs/dev/architecture.md has the way of a row through the trigger.
//!
//! Two transactions that look for near-duplicates at the same time, and then both write, would not
//! see each other's rows. So a trigger publishes its row here before it looks:
//!
//! 1. It locks a token of its own, which nobody else asks for but to wait for this row. Waiting is
//!    thus seen by the server's deadlock detector, and ended by its timeouts.
//! 2. Under one short lock it compares the row with those of other backends, at true distance, and
//!    publishes it if none is near. If one is, it looks in the index first, where an existing near
//!    row decides the matter; without one it waits for the near one's token, and begins again.
//! 3. It looks in the index. Rows of transactions that have not ended are seen, and waited for
//!    after the row has been withdrawn.
//! 4. The row is withdrawn when it stands in every index through which others may look
//!    ([`written`]). If it never does, it is withdrawn for the statement's next row, at the
//!    statement's end, or when its transaction or subtransaction is rolled back.
//!
//! A token that nobody has learned until its row is withdrawn stays locked, and stands for the
//! statement's next row. The table notes under its lock who is told of a token.
//!
//! Of two near rows the one that is published later sees the other: here, or, once it has been
//! withdrawn, in the index, for writers write to the index first and withdraw second, and readers
//! read here first and the index second. Rows that are not near never wait for each other.
//!
//! Every backend has its own share of the table's slots ([`quota`]), so that no session can make
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
    /// The index that the server writes last of those through which others may look.
    last_index: pg_sys::Oid,
    value: Value,
}

/// A token that is locked, and stands for no row: nobody has learned it, so that nobody can wait
/// for it. It serves the statement's next row, which spares that an advisory lock.
struct Spare {
    statement: usize,
    token: Token,
    /// In which it was locked.
    subtransaction: pg_sys::SubTransactionId,
}

/// A near row of another backend, to be waited for.
pub struct Near(Token);

thread_local! {
    /// In the order in which they were published.
    static OWN: RefCell<Vec<Own>> = const { RefCell::new(Vec::new()) };
    /// No more of a statement than rows that it has had in flight at one time.
    static SPARE: RefCell<Vec<Spare>> = const { RefCell::new(Vec::new()) };
    static TOKENS: Cell<u32> = const { Cell::new(0) };
}

impl Token {
    /// A token that this backend has not used yet.
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

    /// The tag of the lock that stands for it, an advisory one.
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

/// Publishes a row, whose near-duplicates are those within the radius; or returns a near row of
/// another backend, and publishes nothing.
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
    // Between the publication and the note of it nothing may fail.
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
        // Its backend withdraws a row before it unlocks the token. Should a row have stayed all the
        // same, nobody else would ever take it away.
        Table::get().clear_all(token);
        token.unlock(SHARE);
    }
}

/// Withdraws all rows of an owner.
pub fn withdraw(owner: Owner) {
    withdraw_if(|other| other.owner == owner);
}

/// Withdraws the rows of the statement's last row, which stands in the index by now, or never will.
/// Of the row at hand another trigger of the same table may have published; that stays.
pub fn withdraw_previous(owner: Owner) {
    withdraw_if(|other| {
        other.owner.statement == owner.statement
            && (other.owner.table != owner.table || other.owner == owner)
    });
}

/// Returns whether this backend has rows in flight that are to be withdrawn once they stand in an
/// index.
#[inline]
pub fn awaits(index: pg_sys::Oid) -> bool {
    OWN.with_borrow(|rows| rows.iter().any(|own| own.last_index == index))
}

/// Withdraws the row with this value, which stands in the index now. Of rows of several statements
/// it is that of the innermost.
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

/// Unlocks the tokens that a statement has kept for its next row. To be called at its end.
pub fn end_statement(statement: usize) {
    for spare in take_spares(|spare| spare.statement == statement) {
        spare.token.unlock(EXCLUSIVE);
    }
}

/// A token that a statement has left from an earlier row, in the same subtransaction.
fn take_spare(statement: usize, subtransaction: pg_sys::SubTransactionId) -> Option<Token> {
    SPARE.with_borrow_mut(|spares| {
        let fits =
            |spare: &Spare| spare.statement == statement && spare.subtransaction == subtransaction;
        let place = spares.iter().rposition(fits)?;
        Some(spares.swap_remove(place).token)
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
        // Who has learned the token waits for this row, and not for what the statement does next.
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

/// Takes rows out of the table, and returns them; and whether anybody may wait for one of them.
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

/// Forgets all rows at the end of a transaction, with which the server releases the tokens' locks.
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

/// Likewise for what a subtransaction that is rolled back has published. Those inside it that have
/// been committed have higher numbers.
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
