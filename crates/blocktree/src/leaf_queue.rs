//! Queue of the leaves that a search reads next. Leaves are in the order of entry keys. An entry
//! key consists of a permutation (ordered copy of all keys in the index), a key and a row address.
//!
//! A search for several neighbouring prefixes reads many leaves of a permutation that are not
//! adjacent. One inner page has links to many of these leaves. So one descent to that page fills a
//! queue of leaves, and the processor fetches the next leaves from memory while the search filters
//! one.

use crate::inner::Inner;
use crate::key::{Block, EntryKey};
use crate::page::Result;
use crate::store::ReadPages;
use crate::tree::Tree;

/// Maximum number of leaves in a [`LeafQueue`]. When a search has taken all leaves of the queue, it
/// fills the queue again.
const LEAVES: usize = 16;

/// Queue of the leaves that a search reads next, in ascending order of entry keys. Leaves may be
/// split, merged or reused before the search reads them. So the search reads them by
/// [`Tree::find`], which checks each leaf and finds the right one if the queue is outdated.
#[derive(Debug, Default)]
pub(crate) struct LeafQueue<const N: usize> {
    /// For each leaf, the lowest entry key that is wanted on it, and the leaf's block.
    leaves: Vec<(EntryKey<N>, Block)>,
    /// Index in `leaves` of the first leaf that has not been taken.
    next: usize,
}

impl<const N: usize> LeafQueue<N> {
    /// Removes all leaves from the queue.
    pub(crate) fn clear(&mut self) {
        self.leaves.clear();
        self.next = 0;
    }

    /// Returns whether all leaves have been taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.leaves.len()
    }

    /// Returns the leaf whose lowest wanted entry key is `wanted`. Removes this leaf and the leaves
    /// before it from the queue. `None` if the queue does not have the leaf.
    pub(crate) fn take(&mut self, wanted: &EntryKey<N>) -> Option<Block> {
        while let Some((first, leaf)) = self.leaves.get(self.next) {
            if first > wanted {
                break;
            }
            self.next += 1;
            if first == wanted {
                return Some(*leaf);
            }
        }
        None
    }

    /// Returns the leaves that have not been taken, in ascending order of entry keys. For each
    /// leaf, returns the lowest entry key that is wanted on it, and the leaf's block.
    pub(crate) fn rest(&self) -> &[(EntryKey<N>, Block)] {
        &self.leaves[self.next..]
    }
}

impl<S: ReadPages, const N: usize> Tree<'_, S, N> {
    /// Fills a queue with the leaves that a search reads next: at most [`LEAVES`] leaves, all of
    /// them children of one inner page. The first leaf covers the entry key `wanted`. The function
    /// then calls `next` with the entry key at which this leaf ends, and `next` returns the lowest
    /// entry key from there on that the search wants. The leaf that covers the returned entry key
    /// is the second leaf, and so on. `next` returns `None` if the search wants no more entries.
    pub(crate) fn find_ahead(
        &self,
        queue: &mut LeafQueue<N>,
        mut wanted: EntryKey<N>,
        next: impl Fn(&EntryKey<N>) -> Option<EntryKey<N>>,
    ) -> Result<()> {
        queue.clear();
        let page: Inner<_, N> =
            self.find(&wanted, 1, None, |block| self.store.read_inner(block))?;
        let mut at = page.search(&wanted);
        loop {
            queue.leaves.push((wanted, page.child(at)));
            if queue.leaves.len() == LEAVES || at + 1 == page.count() {
                break;
            }
            match next(&page.separator(at + 1)) {
                Some(following) if !page.is_left_of(&following) => wanted = following,
                _ => break,
            }
            at = page.search_from(at + 1, &wanted);
        }
        Ok(())
    }
}
