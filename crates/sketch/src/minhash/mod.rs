//! MinHash: signatures whose share of equal positions estimates the Jaccard similarity of two sets.
//!
//! Position i of a signature is the least value of the i-th hash function over all features of a
//! set (Broder, "On the resemblance and containment of documents", SEQUENCES 1997). Two sets agree
//! in a position with the probability |A ∩ B| / |A ∪ B|.
//!
//! | step | module |
//! |---|---|
//! | the hash functions | [`family`] |
//! | least values of many features at once | `kernel` |
//! | from a text | `text` |
//! | signatures as datasketch makes them | [`datasketch`] |
//!
//! Signatures are stored, so like fingerprints they never change for equal input.

pub mod datasketch;
pub mod family;
mod kernel;
mod text;

pub use family::{Family, Minima};
pub use text::minhash_text;

/// The fewest positions of a signature.
pub const MIN_HASHES: usize = 16;
/// The most positions of a signature.
pub const MAX_HASHES: usize = 1024;

/// The number of positions in which two signatures of one length agree.
#[must_use]
pub fn matches(a: &[u32], b: &[u32]) -> usize {
    kernel::matches(a, b)
}

/// The signature of the union of two sets, into the first one's signature.
pub fn merge(into: &mut [u32], other: &[u32]) {
    for (least, &other) in into.iter_mut().zip(other) {
        *least = other.min(*least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn matches_are_counted(a in prop::collection::vec(0_u32..4, 0..300), by in any::<prop::sample::Index>()) {
            let mut b = a.clone();
            if !b.is_empty() {
                b.rotate_left(by.index(a.len()));
            }
            let expected = a.iter().zip(&b).filter(|(a, b)| a == b).count();
            prop_assert_eq!(matches(&a, &b), expected);
            prop_assert_eq!(matches(&a, &a), a.len());
        }

        #[test]
        fn a_union_has_the_least_of_both(
            a in prop::collection::vec(any::<u64>(), 1..50),
            b in prop::collection::vec(any::<u64>(), 1..50),
        ) {
            let family = Family::new(100, 7);
            let mut merged = family.signature(&a).unwrap();
            merge(&mut merged, &family.signature(&b).unwrap());
            prop_assert_eq!(Some(merged), family.signature(&[a, b].concat()));
        }
    }
}
