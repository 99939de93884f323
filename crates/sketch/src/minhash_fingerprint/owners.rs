//! Attributes each bit in which two MinHash fingerprints differ to the feature that causes it.

use super::{CHECK_EVERY, value};
use crate::memory::GrowVec;

/// Feature that only one of two compared sets has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnFeature {
    /// Hash of the feature.
    pub hash: u64,
    /// Index of the owner of the feature. The caller divides the features among owners, and
    /// [`owned_bits`] counts the differing bits that each owner causes. For example, an owner is a
    /// change between two texts, and owns the features in the change.
    pub owner: u32,
}

/// Returns the number of differing bits that each of `owners` owners causes by its features.
/// `differing` is a mask of the bits in which the fingerprints of two sets differ. `own` returns an
/// iterator over the features that only one of the sets has. It is called several times, and must
/// return the same features each time. Calls the cancellation check `check`.
///
/// If the minima of two sets in a bin differ, the lesser one belongs to a feature that the other
/// set does not have. So each differing bit belongs to one feature, and the counts add up to the
/// distance of the fingerprints.
pub(crate) fn owned_bits<const W: usize, I: Iterator<Item = OwnFeature>>(
    differing: [u64; W],
    own: impl Fn() -> I,
    owners: usize,
    check: &mut dyn FnMut(),
) -> Vec<u32> {
    let bins = 64 * W as u64;
    let log2 = bins.ilog2();
    let mut counts = Vec::new();
    counts.grow_to(owners, 0);
    let mut open = differing;
    let is_open = |open: &[u64; W], bin: u64| open[bin as usize / 64] >> (bin % 64) & 1 == 1;
    // As in the fingerprint, the value of a bin comes from the first round in which any value falls
    // into it.
    for round in 0..2 * bins {
        let named = round.checked_sub(bins);
        if open == [0; W] {
            break;
        }
        if named.is_some_and(|bin| !is_open(&open, bin)) {
            continue;
        }
        let mut least: [[Option<(u64, u32)>; 64]; W] = [[None; 64]; W];
        let least = least.as_flattened_mut();
        for (n, feature) in own().enumerate() {
            if n % CHECK_EVERY == 0 {
                check();
            }
            let value = value(feature.hash, round);
            let bin = named.unwrap_or(value >> (64 - log2)) as usize;
            let found = (value, feature.owner);
            least[bin] = Some(least[bin].map_or(found, |least| least.min(found)));
        }
        for (bin, least) in (0..).zip(least) {
            if let Some((_, owner)) = *least
                && is_open(&open, bin)
            {
                open[bin as usize / 64] &= !(1 << (bin % 64));
                counts[owner as usize] += 1;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minhash_fingerprint::FingerprintBuilder;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn minhash<const W: usize>(hashes: &BTreeSet<u64>) -> [u64; W] {
        let mut minima = FingerprintBuilder::default();
        hashes.iter().for_each(|&hash| minima.add(&[hash]));
        minima.finish(&mut || ()).unwrap()
    }

    fn xor<const W: usize>(a: [u64; W], b: [u64; W]) -> [u64; W] {
        std::array::from_fn(|word| a[word] ^ b[word])
    }

    /// Returns the distance of the fingerprints of two sets, and the number of bits due to each
    /// feature that only one set has.
    fn owned<const W: usize>(a: &BTreeSet<u64>, b: &BTreeSet<u64>) -> (u32, Vec<u32>) {
        let differing: [u64; W] = xor(minhash(a), minhash(b));
        let own = a.symmetric_difference(b).zip(0..);
        let own: Vec<_> = own
            .map(|(&hash, owner)| OwnFeature { hash, owner })
            .collect();
        let distance = differing.iter().map(|word| word.count_ones()).sum();
        (
            distance,
            owned_bits(differing, || own.iter().copied(), own.len(), &mut || ()),
        )
    }

    proptest! {
        #[test]
        fn adds_up_to_the_distance(
            a in prop::collection::btree_set(any::<u64>(), 1..300),
            b in prop::collection::btree_set(any::<u64>(), 0..20),
            kept in 1_usize..300,
        ) {
            let b: BTreeSet<u64> = a.iter().take(kept).chain(&b).copied().collect();
            let (distance, counts) = owned::<1>(&a, &b);
            prop_assert_eq!(counts.iter().sum::<u32>(), distance);
            let (distance, counts) = owned::<2>(&a, &b);
            prop_assert_eq!(counts.iter().sum::<u32>(), distance);
        }

        /// If round 0 fills all bins, a feature causes at most one differing bit, and only if it is
        /// the minimum of its bin over both sets.
        #[test]
        fn a_bit_is_due_to_the_least_of_both_sets(
            a in prop::collection::btree_set(any::<u64>(), 200..300),
            more in prop::collection::btree_set(any::<u64>(), 1..30),
        ) {
            let b: BTreeSet<u64> = a.union(&more).copied().collect();
            let (_, counts) = owned::<1>(&a, &b);
            for (feature, count) in a.symmetric_difference(&b).zip(counts) {
                // If the first round fills all bins, a feature has the minimum of at most one bin.
                let mut bin = b.iter().filter(|hash| *hash >> 58 == feature >> 58);
                let is_least = bin.next() == Some(feature);
                let all_full = (0..64).all(|bin| a.iter().any(|hash| hash >> 58 == bin));
                prop_assert!(!all_full || count <= u32::from(is_least));
            }
        }
    }
}
