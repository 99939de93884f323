//! Cache of the indexes that the current transaction opens for each row. Constraints and triggers
//! start a scan per row. The cache keeps the size of the index, the leaves of the last keys,
//! copies of inner pages and the state of the last scan for the next one.
//!
//! docs/dev/locking.md, "Remembered leaves", explains why that is safe.
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use neardup_blocktree::key::Block;
use neardup_blocktree::leaf_cache::LeafCache;
use pgrx::pg_sys;

use neardup_pg::rel::Rel;
use neardup_pg::scan_desc::Rest;
use neardup_pg::storage::pages::IndexPages;
use neardup_pg::{compat, server};

/// Maximum number of entries: the indexes of a table or two.
const MOST: usize = 8;
/// Number of times an index is opened before its size is read again.
const ASK_AGAIN: u32 = 32;

/// Key of an entry: a relation cache entry of an index, and a subtransaction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// Serial number of the relation cache entry: see [`next_serial`].
    entry: u64,
    transaction: u32,
    /// Its rollback releases its locks.
    subtransaction: u32,
}

/// Cache entry. While it is valid, the transaction holds a lock that prevents VACUUM from moving
/// pages and from truncating the index.
pub struct IndexCache {
    key: Key,
    /// Blocks in the index at the last check, and the number of times it has been opened since.
    blocks: Cell<Block>,
    opened: Cell<u32>,
    /// Leaves of the last keys.
    pub leaves: LeafCache,
    /// State of a finished scan, for the next scan.
    pub rest: Rc<Rest>,
}

thread_local! {
    static SERIAL: Cell<u64> = const { Cell::new(0) };
    /// Most recently used first.
    static CACHES: RefCell<Vec<Rc<IndexCache>>> = const { RefCell::new(Vec::new()) };
}

/// Returns a serial number for a new relation cache entry. The server drops the entry whenever the
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
        let position = caches.iter().position(|cache| cache.key == key)?;
        caches.swap(0, position);
        Some(caches[0].clone())
    });
    if let Some(cache) = known {
        return cache;
    }
    // The executor releases the lock of an INSERT when the statement ends. This lock, the one that
    // any query takes, lasts as long as the key is valid. The transaction already holds a lock on
    // the index, so this call does not wait.
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
    /// Returns the number of blocks in the index when it was last checked. The index may have
    /// grown since, but not shrunk.
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
