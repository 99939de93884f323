//! Sets of numbers: how they are indexed, so that all which have a number in common with a query
//! are found.
//!
//! The index has two permutations. In the first, each row with a set stands once, under a sum of
//! its elements: rows are counted and read there, and equal sets are found. In the second it stands
//! once for each element, under the element itself. Numbers are taken as they are, so that what the
//! second permutation finds needs no second look.

mod rarest;
mod scan;

pub use rarest::{MAX_COMPARED_ELEMENTS, rarest};
pub use scan::{SetQuery, SetScan};

use crate::key::{Key, SET_KEY_WORDS, mix};

/// Words of a key without a scope.
pub const WORDS: usize = SET_KEY_WORDS;
/// Bits of an element.
pub const BITS: u32 = 64;
/// Number of permutations: rows, then elements.
pub const PERMUTATIONS: usize = 2;
/// The permutation with an entry for each row.
pub const ROW_PERMUTATION: u16 = 0;
/// The permutation with an entry for each element of each row.
pub const ELEMENT_PERMUTATION: u16 = 1;

/// The share of an element in the sum of its set. It is never 0.
fn share(element: u64) -> u64 {
    mix(element.wrapping_add(0x9e37_79b9_7f4a_7c15)) | 1
}

/// The sum of a set's elements, each given once: the same in whatever order they come, 0 for the
/// empty set, and the same for two different sets hardly ever.
///
/// ```
/// use neardup_blocktree::sets::sum;
///
/// assert_eq!(sum([3, 0, 5]), sum([5, 3, 0]));
/// assert_ne!(sum([3, 0, 5]), sum([3, 5]));
/// assert_eq!(sum([]), 0);
/// ```
pub fn sum(elements: impl IntoIterator<Item = u64>) -> u64 {
    (elements.into_iter()).fold(0, |sum, element| sum.wrapping_add(share(element)))
}

/// The part in the sum of a set that an entry of a permutation stands for: an element's share, or,
/// in the permutation of the rows, all of it.
pub fn share_of<const N: usize>(permutation: u16, key: &Key<N>) -> u64 {
    match permutation {
        ROW_PERMUTATION => number(key),
        _ => share(number(key)),
    }
}

/// The key of a number, an element or a sum, in a scope where keys have one.
pub fn key<const N: usize>(number: u64, scope: Option<u64>) -> Key<N> {
    let mut key = [0; N];
    if let Some(scope) = scope {
        key[0] = scope;
    }
    key[N - WORDS] = number;
    key
}

/// The number that a key holds.
pub fn number<const N: usize>(key: &Key<N>) -> u64 {
    key[N - WORDS]
}
