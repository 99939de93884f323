//! b-bit MinHash fingerprint of a text.

use crate::hash::join;
use crate::options::TextOptions;
use crate::sketcher::{Scratch, Sketcher};
use crate::tokens::FeatureExtractor;

impl<const W: usize> Scratch<W> {
    fn minhash(
        &mut self,
        extractor: &mut FeatureExtractor,
        text: &str,
        options: &TextOptions,
        check: &mut dyn FnMut(),
    ) -> Option<[u64; W]> {
        self.b_bit.reset();
        extractor.extract(text, options, &mut self.b_bit, check);
        self.b_bit.finish(check)
    }
}

impl Sketcher {
    /// 64-bit fingerprint of the set of features of a text, one bit of each of 64 minima; `None` if
    /// it has no feature.
    ///
    /// The weight of the options does not matter. Time and memory are those of
    /// [`Sketcher::simhash64`], but features need no counting: only where almost all features of a
    /// long text are equal, or were chosen to avoid a bin, are they kept, 8 bytes for each distinct
    /// one.
    pub fn minhash64(&mut self, text: &str, check: &mut dyn FnMut()) -> Option<u64> {
        let scratch = &mut self.scratch64;
        let bits = scratch.minhash(&mut self.extractor, text, &self.options, check);
        bits.map(|[word]| word)
    }

    /// As [`Sketcher::minhash64`], with 128 bits.
    pub fn minhash128(&mut self, text: &str, check: &mut dyn FnMut()) -> Option<u128> {
        let scratch = &mut self.scratch128;
        let bits = scratch.minhash(&mut self.extractor, text, &self.options, check);
        bits.map(join)
    }
}
