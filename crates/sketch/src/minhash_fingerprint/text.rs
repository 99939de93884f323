//! Computes the MinHash fingerprint of a text: [`Sketcher::minhash64`] and
//! [`Sketcher::minhash128`].

use crate::common_features::{FeatureSet, RareMinima};
use crate::hash::join;
use crate::options::TextOptions;
use crate::sketcher::{Scratch, Sketcher};
use crate::tokens::FeatureExtractor;

impl<const W: usize> Scratch<W> {
    fn minhash_fingerprint(
        &mut self,
        extractor: &mut FeatureExtractor,
        text: &str,
        options: &TextOptions,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Option<[u64; W]> {
        let minima = &mut self.minhash_fingerprint;
        minima.reset();
        match without {
            None => extractor.extract(text, options, minima, check),
            Some(set) => {
                let mut rare = RareMinima { set, minima };
                extractor.extract(text, options, &mut rare, check);
            }
        }
        self.minhash_fingerprint.finish(check)
    }
}

impl Sketcher {
    /// Returns the 64-bit MinHash fingerprint of a text. The fingerprint has one bit of each of 64
    /// minima, which are computed from the set of features of the text. Returns `None` if the text
    /// has no feature.
    ///
    /// Ignores the option `weight`. Takes time and memory like [`Sketcher::simhash64`], but no
    /// memory for counts of features. Instead it takes 8 bytes for each distinct feature while one
    /// of the 64 minima is missing, because the missing minima are then computed from the hashes of
    /// all features. In a long text, a minimum is missing to the end only if almost all features
    /// are equal, or if an attacker chose the features.
    pub fn minhash64(&mut self, text: &str, check: &mut dyn FnMut()) -> Option<u64> {
        self.minhash64_without(text, None, check)
    }

    /// Like [`Sketcher::minhash64`], but ignores the features of the text that are in `without`, a
    /// set of common features. If `without` is `None`, ignores no features. Returns `None` if no
    /// feature remains.
    pub fn minhash64_without(
        &mut self,
        text: &str,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Option<u64> {
        let (scratch, extractor) = (&mut self.scratch64, &mut self.extractor);
        let bits = scratch.minhash_fingerprint(extractor, text, &self.options, without, check);
        bits.map(|[word]| word)
    }

    /// Returns the 128-bit MinHash fingerprint of a text: one bit of each of 128 minima. Returns
    /// `None` if the text has no feature. Otherwise like [`Sketcher::minhash64`].
    pub fn minhash128(&mut self, text: &str, check: &mut dyn FnMut()) -> Option<u128> {
        self.minhash128_without(text, None, check)
    }

    /// Like [`Sketcher::minhash128`], but ignores the features of the text that are in `without`, a
    /// set of common features. If `without` is `None`, ignores no features. Returns `None` if no
    /// feature remains.
    pub fn minhash128_without(
        &mut self,
        text: &str,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Option<u128> {
        let (scratch, extractor) = (&mut self.scratch128, &mut self.extractor);
        let bits = scratch.minhash_fingerprint(extractor, text, &self.options, without, check);
        bits.map(join)
    }
}
