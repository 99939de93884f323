//! Attributes the differing bits of two fingerprints to the changes between their texts: for each
//! change, counts the bits that differ because of it.

use crate::feature_list::{FeatureEntry, FeatureList, sort};
use crate::hash::FeatureHash;
use crate::memory::GrowVec;
use crate::minhash_fingerprint::{FingerprintBuilder, OwnFeature, owned_bits};
use crate::simhash::Accumulator;

/// Fingerprint function whose differing bits are attributed to the changes between two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitsOf {
    /// `minhash64`. Each bit comes from a minimum of hash values of the text's features. If the
    /// minima of two texts differ, the smaller one belongs to a feature that only one text has. The
    /// bit is counted for the change that contains this feature. So the bits of all changes add up
    /// to the distance.
    Minhash64,
    /// `minhash128`, counted like [`BitsOf::Minhash64`].
    Minhash128,
    /// `simhash64`. Each change replaces a passage of the first text by a passage of the second
    /// text. Replacing only this passage changes some bits of the first text's fingerprint. Those
    /// that then agree with the second text's fingerprint, and differed before, are the bits of the
    /// change. A bit may be counted for several changes, or for none.
    Simhash64,
    /// `simhash128`, counted like [`BitsOf::Simhash64`].
    Simhash128,
}

/// Features of one of two compared texts. For each feature that the other text does not have,
/// records the change that contains it.
pub(crate) struct OwnFeatures<'a> {
    /// All distinct features of the text.
    pub list: &'a FeatureList,
    /// Features that the other text does not have.
    pub own: &'a [&'a FeatureEntry],
    /// For each feature of `own`, the index of the change that contains it.
    pub owners: Vec<u32>,
}

impl BitsOf {
    /// Returns, for each change between two texts, the number of differing bits that it causes.
    /// `changes` is the number of changes. `sides` holds the features of the first text and of the
    /// second text. Calls the cancellation check `check` regularly.
    pub(crate) fn count(
        self,
        sides: &[OwnFeatures; 2],
        changes: usize,
        check: &mut dyn FnMut(),
    ) -> Vec<u32> {
        match self {
            Self::Minhash64 => minhash_bits::<1>(sides, changes, check),
            Self::Minhash128 => minhash_bits::<2>(sides, changes, check),
            Self::Simhash64 => simhash_bits::<1>(sides, changes, check),
            Self::Simhash128 => simhash_bits::<2>(sides, changes, check),
        }
    }
}

/// Number of features or changes between two calls of `check`.
const CHECK_EVERY: usize = 1 << 14;

fn minhash_bits<const W: usize>(
    sides: &[OwnFeatures; 2],
    changes: usize,
    check: &mut dyn FnMut(),
) -> Vec<u32> {
    let mut fingerprints = [None; 2];
    for (side, fingerprint) in sides.iter().zip(&mut fingerprints) {
        let mut minima = FingerprintBuilder::<W>::default();
        for (n, entry) in side.list.entries().iter().enumerate() {
            if n.is_multiple_of(CHECK_EVERY) {
                check();
            }
            minima.add(&[entry.hash()]);
        }
        *fingerprint = minima.finish(check);
    }
    let own = || {
        let pairs = sides
            .iter()
            .flat_map(|side| side.own.iter().zip(&side.owners));
        pairs.map(|(entry, &owner)| OwnFeature {
            hash: entry.hash(),
            owner,
        })
    };
    owned_bits(differing(fingerprints), own, changes, check)
}

/// Returns a mask of the bits in which two fingerprints differ, or 0 if a fingerprint is `None`.
fn differing<const W: usize>(fingerprints: [Option<[u64; W]>; 2]) -> [u64; W] {
    match fingerprints {
        [Some(a), Some(b)] => std::array::from_fn(|word| a[word] ^ b[word]),
        _ => [0; W],
    }
}

fn simhash_bits<const W: usize>(
    sides: &[OwnFeatures; 2],
    changes: usize,
    check: &mut dyn FnMut(),
) -> Vec<u32>
where
    [u64; W]: FeatureHash,
{
    let hash = |list: &FeatureList, entry: &FeatureEntry| FeatureHash::new(list.bytes(entry));
    let mut sums: [Accumulator<W>; 2] = Default::default();
    // For each text, indexes of the features that only this text has, in the order of the changes.
    let mut orders = [Vec::new(), Vec::new()];
    for ((side, sums), order) in sides.iter().zip(&mut sums).zip(&mut orders) {
        for (n, entry) in side.list.entries().iter().enumerate() {
            if n.is_multiple_of(CHECK_EVERY) {
                check();
            }
            sums.add(hash(side.list, entry), side.list.weight(entry));
        }
        order.grow_all(0..side.own.len() as u32);
        let owner = |n: &u32| side.owners[*n as usize];
        sort(order, |x, y| owner(x).cmp(&owner(y)), check);
    }
    let [a, b] = &sums;
    let differing = differing([a.simhash(), b.simhash()]);
    let goal = b.simhash().unwrap_or([0; W]);
    let mut counts = Vec::new();
    let mut rest = orders.each_ref().map(Vec::as_slice);
    for change in 0..changes as u32 {
        if (change as usize).is_multiple_of(CHECK_EVERY) {
            check();
        }
        let mut undone = a.clone();
        for (n, rest) in rest.iter_mut().enumerate() {
            let OwnFeatures { list, own, owners } = &sides[n];
            let end = rest.partition_point(|feature| owners[*feature as usize] <= change);
            let (these, others) = rest.split_at(end);
            for feature in these {
                let entry = own[*feature as usize];
                let (hash, weight) = (hash(list, entry), list.weight(entry));
                match n {
                    0 => undone.remove(hash, weight),
                    _ => undone.add(hash, weight),
                }
            }
            *rest = others;
        }
        let agreeing = |found: [u64; W]| {
            let bits = (0..W).map(|word| differing[word] & !(found[word] ^ goal[word]));
            bits.map(u64::count_ones).sum()
        };
        counts.grow_push(undone.simhash().map_or(0, agreeing));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::BitsOf;
    use crate::options::{TextOptions, Weight};
    use crate::{FeatureDiff, Sketcher};
    use proptest::prelude::*;

    /// Returns the number of bits of each change, and the distance of the fingerprints.
    fn bits(a: &str, b: &str, options: TextOptions, of: BitsOf) -> (Vec<u32>, u32) {
        let diff = FeatureDiff::new(a, b, &options, usize::MAX, Some(of), &mut || ());
        let bits = (diff.changes.largest.iter()).map(|change| change.bits.unwrap());
        let mut sketcher = Sketcher::new(options);
        let check = &mut || ();
        let [a, b] = [a, b].map(|text| match of {
            BitsOf::Minhash64 => sketcher.minhash64(text, check).map(u128::from),
            BitsOf::Minhash128 => sketcher.minhash128(text, check),
            BitsOf::Simhash64 => sketcher.simhash64(text, check).map(u128::from),
            BitsOf::Simhash128 => sketcher.simhash128(text, check),
        });
        let distance = match (a, b) {
            (Some(a), Some(b)) => (a ^ b).count_ones(),
            _ => 0,
        };
        (bits.collect(), distance)
    }

    #[test]
    fn one_change_costs_the_distance() {
        let a = "The library will reopen on Monday, the council said; it was painted in spring.";
        let b = "The library will reopen on Friday, the council said; it was painted in spring.";
        for of in [BitsOf::Minhash64, BitsOf::Minhash128] {
            let (bits, distance) = bits(a, b, TextOptions::SET, of);
            assert_eq!((bits, true), (vec![distance], distance > 0));
        }
        for of in [BitsOf::Simhash64, BitsOf::Simhash128] {
            let (bits, distance) = bits(a, b, TextOptions::SIMHASH, of);
            assert_eq!((bits, true), (vec![distance], distance > 0));
        }
    }

    proptest! {
        #[test]
        fn bits_of_minima_add_up(a in "([a-e]{1,2} ){0,60}", b in "([a-e]{1,2} ){0,60}") {
            for of in [BitsOf::Minhash64, BitsOf::Minhash128] {
                let (bits, distance) = bits(&a, &b, TextOptions::SET, of);
                prop_assert_eq!(bits.iter().sum::<u32>(), distance);
            }
        }

        /// With weights of 1, undoing the only change between two texts gives the fingerprint of
        /// the other text, so all differing bits belong to this change. With several changes, no
        /// change has more bits than the fingerprints differ in.
        #[test]
        fn a_simhash_with_one_change_costs_the_distance(
            words in prop::collection::vec("[a-e]{1,3}", 3..40),
            at in 0_usize..40,
        ) {
            let at = at % words.len();
            let a = words.join(" ");
            let b = [&words[..at], &["new".to_owned()], &words[at..]].concat().join(" ");
            let options = TextOptions { weight: Weight::Set, ..TextOptions::SIMHASH };
            for of in [BitsOf::Simhash64, BitsOf::Simhash128] {
                let (bits, distance) = bits(&a, &b, options, of);
                if bits.len() == 1 {
                    prop_assert_eq!(bits, [distance]);
                } else {
                    prop_assert!(bits.iter().all(|bits| *bits <= distance));
                }
            }
        }
    }
}
