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
    /// Returns the 64-bit MinHash fingerprint of a text, one bit of each of 64 minima over its set
    /// of features, or `None` if the text has no feature.
    ///
    /// Ignores the weight of the options. Takes time and memory like [`Sketcher::simhash64`], but
    /// features are not counted. A long text needs 8 bytes more for each distinct feature only if
    /// some bin stays empty: if almost all features of the text are equal, or if an attacker chose
    /// them so.
    pub fn minhash64(&mut self, text: &str, check: &mut dyn FnMut()) -> Option<u64> {
        self.minhash64_without(text, None, check)
    }

    /// Like [`Sketcher::minhash64`], but leaves out the features of a text that are in the set
    /// `without`. Returns `None` if no feature remains.
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

    /// Returns the 128-bit MinHash fingerprint of a text: one bit of each of 128 minima over its
    /// set of features. Returns `None` if the text has no feature. Otherwise like
    /// [`Sketcher::minhash64`].
    pub fn minhash128(&mut self, text: &str, check: &mut dyn FnMut()) -> Option<u128> {
        self.minhash128_without(text, None, check)
    }

    /// Like [`Sketcher::minhash128`], but leaves out the features of a text that are in the set
    /// `without`. Returns `None` if no feature remains.
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
