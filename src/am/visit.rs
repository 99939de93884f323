//! What a backend remembers of an index for the transaction under way. Constraints and triggers open
//! a scan for each row; what stays the same from row to row is not to be asked for each time.
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use neardup_blocktree::key::Block;
use neardup_blocktree::leaves::Leaves;
use pgrx::pg_sys;

use crate::pg::compat;
use crate::storage::pages::IndexPages;

unsafe extern "C-unwind" {
    // Reads a variable and raises no error, hence without the wrapper of pgrx, as in
    // `crate::storage::pages`.
    fn GetCurrentSubTransactionId() -> pg_sys::SubTransactionId;
}

/// Indexes that are remembered: those of a table or two.
const MOST: usize = 8;
/// How often an index is opened before its size is asked for again. What takes so few rows is
/// cheap however it is done.
const ASK_AGAIN: u32 = 32;

/// What a visit is one of.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// The entry in the relation cache: see [`next_serial`].
    entry: u64,
    transaction: u32,
    /// If this one is rolled back, its locks are gone.
    subtransaction: u32,
}

/// A transaction's visit to an index, during which no page is moved and the end not cut off: a lock
/// keeps off whoever does that.
pub struct Visit {
    key: Key,
    /// Blocks in the index, when it was asked last, and how many times it has been opened since.
    blocks: Cell<Block>,
    opened: Cell<u32>,
    /// Leaves of the last keys.
    pub leaves: Leaves,
}

thread_local! {
    static SERIAL: Cell<u64> = const { Cell::new(0) };
    /// The last one first.
    static VISITS: RefCell<Vec<Rc<Visit>>> = const { RefCell::new(Vec::new()) };
}

/// A number for what has just been put into the relation cache. The server drops that whenever the
/// index may have been built anew.
pub fn next_serial() -> u64 {
    SERIAL.with(|serial| {
        serial.set(serial.get() + 1);
        serial.get()
    })
}

/// The transaction's visit to an index with this number in the relation cache.
///
/// # Safety
/// The relation is open and locked.
pub unsafe fn visit(relation: pg_sys::Relation, entry: u64) -> Rc<Visit> {
    let key = Key {
        entry,
        transaction: compat::local_transaction(),
        // SAFETY: reads a variable.
        subtransaction: unsafe { GetCurrentSubTransactionId() },
    };
    let known = VISITS.with_borrow_mut(|visits| {
        let place = visits.iter().position(|visit| visit.key == key)?;
        visits.swap(0, place);
        Some(visits[0].clone())
    });
    if let Some(visit) = known {
        return visit;
    }
    // The executor lets go of what an INSERT has locked when the statement ends. This lock stays; it
    // is one that any query takes.
    // SAFETY: the relation is open, and locked in some mode, so that this waits for nobody.
    unsafe {
        pg_sys::LockRelationOid(
            (*relation).rd_id,
            pg_sys::AccessShareLock as pg_sys::LOCKMODE,
        )
    };
    let visit = Rc::new(Visit {
        key,
        blocks: Cell::new(0),
        opened: Cell::new(ASK_AGAIN),
        leaves: Leaves::default(),
    });
    VISITS.with_borrow_mut(|visits| {
        visits.truncate(MOST - 1);
        visits.insert(0, visit.clone());
    });
    visit
}

impl Visit {
    /// Blocks in the index, about: there may be more, but never fewer.
    pub fn blocks(&self, pages: &IndexPages) -> Block {
        let opened = self.opened.get() + 1;
        if opened > ASK_AGAIN {
            self.blocks.set(pages.blocks());
            self.opened.set(0);
        } else {
            self.opened.set(opened);
        }
        self.blocks.get()
    }
}
