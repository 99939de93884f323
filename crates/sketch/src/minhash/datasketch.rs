//! Hash functions of the Python package datasketch (class `MinHash`). Equal input gives equal
//! bits, so signatures of the package can be migrated and compared with new signatures.
//!
//! The hash h of a feature is the first four bytes of its SHA-1, little-endian. Function i is:
//! * in versions 1.x (`scheme="legacy"`): `((a_i * h + b_i mod 2^64) mod (2^61 - 1)) mod 2^32`.
//!   The product wraps at 64 bits before it is reduced, as in NumPy's integers.
//! * since version 2.0 (`scheme="affine32"`): `a_i * mix(h) + b_i mod 2^32` with odd a_i. `mix` is
//!   the finaliser of MurmurHash3.
//!
//! The pairs (a_i, b_i) are drawn from NumPy's `RandomState` of the seed, which is the Mersenne
//! Twister (Matsumoto, Nishimura, ACM TOMACS 8, 1998).

/// Modulus of the hash functions of version 1, a Mersenne prime.
const PRIME: u64 = (1 << 61) - 1;

/// Group of datasketch versions that produce equal signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Versions of the package before 2.0.0, and `scheme="legacy"` in later versions.
    One,
    /// `scheme="affine32"`, the default since version 2.0.0 of the package.
    Two,
}

/// Hash functions of datasketch, for signatures of one length and seed.
#[derive(Clone, Debug)]
pub struct DatasketchFamily {
    version: Version,
    /// Parameters (a, b) of each hash function. For a feature h, version 1 computes a·h + b modulo
    /// 2^64 and then modulo [`PRIME`], and version 2 computes a·mix(h) + b. The value is the low 32
    /// bits of the result.
    pairs: Vec<(u64, u64)>,
}

impl DatasketchFamily {
    /// Creates the `hashes` hash functions that datasketch makes from `seed` in `version`. In
    /// version 1, a shorter signature of the same seed is a prefix of a longer one. In version 2,
    /// it is not.
    #[must_use]
    pub fn new(version: Version, hashes: usize, seed: u32) -> Self {
        let mut random = Twister::new(seed);
        let pairs = match version {
            Version::One => (0..hashes)
                .map(|_| (random.between(1, PRIME - 1), random.between(0, PRIME - 1)))
                .collect(),
            Version::Two => {
                let a: Vec<u32> = (0..hashes).map(|_| random.next() << 1 | 1).collect();
                let pair = |a| (u64::from(a), u64::from(random.next()));
                a.into_iter().map(pair).collect()
            }
        };
        DatasketchFamily { version, pairs }
    }

    /// Returns the number of hash functions, which is the length of signatures.
    #[must_use]
    pub fn hashes(&self) -> usize {
        self.pairs.len()
    }

    /// Adds a feature to `signature`, which must have [`DatasketchFamily::hashes`] positions.
    /// `feature` is the first four bytes of the feature's SHA-1, as a little-endian number. Before
    /// the first feature is added, each position must be `u32::MAX`.
    pub fn add(&self, signature: &mut [u32], feature: u32) {
        let pairs = signature.iter_mut().zip(&self.pairs);
        match self.version {
            Version::One => {
                let h = u64::from(feature);
                pairs.for_each(|(least, (a, b))| {
                    let value = a.wrapping_mul(h).wrapping_add(*b) % PRIME;
                    *least = (*least).min(value as u32);
                });
            }
            Version::Two => {
                let h = mix(feature);
                pairs.for_each(|(least, &(a, b))| {
                    let value = (a as u32).wrapping_mul(h).wrapping_add(b as u32);
                    *least = (*least).min(value);
                });
            }
        }
    }

    /// Returns the signature of a set of features, or `None` if there are no features. Each feature
    /// is given by the first four bytes of its SHA-1, as a little-endian number.
    pub fn signature(&self, features: impl IntoIterator<Item = u32>) -> Option<Vec<u32>> {
        let mut signature = vec![u32::MAX; self.hashes()];
        let mut any = false;
        for feature in features {
            self.add(&mut signature, feature);
            any = true;
        }
        any.then_some(signature)
    }
}

/// Returns the 32-bit finaliser of MurmurHash3 (Appleby) for a feature hash.
fn mix(mut h: u32) -> u32 {
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// Number of words in the state of the random number generator.
const STATE: usize = 624;

/// Random number generator MT19937, the Mersenne Twister.
struct Twister {
    state: [u32; STATE],
    /// Index of the next word of `state` to use.
    at: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut state = [seed; STATE];
        for i in 1..STATE {
            let last = state[i - 1];
            state[i] = (last ^ (last >> 30))
                .wrapping_mul(1_812_433_253)
                .wrapping_add(i as u32);
        }
        Twister { state, at: STATE }
    }

    fn next(&mut self) -> u32 {
        if self.at == STATE {
            for i in 0..STATE {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % STATE] & 0x7fff_ffff);
                let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % STATE] ^ (y >> 1) ^ twist;
            }
            self.at = 0;
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// Draws a random number from `least` to `most`, both included, as `RandomState.randint` does
    /// for 64-bit numbers: draws again if the number is too large.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        let range = most - least;
        let mask = u64::MAX >> range.leading_zeros();
        loop {
            let high = u64::from(self.next());
            let value = (high << 32 | u64::from(self.next())) & mask;
            if value <= range {
                return least + value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 10,000th output of MT19937 for the seed 5489, from the C++ standard (rand.predef).
    #[test]
    fn published_twister() {
        let mut random = Twister::new(5489);
        assert_eq!(
            (0..10_000).map(|_| random.next()).last(),
            Some(4_123_659_995)
        );
    }

    /// Example of datasketch, test/test_minhash.py: the hash functions (a, b) and the signature of
    /// `MinHash(4, 1).update(b"Hello")`.
    #[test]
    fn published_datasketch() {
        let family = DatasketchFamily::new(Version::One, 4, 1);
        let expected = [
            (775_169_054_918_279_404, 1_758_426_461_858_698_312),
            (2_109_959_069_025_162, 965_365_488_286_768_773),
            (401_325_382_989_534_145, 1_703_346_441_743_126_657),
            (1_130_051_441_076_870_728, 1_762_784_241_922_636_284),
        ];
        assert_eq!(family.pairs, expected);
        assert_eq!(
            family.signature([2_342_453_239]),
            Some(vec![734_825_475, 960_773_806, 359_816_889, 342_714_745])
        );
        assert_eq!(family.signature([]), None);
    }

    /// Signatures that datasketch 2.0.0 gives for the features "a", "b" and "the quick", for some
    /// seeds.
    #[test]
    fn equals_the_package() {
        let features = [937_752_454, 1_579_145_193, 2_034_353_454];
        let signature = |version, seed| {
            DatasketchFamily::new(version, 6, seed)
                .signature(features)
                .unwrap()
        };
        let one = |seed| signature(Version::One, seed);
        let two = |seed| signature(Version::Two, seed);
        assert_eq!(
            one(1),
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
            one(u32::MAX),
            [
                588_995_107,
                241_749_767,
                26_062_701,
                604_824_919,
                1_818_718_384,
                545_559_372
            ]
        );
        assert_eq!(
            two(1),
            [
                996_004_246,
                1_572_361_674,
                878_842_415,
                58_171_345,
                439_027_376,
                86_326_305
            ]
        );
        assert_eq!(
            two(42),
            [
                2_313_389_852,
                1_020_864_507,
                1_508_363_423,
                1_732_096_022,
                549_299_601,
                945_073_731
            ]
        );
    }
}
