//! Sets of 64-bit numbers: keys by which an index finds all rows whose sets have an element in
//! common with a query. The sum of a set is the sum of hashes of its elements. A permutation is an
//! ordered sequence of keys. If keys have a scope (columns that must be equal in two
//! near-duplicates), their first word is a hash of the scope.
//!
//! The index has two permutations (ordered sequences of keys). In the row permutation, each row
//! with a set has one entry, under a sum of hashes of its elements. It serves scans of all rows and
//! searches for equal sets. In the element permutation, a row has one entry for each element of its
//! set, under the element itself. An element is not hashed, so a search for elements finds only
//! matches and needs no recheck.

mod rarest;
mod scan;

pub use rarest::{MAX_COMPARED_ELEMENTS, rarest};
pub use scan::{SetQuery, SetScan};

use crate::key::{Key, SET_KEY_WORDS, mix};

/// Number of words of a key, not counting the scope's word.
pub const WORDS: usize = SET_KEY_WORDS;
/// Number of bits of an element.
pub const BITS: u32 = 64;
/// Number of permutations of an index on sets: one with an entry for each row, then one with an
/// entry for each element.
pub const PERMUTATIONS: usize = 2;
/// Number of the permutation that has one entry for each row. The key of the entry is the sum of
/// the row's set.
pub const ROW_PERMUTATION: u16 = 0;
/// Number of the permutation that has one entry for each element of each row. The key of the entry
/// is the element.
pub const ELEMENT_PERMUTATION: u16 = 1;

/// Returns the hash of an element, by which it contributes to the [`sum`] of a set. It is never 0.
fn element_hash(element: u64) -> u64 {
    mix(element.wrapping_add(0x9e37_79b9_7f4a_7c15)) | 1
}

/// Returns the sum of the hashes of a set's elements, by which equal sets are found. `elements` has
/// each element once, in any order. The sum is 0 for the empty set. Two different sets have the
/// same sum only by an unlikely collision of hashes.
///
/// ```
/// use neardup_blocktree::sets::sum;
///
/// assert_eq!(sum([3, 0, 5]), sum([5, 3, 0]));
/// assert_ne!(sum([3, 0, 5]), sum([3, 5]));
/// assert_eq!(sum([]), 0);
/// ```
pub fn sum(elements: impl IntoIterator<Item = u64>) -> u64 {
    (elements.into_iter()).fold(0, |sum, element| sum.wrapping_add(element_hash(element)))
}

/// Returns the contribution of an index entry with the key `key` to the [`sum`] of its row's set.
/// In the row permutation, that is the whole sum. In the element permutation, it is the hash of one
/// element. So the entries of both permutations can be checked against each other.
pub fn sum_contribution<const N: usize>(permutation: u16, key: &Key<N>) -> u64 {
    match permutation {
        ROW_PERMUTATION => number(key),
        _ => element_hash(number(key)),
    }
}

/// Returns the index key for `number`, which is an element of a set or the sum of its elements.
/// `scope` is the scope's word in the key, or `None` if keys have no scope.
pub fn key<const N: usize>(number: u64, scope: Option<u64>) -> Key<N> {
    let mut key = [0; N];
    if let Some(scope) = scope {
        key[0] = scope;
    }
    key[N - WORDS] = number;
    key
}

/// Returns the element or the sum in an index key.
pub fn number<const N: usize>(key: &Key<N>) -> u64 {
    key[N - WORDS]
}
