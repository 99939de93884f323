//! The search that a scan drives, for both kinds of indexes.
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use crate::storage::pages::IndexPages;

/// A search between its calls, for whatever width of keys. It holds no lock. MVCC keeps rows that
/// it may return from being replaced by others that its snapshot could see; so it holds no pin
/// either, unless the rows themselves will not be looked at ([`IndexPages::keep_leaf_pinned`]).
pub trait Search {
    /// Begins again and says whether rows are to be rechecked. With `index_only` each step must
    /// keep the pin of the leaf of the rows that it gives last ([`PageStore::unlock_keep_pin`]),
    /// after it has found them there.
    ///
    /// [`PageStore::unlock_keep_pin`]: neardup_blocktree::store::PageStore::unlock_keep_pin
    ///
    /// # Safety
    /// The keys are for operators of the operator classes of the index.
    unsafe fn rescan(
        &mut self,
        keys: &[pg_sys::ScanKeyData],
        order_bys: &[pg_sys::ScanKeyData],
        index_only: bool,
    ) -> bool;

    /// Puts what comes next, perhaps nothing, into an empty list. False: there is no more.
    fn step(&mut self, tids: &mut Vec<Tid>) -> bool;

    /// The index's last column for a row of the last step; `None` if it is NULL, or cannot be told.
    /// It may point into memory that the next step reuses.
    fn value(&self, row: usize) -> Option<pg_sys::Datum>;

    /// The pages that it reads.
    fn pages(&self) -> &IndexPages<'_>;
}
