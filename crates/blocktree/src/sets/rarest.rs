//! Choice of the element by which a search finds the rows whose sets contain all wanted elements.
//! An index has an entry for each element of each set. If keys have a scope (columns that must be
//! equal in two near-duplicates), each entry also has a hash of its row's scope.

use super::{ELEMENT_PERMUTATION, WORDS, key};
use crate::filter;
use crate::key::EntryKey;
use crate::leaf::Leaf;
use crate::page::Result;
use crate::store::{PrefetchPages, ReadPages};
use crate::tree::Tree;

/// Maximum number of elements whose entries are counted. Further elements are ignored, because
/// counting the entries of an element takes a descent from the root.
pub const MAX_COMPARED_ELEMENTS: usize = 16;

/// Returns the element with the fewest entries, among the first [`MAX_COMPARED_ELEMENTS`] of
/// `elements`. `elements` must not be empty. A search for the returned element finds all rows whose
/// sets contain all elements. `scope` is the scope in which entries are counted, or `None` if keys
/// have no scope.
///
/// The function counts entries on one leaf for each element. It stops at the first element without
/// entries and returns it. If the entries of every compared element continue on a second leaf, it
/// returns the smallest of these elements.
pub fn rarest<S: ReadPages + PrefetchPages, const N: usize>(
    tree: &Tree<'_, S, N>,
    elements: &[u64],
    scope: Option<u64>,
) -> Result<u64> {
    let mut rarest = (usize::MAX, elements[0]);
    let mut slots = Vec::new();
    for &element in elements.iter().take(MAX_COMPARED_ELEMENTS) {
        let count = entries_on_first_leaf(tree, element, scope, &mut slots)?;
        rarest = rarest.min((count, element));
        if count == 0 {
            break;
        }
    }
    Ok(rarest.1)
}

/// Counts the entries of `element` on the first leaf that may contain them. Returns `usize::MAX` if
/// the next leaf may contain further entries of `element`. `scope` is as for [`rarest`]. `slots` is
/// a buffer, whose content is replaced by the indexes of the counted entries on the leaf.
fn entries_on_first_leaf<S: ReadPages + PrefetchPages, const N: usize>(
    tree: &Tree<'_, S, N>,
    element: u64,
    scope: Option<u64>,
    slots: &mut Vec<u16>,
) -> Result<usize> {
    let from = EntryKey::before_key(ELEMENT_PERMUTATION, key(element, scope));
    let leaf: Leaf<_, N> = tree.find(&from, 0, None, |block| tree.store.read(block))?;
    slots.clear();
    filter::leaf_with_prefix(&leaf.keys(), N - WORDS, element, 64, slots);
    slots.retain(|&slot| {
        let entry_key = leaf.entry_key(usize::from(slot));
        entry_key.permutation == ELEMENT_PERMUTATION
            && scope.is_none_or(|scope| entry_key.key[0] == scope)
    });
    let continues = (leaf.right_sibling())
        .is_some_and(|(high, _)| high.permutation == ELEMENT_PERMUTATION && high.key == from.key);
    tree.store.unlock_keep_pin(leaf.page);
    Ok(if continues { usize::MAX } else { slots.len() })
}
