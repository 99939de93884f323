//! Fingerprints and signatures that `cargo xtask eval` compares, and their distances.
use neardup_sketch::minhash::matches;

/// Kind of sketch (fingerprint or signature) that a configuration makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Simhash of 64 bits.
    Simhash64,
    /// Simhash of 128 bits.
    Simhash128,
    /// Fingerprint of 64 bits: one bit of each of 64 MinHash minima.
    Minhash64,
    /// Fingerprint of 128 bits: one bit of each of 128 MinHash minima.
    Minhash128,
    /// MinHash signature of [`HASHES`] minima.
    Signature,
}

/// Number of minima of a signature, the default of SQL's `minhash`.
pub const HASHES: u32 = 128;

impl Kind {
    /// Returns the largest possible distance between two sketches of this kind, in bits or in
    /// minima.
    pub const fn width(self) -> u32 {
        match self {
            Self::Simhash64 | Self::Minhash64 => 64,
            Self::Simhash128 | Self::Minhash128 => 128,
            Self::Signature => HASHES,
        }
    }

    /// Returns the factor that converts a distance of 64-bit fingerprints to the corresponding
    /// distance of sketches of this kind. Fingerprints of 128 bits have twice as many bits, so
    /// their factor is 2. The factor of signatures is 4, for two reasons: they have 128 positions
    /// instead of 64, and they have whole minima. A fingerprint has only one bit of each minimum,
    /// and the bits of two different minima are equal in half of the cases.
    pub const fn distance_per_bit(self) -> u32 {
        match self {
            Self::Simhash64 | Self::Minhash64 => 1,
            Self::Simhash128 | Self::Minhash128 => 2,
            Self::Signature => HASHES / 32,
        }
    }

    /// Returns the largest distance, in bits or in minima, for which the estimated Jaccard
    /// similarity is at least `similarity`. Returns `None` for simhashes, because they do not
    /// estimate it.
    pub fn radius_for_similarity(self, similarity: f32) -> Option<u32> {
        let estimates = matches!(self, Self::Minhash64 | Self::Minhash128 | Self::Signature);
        // The small summand prevents that a rounding error of floats lowers the result by one.
        let distance = (32 * self.distance_per_bit()) as f32 * (1.0 - similarity) + 1e-3;
        estimates.then_some(distance as u32)
    }
}

/// Fingerprint or signature of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sketch {
    /// Fingerprint. A 64-bit fingerprint is in the lower half.
    Bits(u128),
    /// MinHash signature, as its minima.
    Minima(Vec<u32>),
}

impl Sketch {
    /// Returns the number of bits or minima in which two sketches of the same kind differ.
    pub fn distance(&self, other: &Self) -> u32 {
        match (self, other) {
            (Self::Bits(a), Self::Bits(b)) => (a ^ b).count_ones(),
            (Self::Minima(a), Self::Minima(b)) => (a.len() - matches(a, b)) as u32,
            _ => unreachable!("a configuration makes sketches of one kind"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radii_of_estimates() {
        let within = |kind: Kind| [0.9, 0.8, 0.75, 0.5].map(|j| kind.radius_for_similarity(j));
        assert_eq!(within(Kind::Simhash64), [None; 4]);
        assert_eq!(within(Kind::Minhash64), [3, 6, 8, 16].map(Some));
        assert_eq!(within(Kind::Minhash128), [6, 12, 16, 32].map(Some));
        assert_eq!(within(Kind::Signature), [12, 25, 32, 64].map(Some));
    }

    #[test]
    fn distances_count_what_differs() {
        let bits = Sketch::Bits(0b1011);
        assert_eq!(bits.distance(&Sketch::Bits(1 << 100)), 4);
        let minima = |minima: [u32; 3]| Sketch::Minima(minima.to_vec());
        assert_eq!(minima([1, 2, 3]).distance(&minima([1, 4, 5])), 2);
    }
}
