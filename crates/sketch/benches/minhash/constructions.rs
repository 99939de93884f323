//! Methods of computing a MinHash signature of K positions from the hashed features of a text, for
//! comparison. The library uses the first one, [`Classic`]. The code is as simple as a fair
//! measurement of its speed allows. docs/minhash.md has the results.

use neardup_sketch::minhash::LinearFamily;

/// The finaliser of splitmix64, a function of 64 bits that looks random.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Method of computing a MinHash signature from distinct features.
pub trait Construction {
    fn name(&self) -> &'static str;
    /// Computes the signature of a set of features, and writes one value for each position to
    /// `out`. `features` holds the hashes of the features, and must not be empty.
    fn signature(&mut self, features: &[u64], out: &mut Vec<u32>);
}

/// Method of the library: position i of the signature is the minimum of the linear hash function i
/// over all features.
pub struct Classic(pub LinearFamily);

impl Construction for Classic {
    fn name(&self) -> &'static str {
        "classic, linear functions"
    }

    fn signature(&mut self, features: &[u64], out: &mut Vec<u32>) {
        out.clear();
        out.extend(self.0.signature(features).expect("there are features"));
    }
}

/// Same method as [`Classic`], but with hash functions that look random and independent. It is the
/// reference for the error of the linear functions. The field is the number of positions.
pub struct Ideal(pub usize);

impl Construction for Ideal {
    fn name(&self) -> &'static str {
        "classic, independent functions"
    }

    fn signature(&mut self, features: &[u64], out: &mut Vec<u32>) {
        out.clear();
        out.extend((0..self.0 as u64).map(|i| {
            let salt = mix(i + 1);
            features
                .iter()
                .map(|x| (mix(x ^ salt) >> 32) as u32)
                .min()
                .unwrap_or(u32::MAX)
        }));
    }
}

/// One permutation hashing. Each position of the signature has a bin. One hash function distributes
/// the features among the bins, and a bin keeps the minimum of its features. An empty bin copies
/// the value of another bin. A hash of the bin's number and of the number of attempts chooses the
/// other bin; if it is empty too, there is another attempt (Shrivastava, "Optimal densification for
/// fast and accurate minwise hashing", ICML 2017). The field is the number of positions.
pub struct OnePermutation(pub usize);

impl Construction for OnePermutation {
    fn name(&self) -> &'static str {
        "one permutation, optimal densification"
    }

    fn signature(&mut self, features: &[u64], out: &mut Vec<u32>) {
        let bins = self.0 as u64;
        let mut least = vec![u64::MAX; self.0];
        for x in features {
            // The hash is uniform: its first bits choose the bin, and the others are the value.
            let bin = ((x >> 32) * bins) >> 32;
            let value = (x & 0xffff_ffff) | (x >> 32 << 32);
            let slot = &mut least[bin as usize];
            if (value as u32) < (*slot as u32) || *slot == u64::MAX {
                *slot = value;
            }
        }
        out.clear();
        out.extend((0..self.0).map(|bin| {
            let mut from = bin;
            let mut attempt = 0;
            while least[from] == u64::MAX {
                attempt += 1;
                let hash = mix((bin as u64) << 32 | attempt);
                from = (((hash >> 32) * bins) >> 32) as usize;
            }
            // Mixed with the bin, so that equal values of two bins do not agree by chance.
            mix(least[from]) as u32
        }));
    }
}

/// SuperMinHash. Each position of the signature has a bin. Each feature visits the bins in a random
/// order of its own, with a value that grows at each step. A bin keeps the minimum of the values of
/// all features. So a feature can stop as soon as its value is too large to be the minimum of a bin
/// (Ertl, "SuperMinHash", 2017).
pub struct SuperMinHash {
    hashes: usize,
    values: Vec<f64>,
    order: Vec<u32>,
    stamp: Vec<u64>,
    last: Vec<usize>,
    histogram: Vec<usize>,
}

impl SuperMinHash {
    pub fn new(hashes: usize) -> Self {
        SuperMinHash {
            hashes,
            values: vec![0.0; hashes],
            order: vec![0; hashes],
            stamp: vec![0; hashes],
            last: vec![0; hashes],
            histogram: vec![0; hashes],
        }
    }
}

impl Construction for SuperMinHash {
    fn name(&self) -> &'static str {
        "SuperMinHash"
    }

    fn signature(&mut self, features: &[u64], out: &mut Vec<u32>) {
        let m = self.hashes;
        self.values.fill(f64::INFINITY);
        self.stamp.fill(0);
        self.last.fill(m - 1);
        self.histogram.fill(0);
        self.histogram[m - 1] = m;
        let mut deepest = m - 1;
        for (i, &feature) in features.iter().enumerate() {
            let stamp = i as u64 + 1;
            let mut state = feature;
            let mut j = 0;
            while j <= deepest {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let random = mix(state);
                let r = (random >> 32) as f64 / 4_294_967_296.0;
                let k = j + (((random & 0xffff_ffff) * (m - j) as u64) >> 32) as usize;
                for index in [j, k] {
                    if self.stamp[index] != stamp {
                        self.stamp[index] = stamp;
                        self.order[index] = index as u32;
                    }
                }
                self.order.swap(j, k);
                let bin = self.order[j] as usize;
                let value = r + j as f64;
                if value < self.values[bin] {
                    let before = self.last[bin];
                    self.values[bin] = value;
                    if j < before {
                        self.histogram[before] -= 1;
                        self.histogram[j] += 1;
                        self.last[bin] = j;
                        while self.histogram[deepest] == 0 {
                            deepest -= 1;
                        }
                    }
                }
                j += 1;
            }
        }
        out.clear();
        // The depth takes a byte or two, and the value takes the rest.
        out.extend(self.values.iter().map(|value| (value * 2_097_152.0) as u32));
    }
}

/// C-MinHash. Each feature is an element of a universe of 2^16 elements, given by the leading bits
/// of its hash. One random permutation of the universe gives each element a value. For position i
/// of the signature, the permutation is rotated by i steps, and the position has the minimum of the
/// features' values (Li, Li, "C-MinHash: improving minwise hashing with circulant permutation",
/// ICML 2022). The paper applies another permutation to the elements first; the hash takes its
/// role.
pub struct CMinHash {
    hashes: usize,
    turned: Vec<u32>,
}

const UNIVERSE: usize = 1 << 16;

impl CMinHash {
    pub fn new(hashes: usize) -> Self {
        let mut turned: Vec<u32> = (0..UNIVERSE as u32).collect();
        for i in (1..UNIVERSE).rev() {
            let j = ((mix(i as u64) >> 32) * (i as u64 + 1)) >> 32;
            turned.swap(i, j as usize);
        }
        // Stored twice, so that every rotation is a contiguous range.
        let again = turned.clone();
        turned.extend(again);
        CMinHash { hashes, turned }
    }
}

impl Construction for CMinHash {
    fn name(&self) -> &'static str {
        "C-MinHash, universe of 65,536"
    }

    fn signature(&mut self, features: &[u64], out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.hashes, u32::MAX);
        for x in features {
            let index = (x >> 48) as usize;
            for (least, value) in out.iter_mut().zip(&self.turned[index..index + self.hashes]) {
                *least = (*least).min(*value);
            }
        }
    }
}

/// Returns all constructions, for signatures of `hashes` positions.
pub fn all(hashes: usize) -> Vec<Box<dyn Construction>> {
    vec![
        Box::new(Classic(LinearFamily::new(hashes, 0))),
        Box::new(OnePermutation(hashes)),
        Box::new(SuperMinHash::new(hashes)),
        Box::new(CMinHash::new(hashes)),
        Box::new(Ideal(hashes)),
    ]
}
