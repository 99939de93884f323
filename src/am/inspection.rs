//! Access to an index and its table for the functions that inspect them.
use core::ops::Deref;

use neardup_blocktree::key::{Key, Tid};

use super::index::{Index, name, words_of};
use crate::pg::index_row;
use crate::pg::relation::LockedIndex;
use crate::pg::strategy::Strategy;
use crate::storage::pages::IndexPages;

/// The number of words of an index's keys.
pub fn key_words(relations: &LockedIndex) -> usize {
    words_of(relations.index())
}

/// The name of an index, quoted and with its schema where a statement needs that.
pub fn index_name(relations: &LockedIndex) -> String {
    name(relations.index())
}

/// An index with keys of `N` words, as long as its relation is open.
pub struct InspectedIndex<'a, const N: usize>(Index<'a, N>);

impl<'a, const N: usize> Deref for InspectedIndex<'a, N> {
    type Target = Index<'a, N>;

    fn deref(&self) -> &Index<'a, N> {
        &self.0
    }
}

impl<'a, const N: usize> InspectedIndex<'a, N> {
    /// Opens an index that is read once: its pages do not displace others from the buffer cache.
    ///
    /// # Panics
    ///
    /// If its keys do not have `N` words.
    pub fn open_for_one_pass(relations: &'a LockedIndex) -> Self {
        let index = relations.index();
        let pages = IndexPages::through(index, Strategy::for_one_pass(index));
        InspectedIndex(Index::with_pages(pages))
    }

    /// Opens an index.
    ///
    /// # Panics
    ///
    /// If its keys do not have `N` words.
    pub fn open(relations: &'a LockedIndex) -> Self {
        InspectedIndex(Index::open(relations.index()))
    }
}

/// Calls `row` for each row of the table that a new snapshot sees and that belongs into the index,
/// with the key that it has in the index; `None` for NULL.
pub fn each_visible_row<const N: usize>(
    relations: &LockedIndex,
    index: &InspectedIndex<N>,
    row: &mut dyn FnMut(Tid, Option<Key<N>>),
) {
    let mut keys = Vec::new();
    index_row::each_visible_row(relations, |visible, tid| {
        keys.clear();
        let has_value = index.metric.keys(&index.layout, &visible, &mut keys);
        let key = has_value.then(|| {
            let key = index.metric.entry_key(&index.design, &keys, 0);
            index.design.tables()[0].restore(&key)
        });
        row(tid, key);
    });
}
