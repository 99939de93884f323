//! Queue of the leaves that a search reads next.
//!
//! A search of neighbouring prefixes reads many leaves of a permutation that do not stand side by
//! side. The inner page above them knows them all, so that one descent finds a queue of them, and
//! the machine fetches the next ones from memory while one is filtered.

use crate::inner::Inner;
use crate::key::{Block, EntryKey};
use crate::page::Result;
use crate::store::ReadPages;
use crate::tree::Tree;

/// Leaves that are found together.
const LEAVES: usize = 16;

/// Leaves that a search reads next, each with the first entry key that is wanted of it, in
/// ascending order. They may be split, merged or used again before they are read: that shows when
/// they are, as with any link that was read earlier ([`Tree::find`]).
#[derive(Debug, Default)]
pub(crate) struct LeafQueue<const N: usize> {
    leaves: Vec<(EntryKey<N>, Block)>,
    /// The first of them that has not been read.
    next: usize,
}

impl<const N: usize> LeafQueue<N> {
    /// Drops all leaves.
    pub(crate) fn clear(&mut self) {
        self.leaves.clear();
        self.next = 0;
    }

    /// Returns whether no leaf is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.leaves.len()
    }

    /// Takes the leaf that was found for an entry key, if there is one, and drops those before it.
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

    /// The leaves in the queue.
    pub(crate) fn rest(&self) -> impl Iterator<Item = Block> {
        self.leaves[self.next..].iter().map(|(_, leaf)| *leaf)
    }
}

impl<S: ReadPages, const N: usize> Tree<'_, S, N> {
    /// Finds leaves for a queue, as far as one inner page leads to them: that of `wanted`, and then
    /// those of what `next` returns, which is given the entry key at which a leaf ends and returns
    /// the first one from there on that is wanted.
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
