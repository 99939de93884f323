//! Hash functions of any scheme of MinHash signatures, and the builder of signatures. Each position
//! of a signature has a hash function, and holds the minimum of this function over all features of
//! a set.

use sha1::{Digest, Sha1};

use super::datasketch::{DatasketchFamily, Version};
use super::{LinearFamily, Scheme};
use crate::hash::feature_hash;

/// Hash functions for MinHash signatures of one scheme, length and seed.
///
/// ```
/// use neardup_sketch::minhash::{HashFamily, Scheme, matches};
///
/// let family = HashFamily::new(Scheme::Neardup1, 128, 0)?;
/// let a = family.signature([&b"quick"[..], b"brown", b"fox"]).unwrap();
/// let b = family.signature([&b"fox"[..], b"brown", b"quick", b"quick"]).unwrap();
/// assert_eq!(matches(&a, &b), 128);
/// # Ok::<(), neardup_sketch::minhash::SeedOutOfRange>(())
/// ```
#[derive(Clone, Debug)]
pub struct HashFamily {
    scheme: Scheme,
    seed: u64,
    kind: FamilyKind,
}

#[derive(Clone, Debug)]
enum FamilyKind {
    Linear(LinearFamily),
    Datasketch(DatasketchFamily),
}

/// Error of [`HashFamily::new`]: the scheme does not support this seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedOutOfRange;

impl HashFamily {
    /// Creates `hashes` hash functions of a scheme from a seed.
    ///
    /// # Errors
    ///
    /// If the seed is 2^32 or more and the scheme is a datasketch scheme, which has 32-bit seeds.
    pub fn new(scheme: Scheme, hashes: usize, seed: u64) -> Result<Self, SeedOutOfRange> {
        let datasketch = |version| {
            let seed = u32::try_from(seed).map_err(|_| SeedOutOfRange)?;
            let family = DatasketchFamily::new(version, hashes, seed);
            Ok(FamilyKind::Datasketch(family))
        };
        let kind = match scheme {
            Scheme::Neardup1 => FamilyKind::Linear(LinearFamily::new(hashes, seed)),
            Scheme::Datasketch1 => datasketch(Version::One)?,
            Scheme::Datasketch2 => datasketch(Version::Two)?,
        };
        Ok(HashFamily { scheme, seed, kind })
    }

    /// Returns the scheme of the hash functions.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the seed of the hash functions.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of hash functions, which is the length of signatures.
    #[must_use]
    pub fn hashes(&self) -> usize {
        match &self.kind {
            FamilyKind::Linear(family) => family.hashes(),
            FamilyKind::Datasketch(family) => family.hashes(),
        }
    }

    /// Returns the hash functions of the scheme `neardup1`, or `None` for another scheme.
    pub(super) fn linear(&self) -> Option<&LinearFamily> {
        match &self.kind {
            FamilyKind::Linear(family) => Some(family),
            FamilyKind::Datasketch(_) => None,
        }
    }

    /// Returns the signature of a set of features, given in any order and any number of times, or
    /// `None` if there are no features.
    pub fn signature<'a>(&self, features: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u32>> {
        let mut builder = SignatureBuilder::default();
        builder.reset(self);
        (features.into_iter()).for_each(|feature| builder.add(self, feature));
        builder.finish(self).map(<[u32]>::to_vec)
    }

    /// Adds one feature, given by its bytes, to `signature`, which must have [`HashFamily::hashes`]
    /// positions. Before the first feature is added, each position must be `u32::MAX`.
    pub fn add(&self, signature: &mut [u32], feature: &[u8]) {
        match &self.kind {
            FamilyKind::Linear(family) => family.add(signature, feature_hash(feature)),
            FamilyKind::Datasketch(family) => family.add(signature, sha1_32(feature)),
        }
    }
}

/// Returns the first four bytes of the SHA-1 of a feature, little-endian.
fn sha1_32(feature: &[u8]) -> u32 {
    let digest = Sha1::digest(feature);
    u32::from_le_bytes(*digest.first_chunk().expect("20 bytes"))
}

/// Number of feature hashes that are collected before all of them are added to the minima.
const BATCH: usize = 256;

/// Builds the signature of features that are added one by one. Keeps its memory between signatures.
#[derive(Clone, Debug, Default)]
pub struct SignatureBuilder {
    /// For each hash function, the minimum of its values for the features so far.
    minima: Vec<u32>,
    /// Hashes of features that are not in `minima` yet. Empty for the schemes of datasketch.
    batch: Vec<u64>,
    /// True if a feature was added since the last reset.
    any: bool,
}

impl SignatureBuilder {
    /// Forgets all features, and prepares for a signature with the hash functions of `family`.
    pub fn reset(&mut self, family: &HashFamily) {
        let len = match &family.kind {
            FamilyKind::Linear(family) => family.padded_len(),
            FamilyKind::Datasketch(family) => family.hashes(),
        };
        self.minima.clear();
        self.minima.resize(len, u32::MAX);
        self.batch.clear();
        self.batch.reserve(BATCH);
        self.any = false;
    }

    /// Adds a feature, given by its bytes. `family` must be the family of the last call of
    /// [`SignatureBuilder::reset`].
    pub fn add(&mut self, family: &HashFamily, feature: &[u8]) {
        match &family.kind {
            FamilyKind::Linear(family) => self.add_linear(family, feature),
            FamilyKind::Datasketch(family) => {
                family.add(&mut self.minima, sha1_32(feature));
                self.any = true;
            }
        }
    }

    /// Adds a feature, given by its bytes, to a signature of the scheme `neardup1`.
    #[inline(always)]
    pub(super) fn add_linear(&mut self, family: &LinearFamily, feature: &[u8]) {
        if self.batch.len() == BATCH {
            self.add_batch(family);
        }
        self.batch.push(feature_hash(feature));
    }

    /// Adds the features of the batch to the minima.
    fn add_batch(&mut self, family: &LinearFamily) {
        self.any |= !self.batch.is_empty();
        family.fold(&mut self.minima, &self.batch);
        self.batch.clear();
    }

    /// Returns the signature of all added features, or `None` if there are none. `family` must be
    /// the family of the last call of [`SignatureBuilder::reset`].
    pub fn finish(&mut self, family: &HashFamily) -> Option<&[u32]> {
        if let FamilyKind::Linear(family) = &family.kind {
            self.add_batch(family);
        }
        self.any.then_some(&self.minima[..family.hashes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_by_one_is_as_all_at_once() {
        let features = [&b"a b c"[..], b"b c d", b"c d e", b"b c d"];
        for scheme in Scheme::ALL {
            let family = HashFamily::new(scheme, 100, 3).unwrap();
            let mut signature = vec![u32::MAX; 100];
            features
                .iter()
                .for_each(|feature| family.add(&mut signature, feature));
            assert_eq!(family.signature(features), Some(signature));
            assert_eq!(family.signature([]), None);
        }
    }

    /// Signatures that `MinHash(6, 1)` of datasketch 2.0.0 gives, for both schemes of the package.
    #[test]
    fn equals_datasketch() {
        let features = [&b"a"[..], b"b", b"the quick"];
        let of = |scheme| {
            HashFamily::new(scheme, 6, 1)
                .unwrap()
                .signature(features)
                .unwrap()
        };
        assert_eq!(
            of(Scheme::Datasketch1),
            [
                297_616_339,
                739_114_274,
                791_274_033,
                1_494_438_641,
                175_067_588,
                113_437_101
            ]
        );
        assert_eq!(
            of(Scheme::Datasketch2),
            [
                996_004_246,
                1_572_361_674,
                878_842_415,
                58_171_345,
                439_027_376,
                86_326_305
            ]
        );
    }

    /// Examples published with SHA-1 (FIPS 180), and the hash of the empty text.
    #[test]
    fn published_sha1() {
        assert_eq!(sha1_32(b""), 0xeea3_39da);
        assert_eq!(sha1_32(b"abc"), 0x363e_99a9);
        assert_eq!(sha1_32(&[b'a'; 1_000_000]), 0x3c97_aa34);
    }

    #[test]
    fn seeds_of_datasketch_have_32_bits() {
        assert!(HashFamily::new(Scheme::Datasketch1, 16, 1 << 32).is_err());
        assert!(HashFamily::new(Scheme::Datasketch2, 16, u64::MAX).is_err());
        assert!(HashFamily::new(Scheme::Neardup1, 16, u64::MAX).is_ok());
    }
}
