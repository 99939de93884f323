//! The [`Sketcher`]: options, and working memory that is reused from text to text.
//!
//! The methods that compute a result are in other files: `simhash64` and `simhash128` in
//! `simhash/text.rs`, `minhash64` and `minhash128` in `minhash_fingerprint/text.rs`, `signature` in
//! `minhash/text.rs`, `passages` in `passages/text.rs`, `containment` and `jaccard_similarity` in
//! `similarity.rs`.

use std::cell::Cell;

use crate::common_features::FeatureSet;
use crate::feature_counts::{Counted, FeatureCounter};
use crate::hash::windows::WindowHash;
use crate::memory::GrowVec;
use crate::minhash::SignatureBuilder;
use crate::minhash_fingerprint::FingerprintBuilder;
use crate::options::TextOptions;
use crate::passages::WindowMinima;
use crate::simhash::GroupedAccumulator;
use crate::tokens::FeatureExtractor;

/// Computes fingerprints, signatures and similarities of texts.
///
/// A sketcher keeps some hundred kilobytes of working memory, so that the next text needs no
/// allocation. Keep one for many texts. Results depend only on the text and the options.
///
/// All methods that read a text take a callback `check`, which they call every few 100 kB of work.
/// The caller can cancel the computation by unwinding from `check`. The methods also unwind when
/// memory cannot be allocated ([`crate::memory`]). In both cases the sketcher can be used again.
///
/// ```
/// use neardup_sketch::{Sketcher, TextOptions, hamming64};
///
/// let mut sketcher = Sketcher::new(TextOptions::SIMHASH);
/// let mut fingerprint = |text: &str| sketcher.simhash64(text, &mut || ());
/// let a = fingerprint("The quick brown fox jumps over the lazy dog").unwrap();
/// let b = fingerprint("the QUICK brown fox jumps over the lazy dog!").unwrap();
/// assert_eq!(hamming64(a, b), 0);
/// assert_eq!(fingerprint("..."), None);
/// ```
pub struct Sketcher {
    pub(crate) options: TextOptions,
    pub(crate) extractor: FeatureExtractor,
    pub(crate) scratch64: Scratch<1>,
    pub(crate) scratch128: Scratch<2>,
    pub(crate) signature: SignatureBuilder,
    pub(crate) minima: WindowMinima,
}

/// Working memory for feature hashes and fingerprints of `64 * W` bits.
pub(crate) struct Scratch<const W: usize> {
    pub counter: FeatureCounter<W>,
    pub accumulator: GroupedAccumulator<W>,
    pub minhash_fingerprint: FingerprintBuilder<W>,
}

impl<const W: usize> Default for Scratch<W>
where
    [u64; W]: WindowHash,
{
    fn default() -> Self {
        Self {
            counter: FeatureCounter::default(),
            accumulator: GroupedAccumulator::default(),
            minhash_fingerprint: FingerprintBuilder::default(),
        }
    }
}

impl Sketcher {
    /// Creates a sketcher that turns texts into features according to `options`.
    #[must_use]
    pub fn new(options: TextOptions) -> Self {
        Self {
            options,
            extractor: FeatureExtractor::default(),
            scratch64: Scratch::default(),
            scratch128: Scratch::default(),
            signature: SignatureBuilder::default(),
            minima: WindowMinima::default(),
        }
    }

    /// Runs `compute` with the sketcher of this thread, and with `options`. The sketcher reuses the
    /// memory of the thread's earlier texts. If `compute` unwinds, the sketcher is dropped, and the
    /// next call creates a new one. A call of `with_thread_local` within `compute` has a separate
    /// sketcher.
    pub fn with_thread_local<R>(options: TextOptions, compute: impl FnOnce(&mut Self) -> R) -> R {
        thread_local! {
            static SKETCHER: Cell<Option<Box<Sketcher>>> = const { Cell::new(None) };
        }
        let mut sketcher = match SKETCHER.take() {
            Some(mut sketcher) => {
                sketcher.set_options(options);
                sketcher
            }
            None => Box::new(Self::new(options)),
        };
        let result = compute(&mut sketcher);
        SKETCHER.set(Some(sketcher));
        result
    }

    /// Returns the options by which this sketcher turns texts into features.
    #[must_use]
    pub fn options(&self) -> &TextOptions {
        &self.options
    }

    /// Returns the 64-bit hashes of the distinct features of a text, in no particular order. Calls
    /// `check` every few 100 kB.
    pub fn feature_hashes(&mut self, text: &str, check: &mut dyn FnMut()) -> Vec<u64> {
        self.feature_hashes_without(text, None, check)
    }

    /// Like [`Sketcher::feature_hashes`], but ignores the features that are in `without`, a set of
    /// common features. If `without` is `None`, ignores no features.
    pub fn feature_hashes_without(
        &mut self,
        text: &str,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Vec<u64> {
        let mut hashes = Vec::new();
        let (counter, extractor) = (&mut self.scratch64.counter, &mut self.extractor);
        let add = |counted: Counted<1>| hashes.grow_by(counted.hashes.as_flattened());
        counter.count_text(extractor, text, &self.options, without, add, check);
        hashes
    }

    /// Sets the options by which later texts are turned into features.
    pub fn set_options(&mut self, options: TextOptions) {
        self.options = options;
    }
}
