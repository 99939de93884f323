//! Simhash of features or hashes that the caller provides, with floating-point weights.

use super::exact::ExactAccumulator;
use crate::hash::{FeatureHash, join};
use crate::weight::WeightError;

fn simhash_of_hashes<const W: usize>(
    hashes: impl Iterator<Item = ([u64; W], impl Into<f64>)>,
) -> Result<Option<[u64; W]>, WeightError> {
    let mut accumulator = ExactAccumulator::<W>::default();
    for (index, (hash, weight)) in hashes.enumerate() {
        accumulator.add(index, hash, weight.into())?;
    }
    Ok(accumulator.simhash())
}

fn simhash_of_features<const W: usize>(
    features: impl IntoIterator<Item = (impl AsRef<[u8]>, impl Into<f64>)>,
) -> Result<Option<[u64; W]>, WeightError>
where
    [u64; W]: FeatureHash,
{
    let features = features.into_iter();
    simhash_of_hashes(
        features.map(|(feature, weight)| (FeatureHash::new(feature.as_ref()), weight)),
    )
}

/// Returns the 64-bit simhash of pairs of a feature hash and a weight, or `None` if no weight is
/// above zero.
///
/// # Errors
///
/// If a weight is NaN, infinite or negative.
pub fn simhash64_hashes<I, W>(hashes: I) -> Result<Option<u64>, WeightError>
where
    I: IntoIterator<Item = (u64, W)>,
    W: Into<f64>,
{
    let hashes = hashes.into_iter().map(|(hash, weight)| ([hash], weight));
    Ok(simhash_of_hashes(hashes)?.map(|[word]| word))
}

/// Returns the 64-bit simhash of pairs of a feature and a weight, or `None` if no weight is above
/// zero. Features are hashed without normalisation ([`crate::hash::feature_hash`]).
///
/// ```
/// use neardup_sketch::simhash64_features;
///
/// let fingerprint = simhash64_features([("quick", 1.0), ("brown", 0.5), ("fox", 2.0)])?;
/// assert_eq!(simhash64_features([("fox", 2.0), ("quick", 1.0), ("brown", 0.5)])?, fingerprint);
/// # Ok::<(), neardup_sketch::WeightError>(())
/// ```
///
/// # Errors
///
/// If a weight is NaN, infinite or negative.
pub fn simhash64_features<I, F, W>(features: I) -> Result<Option<u64>, WeightError>
where
    I: IntoIterator<Item = (F, W)>,
    F: AsRef<[u8]>,
    W: Into<f64>,
{
    Ok(simhash_of_features(features)?.map(|[word]| word))
}

/// Returns the 128-bit simhash of pairs of a feature and a weight, or `None` if no weight is above
/// zero. Features are hashed without normalisation ([`crate::hash::feature_hash128`]).
///
/// # Errors
///
/// If a weight is NaN, infinite or negative.
pub fn simhash128_features<I, F, W>(features: I) -> Result<Option<u128>, WeightError>
where
    I: IntoIterator<Item = (F, W)>,
    F: AsRef<[u8]>,
    W: Into<f64>,
{
    Ok(simhash_of_features(features)?.map(join))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{feature_hash, feature_hash128, split};
    use proptest::prelude::*;

    fn simhash128_hashes<I, W>(hashes: I) -> Result<Option<u128>, WeightError>
    where
        I: IntoIterator<Item = (u128, W)>,
        W: Into<f64>,
    {
        let hashes = hashes.into_iter();
        Ok(simhash_of_hashes(hashes.map(|(hash, weight)| (split(hash), weight)))?.map(join))
    }

    fn ones(hashes: &[u64]) -> Option<u64> {
        simhash64_hashes(hashes.iter().map(|&h| (h, 1.0))).unwrap()
    }

    /// Example of Manku et al.: 100101 with weight 4 and 101011 with weight 5 sum to 9 -9 1 -1 1 9.
    #[test]
    fn published_worked_example() {
        let got = simhash64_hashes([(0b10_0101, 4.0), (0b10_1011, 5.0)]);
        assert_eq!(got, Ok(Some(0b10_1011)));
        // The same features in either half of a wider fingerprint.
        let got = simhash128_hashes([(0b10_0101 << 90, 4.0), (0b10_1011 << 90, 5.0)]);
        assert_eq!(got, Ok(Some(0b10_1011 << 90)));
        let got = simhash128_hashes([(0b10_0101, 4.0), (0b10_1011, 5.0)]);
        assert_eq!(got, Ok(Some(0b10_1011)));
    }

    /// Examples of simhash-cpp, test/test-simhash.cpp. There compute([]) is 0; here it is `None`.
    #[test]
    fn published_simhash_cpp() {
        assert_eq!(ones(&[]), None);
        assert_eq!(ones(&[0xDEAD_BEEF; 100]), Some(0xDEAD_BEEF));
        assert_eq!(ones(&[0xDEAD_BEEF, !0xDEAD_BEEF]), Some(0));
        assert_eq!(ones(&[0xABCD, 0xBCDE, 0xCDEF]), Some(0xADCF));
    }

    /// Example of yanyiwu/simhash, from its README (keywords hashed by Jenkins) and TSimhash.cpp.
    #[test]
    fn published_yanyiwu() {
        let features = [
            (15_142_046_212_652_221_781, 318.452),
            (2_117_559_126_361_955_906, 151.001),
            (14_814_508_906_697_812_479, 140.87),
            (13_004_687_738_940_023_035, 106.978),
            (18_264_030_747_823_598_625, 103.739),
        ];
        assert_eq!(
            simhash64_hashes(features),
            Ok(Some(15_286_165_794_479_097_173))
        );
    }

    #[test]
    fn no_weight_no_fingerprint() {
        assert_eq!(simhash64_hashes([(1, 0.0), (2, -0.0)]), Ok(None));
        assert_eq!(simhash128_hashes([(1, 0.0), (2, -0.0)]), Ok(None));
        assert_eq!(simhash128_features::<_, &str, f64>([]), Ok(None));
        assert_eq!(simhash64_features([("a", 0.0)]), Ok(None));
    }

    #[test]
    fn bad_weights_are_errors_at_their_position() {
        for weight in [f64::NAN, f64::INFINITY, -0.5] {
            let error = WeightError { index: 1, weight };
            assert_eq!(simhash64_features([("a", 1.0), ("b", weight)]), Err(error));
        }
    }

    #[test]
    fn features_are_hashed_as_bytes() {
        assert_eq!(
            simhash64_features(["a", "b", "c"].map(|feature| (feature, 1.0))),
            simhash64_features([(&b"a"[..], 1.0), (b"b", 1.0), (b"c", 1.0)])
        );
        let hash = simhash64_features([("a", 1.0)]);
        assert_eq!(hash, Ok(Some(feature_hash(b"a"))));
        let hash = simhash128_features([("a", 1.0)]);
        assert_eq!(hash, Ok(Some(feature_hash128(b"a"))));
    }

    /// A tiny weight decides between two huge equal weights. Rounded sums would lose it.
    #[test]
    fn sums_are_exact_over_the_whole_range_of_floats() {
        let single = (f64::from(f32::MAX), f64::from(f32::from_bits(1)));
        for (max, tiny) in [single, (f64::MAX, f64::from_bits(1))] {
            let of = |hashes: [(u64, f64); 3]| simhash64_hashes(hashes);
            assert_eq!(of([(1, max), (0, max), (1, tiny)]), Ok(Some(1)));
            assert_eq!(of([(1, max), (0, max), (0, tiny)]), Ok(Some(0)));
        }
        assert_eq!(
            simhash64_hashes([(1, 1e30), (0, 1e30), (1, 1e-30), (0, 1e-30)]),
            Ok(Some(0))
        );
        assert_eq!(
            simhash64_hashes([(1, 1e30), (0, 2e30), (1, 1e30), (1, 1e-30)]),
            Ok(Some(1))
        );
        // The floating-point values 0.1 and 0.2 are above the decimal numbers, 0.3 is below.
        assert_eq!(
            simhash64_hashes([(1, 0.1), (1, 0.2), (0, 0.3)]),
            Ok(Some(1))
        );
        assert_eq!(
            simhash64_hashes([(0, 0.1), (0, 0.2), (1, 0.3)]),
            Ok(Some(0))
        );
    }

    proptest! {
        #[test]
        fn order_does_not_matter(
            features in prop::collection::vec((any::<u64>(), 0_u64..0x7FF0_0000_0000_0000), 1..40),
            by in any::<prop::sample::Index>(),
        ) {
            let features: Vec<_> = features.iter().map(|&(h, w)| (h, f64::from_bits(w))).collect();
            let expected = simhash64_hashes(features.iter().copied()).unwrap();
            let mut moved = features.clone();
            moved.rotate_left(by.index(features.len()));
            prop_assert_eq!(simhash64_hashes(moved.iter().copied()).unwrap(), expected);
            moved.reverse();
            prop_assert_eq!(simhash64_hashes(moved.iter().copied()).unwrap(), expected);
            moved.sort_by(|a, b| a.1.total_cmp(&b.1));
            prop_assert_eq!(simhash64_hashes(moved.iter().copied()).unwrap(), expected);
        }

        #[test]
        fn duplicates_add_up(features in prop::collection::vec(("[a-c]{1,2}", 1_u16..100), 1..30)) {
            let mut merged = std::collections::BTreeMap::new();
            for (feature, weight) in &features {
                *merged.entry(feature.as_str()).or_insert(0.0) += f32::from(*weight);
            }
            prop_assert_eq!(
                simhash64_features(features.iter().map(|(f, w)| (f, f32::from(*w)))),
                simhash64_features(merged)
            );
        }

        /// The simhash equals the one computed from sums in 128-bit integers. These sums are exact,
        /// because the weights are multiples of 2^-20 below 2^40.
        #[test]
        fn equals_plain_integer_sums(
            features in prop::collection::vec((any::<u128>(), 0_u32..0x100_0000, 0_u32..40), 0..50),
        ) {
            let weight = |m: u32, e: u32| m as f32 * 2f32.powi(e as i32 - 20);
            let wide = features.iter().map(|&(h, m, e)| (h, weight(m, e)));
            let narrow = wide.clone().map(|(h, weight)| (h as u64, weight));
            let mut sums = [0_i128; 128];
            let mut any = false;
            for &(hash, m, e) in &features {
                any |= m > 0;
                for (bit, sum) in sums.iter_mut().enumerate() {
                    let w = i128::from(m) << e;
                    *sum += if (hash >> bit) & 1 == 1 { w } else { -w };
                }
            }
            let expected = (0..128).fold(0, |fp, bit| fp | (u128::from(sums[bit] > 0) << bit));
            let expected = any.then_some(expected);
            prop_assert_eq!(simhash128_hashes(wide).unwrap(), expected);
            prop_assert_eq!(simhash64_hashes(narrow).unwrap(), expected.map(|fp| fp as u64));
        }
    }
}
