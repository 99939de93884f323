//! Cache of the indexes that the current transaction opens again and again. Constraints and
//! triggers open an index for each row. For each index the cache keeps its size, the leaf of the
//! most recent key in each permutation (ordered copy of all keys), copies of inner pages, and the
//! state of the last scan for the next scan.
//!
//! docs/dev/locking.md, "Remembered leaves", explains why keeping these data is safe.
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use neardup_blocktree::key::Block;
use neardup_blocktree::leaf_cache::LeafCache;
use pgrx::pg_sys;

use neardup_pg::rel::Rel;
use neardup_pg::scan_desc::StateCache;
use neardup_pg::storage::pages::IndexPages;
use neardup_pg::{compat, server};

/// Maximum number of indexes in the cache, enough for the indexes of one or two tables. If a
/// further index is opened, its entry replaces another one, but never the entry that was used last.
const MAX_ENTRIES: usize = 8;
/// Number of times that an index is opened before its size is read again.
const OPENS_PER_SIZE_CHECK: u32 = 32;

/// Key of a cache entry. The cache entry is valid for one subtransaction, and as long as the
/// relation cache keeps its own entry of the index.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// Serial number of the index's relation cache entry: see [`next_serial`].
    entry: u64,
    /// Local number of the transaction.
    transaction: u32,
    /// Number of the subtransaction. The cache entry relies on a lock, which is released if the
    /// subtransaction is rolled back.
    subtransaction: u32,
}

/// Cache entry of one index. While it is valid, the transaction holds a lock that prevents VACUUM
/// from moving pages and from truncating the index.
pub struct IndexCache {
    /// Subtransaction and relation cache entry for which this cache entry is valid.
    key: Key,
    /// Number of blocks in the index when it was last read.
    blocks: Cell<Block>,
    /// Number of times that the index has been opened since `blocks` was read.
    opened: Cell<u32>,
    /// For each permutation, the leaf on which the most recent key was found or added. Also has
    /// copies of inner pages.
    pub leaves: LeafCache,
    /// State of a finished scan, until the next scan takes it.
    pub state_cache: Rc<StateCache>,
}

thread_local! {
    /// Last serial number that [`next_serial`] has returned.
    static SERIAL: Cell<u64> = const { Cell::new(0) };
    /// Cache entries of this backend, the most recently used one first.
    static CACHES: RefCell<Vec<Rc<IndexCache>>> = const { RefCell::new(Vec::new()) };
}

/// Returns a new serial number for the relation cache entry of an index. The server drops that
/// entry whenever the index may have been rebuilt, and the next entry gets another number.
pub fn next_serial() -> u64 {
    SERIAL.with(|serial| {
        serial.set(serial.get() + 1);
        serial.get()
    })
}

/// Returns the cache entry of an index for the current subtransaction, and makes it if there is
/// none. `entry` is the serial number of the index's relation cache entry.
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
    // The executor releases the lock of an INSERT on its indexes when the statement ends. So this
    // takes a further lock, which lasts as long as the cache entry is valid. It is the lock that
    // any query takes, and the transaction already holds a lock on the index, so this call does not
    // wait.
    server::lock_for_transaction(index.oid(), pg_sys::AccessShareLock as pg_sys::LOCKMODE);
    let cache = Rc::new(IndexCache {
        key,
        blocks: Cell::new(0),
        opened: Cell::new(OPENS_PER_SIZE_CHECK),
        leaves: match index.is_for_exclusion() {
            true => LeafCache::for_constraint(),
            false => LeafCache::default(),
        },
        state_cache: Rc::default(),
    });
    let superseded = CACHES.with_borrow_mut(|caches| {
        let is_over = |cache: &mut Rc<IndexCache>| cache.key.transaction != key.transaction;
        let mut superseded: Vec<_> = caches.extract_if(.., is_over).collect();
        superseded.extend(caches.split_off(caches.len().min(MAX_ENTRIES - 1)));
        caches.insert(0, cache.clone());
        superseded
    });
    superseded
        .iter()
        .for_each(|cache| cache.state_cache.close());
    cache
}

impl IndexCache {
    /// Returns the number of blocks in the index. Most calls return the number that an earlier call
    /// has read from `pages`. The index may have grown since then, but not shrunk. After
    /// `OPENS_PER_SIZE_CHECK` calls, the number is read again.
    pub fn blocks(&self, pages: &IndexPages<'_>) -> Block {
        let opened = self.opened.get() + 1;
        if opened > OPENS_PER_SIZE_CHECK {
            self.blocks.set(pages.blocks());
            self.opened.set(0);
        } else {
            self.opened.set(opened);
        }
        self.blocks.get()
    }
}
