//! Features that many documents share, for example those of a navigation, a disclaimer or a
//! template.
//!
//! [`CommonFeatureCollector`] finds these features in the documents of a collection. A
//! [`FeatureSet`] holds these features and has a stored form. The methods of [`crate::Sketcher`]
//! whose names end in `_without` leave the features of a set out.

mod collector;
mod filter;
mod remainder;
mod set;

pub use collector::{CommonFeatureCollector, Sampled};
pub(crate) use filter::{RareFeatures, RareMinima};
pub use remainder::REMAINDER_SEPARATOR;
pub use set::{BadFeatureSet, FeatureSet};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::join;
    use crate::minhash::{HashFamily, Scheme};
    use crate::minhash_fingerprint::FingerprintBuilder;
    use crate::options::TextOptions;
    use crate::sketcher::Sketcher;
    use crate::test_texts::{any_text, any_tokens};
    use crate::weight::FRACTION_BITS;
    use crate::{features, simhash64_features, simhash128_features};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// A fingerprint without the features of a set equals the fingerprint of the other features
        /// of the text.
        #[test]
        fn left_out_is_what_the_set_has(
            text in any_text(),
            tokens in any_tokens(),
            shingle in 1_usize..5,
            part in 0_u64..4,
        ) {
            let options = TextOptions { tokens, shingle, ..TextOptions::SIMHASH };
            let (common, rare): (Vec<_>, Vec<_>) = features(&text, &options, &mut || ())
                .into_iter()
                .partition(|feature| feature.hash % 4 < part);
            let mut hashes: Vec<u64> = common.iter().map(|feature| feature.hash).collect();
            hashes.sort_unstable();
            let stored = FeatureSet::stored(&options, hashes.into_iter());
            let set = &FeatureSet::from_stored(&stored).unwrap();
            let weighted = || {
                let weight = |weight: u64| weight as f64 / f64::from(1 << FRACTION_BITS);
                rare.iter().map(move |feature| (&feature.text, weight(feature.weight)))
            };
            let mut minima64 = FingerprintBuilder::<1>::default();
            let mut minima128 = FingerprintBuilder::<2>::default();
            for feature in &rare {
                minima64.add(&[feature.hash]);
                minima128.add(&[feature.hash]);
            }
            let family = HashFamily::new(Scheme::Datasketch2, 32, 1).unwrap();
            let check = &mut || ();
            let mut sketcher = Sketcher::new(options);
            prop_assert_eq!(
                sketcher.simhash64_without(&text, Some(set), check),
                simhash64_features(weighted()).unwrap()
            );
            prop_assert_eq!(
                sketcher.simhash128_without(&text, Some(set), check),
                simhash128_features(weighted()).unwrap()
            );
            prop_assert_eq!(
                sketcher.minhash64_without(&text, Some(set), check),
                minima64.finish(check).map(|[word]| word)
            );
            prop_assert_eq!(
                sketcher.minhash128_without(&text, Some(set), check),
                minima128.finish(check).map(join)
            );
            prop_assert_eq!(
                sketcher.signature_without(&text, &family, Some(set), check),
                family.signature(rare.iter().map(|feature| feature.text.as_bytes()))
            );
        }
    }
}
