//! Computes the MinHash signature of a text: [`Sketcher::signature`].

use std::ops::Range;

use super::{HashFamily, SignatureBuilder};
use crate::check::SharedCheck;
use crate::common_features::{FeatureSet, RareFeatures};
use crate::feature_sink::FeatureSink;
use crate::sketcher::Sketcher;

/// Sink that adds the features of a text to a signature.
struct SignatureSink<'a> {
    family: &'a HashFamily,
    builder: &'a mut SignatureBuilder,
    /// Number of hash values computed since the last call of `check`.
    unchecked: usize,
    check: &'a SharedCheck<'a>,
}

/// Number of hash values between two calls of the cancellation check `check`: some ten milliseconds
/// in the slowest scheme.
const CHECK_EVERY: usize = 1 << 22;

impl FeatureSink for SignatureSink<'_> {
    #[inline]
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let (builder, family) = (&mut *self.builder, self.family);
        if let Some(linear) = family.linear() {
            return features.for_each(|feature| builder.add_linear(linear, &bytes[feature]));
        }
        for feature in features {
            builder.add(family, &bytes[feature]);
            self.unchecked += family.hashes();
            if self.unchecked >= CHECK_EVERY {
                self.unchecked = 0;
                self.check.call();
            }
        }
    }
}

impl Sketcher {
    /// Returns the MinHash signature of a text with the hash functions of `family`, or `None` if
    /// the text has no feature. Ignores the option `weight`, because a signature describes a set.
    ///
    /// Time is linear in the length of the text. Takes as much memory as [`Sketcher::simhash64`],
    /// except for the counts of features, which a signature does not need. Calls the cancellation
    /// check `check` every few 100 kB.
    pub fn signature(
        &mut self,
        text: &str,
        family: &HashFamily,
        check: &mut dyn FnMut(),
    ) -> Option<Vec<u32>> {
        self.signature_without(text, family, None, check)
    }

    /// Like [`Sketcher::signature`], but ignores the features of the text that are in `without`, a
    /// set of common features. If `without` is `None`, ignores no features. Returns `None` if no
    /// feature remains.
    pub fn signature_without(
        &mut self,
        text: &str,
        family: &HashFamily,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Option<Vec<u32>> {
        let builder = &mut self.signature;
        builder.reset(family);
        let check = SharedCheck::new(check);
        let mut sink = SignatureSink {
            family,
            builder,
            unchecked: 0,
            check: &check,
        };
        let (extractor, options) = (&mut self.extractor, &self.options);
        match without {
            None => extractor.extract(text, options, &mut sink, &mut || check.call()),
            Some(set) => {
                let sink = &mut sink;
                let mut rare = RareFeatures { set, sink };
                extractor.extract(text, options, &mut rare, &mut || check.call());
            }
        }
        self.signature.finish(family).map(<[u32]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minhash::Scheme;
    use crate::options::TextOptions;
    use crate::test_texts::any_text;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// The signature of a text equals the signature of its features given one by one.
        #[test]
        fn equals_that_of_the_features(text in any_text(), seed in 0_u64..3) {
            let options = TextOptions::SET;
            let features = crate::features(&text, &options, &mut || ());
            for scheme in Scheme::ALL {
                let family = HashFamily::new(scheme, 64, seed).unwrap();
                let given = family.signature(features.iter().map(|f| f.text.as_bytes()));
                let signature = Sketcher::new(options).signature(&text, &family, &mut || ());
                prop_assert_eq!(signature, given);
            }
        }
    }

    #[test]
    fn short_texts() {
        let family = HashFamily::new(Scheme::Neardup1, 128, 0).unwrap();
        let mut sketcher = Sketcher::new(TextOptions::SET);
        let mut of = |text| sketcher.signature(text, &family, &mut || ());
        assert_eq!(of(""), None);
        assert_eq!(of("...!"), None);
        // A text of fewer words than a shingle has one feature.
        assert_eq!(of("Hello, World"), family.signature([&b"hello world"[..]]));
        assert_eq!(
            of("one two three"),
            family.signature([&b"one two three"[..]])
        );
    }
}
