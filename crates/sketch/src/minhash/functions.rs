//! The hash functions of any scheme, from the bytes of features.

use super::family::{Family, Minima};
use super::{Scheme, datasketch};
use crate::hash::feature_hash;
use crate::sha1::sha1;

/// The hash functions of signatures of one scheme, length and seed.
#[derive(Clone, Debug)]
pub struct Functions {
    scheme: Scheme,
    seed: u64,
    of: Of,
}

#[derive(Clone, Debug)]
enum Of {
    Own(Family),
    Datasketch(datasketch::Family),
}

/// A seed that the scheme has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedOutOfRange;

impl Functions {
    /// The functions of a scheme.
    ///
    /// # Errors
    ///
    /// The schemes of datasketch have seeds of 32 bits.
    pub fn new(scheme: Scheme, hashes: usize, seed: u64) -> Result<Self, SeedOutOfRange> {
        let theirs = |version| {
            let seed = u32::try_from(seed).map_err(|_| SeedOutOfRange)?;
            Ok(Of::Datasketch(datasketch::Family::new(
                version, hashes, seed,
            )))
        };
        let of = match scheme {
            Scheme::Neardup1 => Of::Own(Family::new(hashes, seed)),
            Scheme::Datasketch1 => theirs(datasketch::Version::One)?,
            Scheme::Datasketch2 => theirs(datasketch::Version::Two)?,
        };
        Ok(Functions { scheme, seed, of })
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The length of signatures.
    #[must_use]
    pub fn hashes(&self) -> usize {
        match &self.of {
            Of::Own(family) => family.hashes(),
            Of::Datasketch(family) => family.hashes(),
        }
    }

    /// The signature of features, in any order and any number of times; `None` if there are none.
    pub fn signature<'a>(&self, features: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u32>> {
        let mut making = Making::default();
        making.reset(self);
        features
            .into_iter()
            .for_each(|feature| making.add(self, feature));
        making.finish(self).map(<[u32]>::to_vec)
    }

    /// Takes one more feature into a signature. Of no features it is all ones.
    pub fn add(&self, signature: &mut [u32], feature: &[u8]) {
        match &self.of {
            Of::Own(family) => family.add(signature, feature_hash(feature)),
            Of::Datasketch(family) => family.add(signature, sha1_32(feature)),
        }
    }
}

/// The first four bytes of a feature's SHA-1, least significant first.
fn sha1_32(feature: &[u8]) -> u32 {
    let [a, b, c, d, ..] = sha1(feature);
    u32::from_le_bytes([a, b, c, d])
}

/// A signature in the making; reusable.
#[derive(Clone, Debug, Default)]
pub struct Making {
    own: Minima,
    theirs: Vec<u32>,
    any: bool,
}

impl Making {
    /// Forgets everything, for features under some functions.
    pub fn reset(&mut self, functions: &Functions) {
        match &functions.of {
            Of::Own(family) => self.own.reset(family),
            Of::Datasketch(family) => {
                self.theirs.clear();
                self.theirs.resize(family.hashes(), u32::MAX);
                self.any = false;
            }
        }
    }

    /// Adds a feature.
    pub fn add(&mut self, functions: &Functions, feature: &[u8]) {
        match &functions.of {
            Of::Own(family) => self.own.add(family, feature_hash(feature)),
            Of::Datasketch(family) => {
                family.add(&mut self.theirs, sha1_32(feature));
                self.any = true;
            }
        }
    }

    /// [`Making::add`] for functions of the own scheme; others take nothing.
    #[inline(always)]
    pub(super) fn add_own(&mut self, functions: &Functions, feature: &[u8]) {
        if let Of::Own(family) = &functions.of {
            self.own.add(family, feature_hash(feature));
        }
    }

    /// The signature of all that was added; `None` if that is nothing.
    pub fn finish(&mut self, functions: &Functions) -> Option<&[u32]> {
        match &functions.of {
            Of::Own(family) => self.own.finish(family),
            Of::Datasketch(_) => self.any.then_some(&self.theirs[..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_by_one_is_as_all_at_once() {
        let features = [&b"a b c"[..], b"b c d", b"c d e", b"b c d"];
        for scheme in Scheme::ALL {
            let functions = Functions::new(scheme, 100, 3).unwrap();
            let mut signature = vec![u32::MAX; 100];
            features
                .iter()
                .for_each(|feature| functions.add(&mut signature, feature));
            assert_eq!(functions.signature(features), Some(signature));
            assert_eq!(functions.signature([]), None);
        }
    }

    /// What datasketch 2.0.0 gives for `MinHash(6, 1)`, of both its schemes, after these updates.
    #[test]
    fn equals_datasketch() {
        let features = [&b"a"[..], b"b", b"the quick"];
        let of = |scheme| {
            Functions::new(scheme, 6, 1)
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

    #[test]
    fn seeds_of_datasketch_have_32_bits() {
        assert!(Functions::new(Scheme::Datasketch1, 16, 1 << 32).is_err());
        assert!(Functions::new(Scheme::Datasketch2, 16, u64::MAX).is_err());
        assert!(Functions::new(Scheme::Neardup1, 16, u64::MAX).is_ok());
    }
}
