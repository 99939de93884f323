//! MinHash: signatures of sets. The share of equal positions estimates the Jaccard similarity.
//!
//! Position i of a signature is the minimum of the i-th hash function over all features of a
//! set (Broder, "On the resemblance and containment of documents", SEQUENCES 1997). Two sets agree
//! in a position with the probability |A ∩ B| / |A ∪ B|.
//!
//! | module | content |
//! |---|---|
//! | `hash_family` | hash functions of any scheme, builder of signatures |
//! | `linear` | hash functions of the scheme `neardup1` |
//! | [`datasketch`] | hash functions of the Python package datasketch |
//! | `hash_family_cache` | cache of hash families |
//! | `kernel` | vector code: minima of many features, number of equal positions |
//! | `text` | signature of a text: [`crate::Sketcher::signature`] |
//!
//! Users store signatures, so the signature of a set never changes.

use crate::options::NamedOption;

pub mod datasketch;
mod hash_family;
mod hash_family_cache;
mod kernel;
mod linear;
mod text;

pub use hash_family::{HashFamily, SeedOutOfRange, SignatureBuilder};
pub use hash_family_cache::HashFamilyCache;
pub use linear::LinearFamily;

/// Minimum number of positions of a signature. Each position has a hash function. The SQL functions
/// reject shorter signatures.
pub const MIN_HASHES: usize = 16;
/// Maximum number of positions of a signature. Each position has a hash function. The SQL functions
/// reject longer signatures.
pub const MAX_HASHES: usize = 1024;

/// Scheme of MinHash signatures: the hash function of features, and the family of functions whose
/// minima form the signature. Signatures of different schemes cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Scheme of neardup: linear functions of XXH3 hashes.
    Neardup1,
    /// Scheme of the Python package datasketch before version 2.0.0. Later versions call it
    /// "legacy".
    Datasketch1,
    /// Scheme of the Python package datasketch since version 2.0.0, called "affine32".
    Datasketch2,
}

impl Scheme {
    /// All schemes, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::Neardup1, Self::Datasketch1, Self::Datasketch2];

    /// Returns the code of the scheme in stored signatures.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Neardup1 => 1,
            Self::Datasketch1 => 2,
            Self::Datasketch2 => 3,
        }
    }

    /// Returns the scheme with this code in stored signatures, or `None` if the code is unknown.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.code() == code)
    }
}

impl NamedOption for Scheme {
    const PARAMETER: &str = "scheme";
    const NAMES: &[(&str, Self)] = &[
        ("neardup1", Self::Neardup1),
        ("datasketch1", Self::Datasketch1),
        ("datasketch2", Self::Datasketch2),
    ];
}

/// Returns the number of positions in which two signatures of equal length agree.
#[must_use]
pub fn matches(a: &[u32], b: &[u32]) -> usize {
    kernel::matches(a, b)
}

/// Changes `into` from the signature of one set to the signature of the union of two sets. `other`
/// is the signature of the second set. Both signatures must have the same scheme, length and seed.
pub fn merge(into: &mut [u32], other: &[u32]) {
    for (least, &other) in into.iter_mut().zip(other) {
        *least = other.min(*least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_and_names_are_those_of_stored_signatures() {
        let all = Scheme::ALL.map(|scheme| (scheme.code(), scheme.name()));
        assert_eq!(
            all,
            [(1, "neardup1"), (2, "datasketch1"), (3, "datasketch2")]
        );
        assert!(
            Scheme::ALL
                .iter()
                .all(|&scheme| Scheme::from_code(scheme.code()) == Some(scheme))
        );
        assert_eq!(Scheme::from_code(0), None);
    }

    proptest! {
        #[test]
        fn matches_are_counted(
            a in prop::collection::vec(0_u32..4, 0..300),
            by in any::<prop::sample::Index>(),
        ) {
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
            let family = LinearFamily::new(100, 7);
            let mut merged = family.signature(&a).unwrap();
            merge(&mut merged, &family.signature(&b).unwrap());
            prop_assert_eq!(Some(merged), family.signature(&[a, b].concat()));
        }
    }
}
