//! Cache of the indexes that the current transaction has opened row by row. Constraints and
//! triggers open a scan for each row; the size of the index, the leaves of the last keys, copies of
//! inner pages and the state of a scan that has ended are kept from one to the next.
//!
//! docs/dev/locking.md, "Remembered leaves", says why that is safe.
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use neardup_blocktree::key::Block;
use neardup_blocktree::leaf_cache::LeafCache;
use pgrx::pg_sys;

use neardup_pg::rel::Rel;
use neardup_pg::scan_desc::Rest;
use neardup_pg::storage::pages::IndexPages;
use neardup_pg::{compat, server};

/// Entries kept: the indexes of a table or two.
const MOST: usize = 8;
/// Times that an index is opened before its size is asked for again.
const ASK_AGAIN: u32 = 32;

/// Identity of an entry: an index as the relation cache has it, in one subtransaction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// The entry in the relation cache: see [`next_serial`].
    entry: u64,
    transaction: u32,
    /// If this one is rolled back, its locks are gone.
    subtransaction: u32,
}

/// Entry of the cache. While it is valid the transaction holds a lock that keeps VACUUM from moving
/// pages and from cutting off the end of the index.
pub struct IndexCache {
    key: Key,
    /// Blocks in the index, when it was asked last, and how many times it has been opened since.
    blocks: Cell<Block>,
    opened: Cell<u32>,
    /// Leaves of the last keys.
    pub leaves: LeafCache,
    /// Where the state of a scan rests until the next one.
    pub rest: Rc<Rest>,
}

thread_local! {
    static SERIAL: Cell<u64> = const { Cell::new(0) };
    /// The last one first.
    static CACHES: RefCell<Vec<Rc<IndexCache>>> = const { RefCell::new(Vec::new()) };
}

/// A number for what has just been put into the relation cache. The server drops that whenever the
/// index may have been rebuilt.
pub fn next_serial() -> u64 {
    SERIAL.with(|serial| {
        serial.set(serial.get() + 1);
        serial.get()
    })
}

/// Returns the transaction's entry for an index with this number in the relation cache.
pub fn cache_of(index: Rel, entry: u64) -> Rc<IndexCache> {
    let key = Key {
        entry,
        transaction: compat::local_transaction(),
        subtransaction: server::subtransaction(),
    };
    let known = CACHES.with_borrow_mut(|caches| {
        let place = caches.iter().position(|cache| cache.key == key)?;
        caches.swap(0, place);
        Some(caches[0].clone())
    });
    if let Some(cache) = known {
        return cache;
    }
    // The executor lets go of what an INSERT has locked when the statement ends. This lock stays as
    // long as the key is valid; it is one that any query takes. The index is locked in some mode,
    // so that this waits for nobody.
    server::lock_for_transaction(index.oid(), pg_sys::AccessShareLock as pg_sys::LOCKMODE);
    let cache = Rc::new(IndexCache {
        key,
        blocks: Cell::new(0),
        opened: Cell::new(ASK_AGAIN),
        leaves: match index.is_for_exclusion() {
            true => LeafCache::for_constraint(),
            false => LeafCache::default(),
        },
        rest: Rc::default(),
    });
    let superseded = CACHES.with_borrow_mut(|caches| {
        let is_over = |cache: &mut Rc<IndexCache>| cache.key.transaction != key.transaction;
        let mut superseded: Vec<_> = caches.extract_if(.., is_over).collect();
        superseded.extend(caches.split_off(caches.len().min(MOST - 1)));
        caches.insert(0, cache.clone());
        superseded
    });
    superseded.iter().for_each(|cache| cache.rest.close());
    cache
}

impl IndexCache {
    /// Blocks in the index, about: there may be more, but never fewer.
    pub fn blocks(&self, pages: &IndexPages<'_>) -> Block {
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
