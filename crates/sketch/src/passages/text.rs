//! Chooses the hashes of the passages of a text: [`Sketcher::passages`]. A window is a fixed number
//! of consecutive feature hashes, and the minimum of each window is chosen.

use std::ops::Range;

use super::minima::LEFT_OUT;
use super::{PassageLength, WindowMinima};
use crate::check::SharedCheck;
use crate::common_features::FeatureSet;
use crate::feature_sink::{FeatureSink, Position, Windows};
use crate::hash::FeatureHash;
use crate::hash::windows::WindowHash;
use crate::memory::{Grow, GrowVec};
use crate::sketcher::Sketcher;

/// Number of features in a batch, which are hashed together.
const WINDOWS: usize = 512;

/// Sink that hashes the features of a text in text order, and passes the hashes to `minima`, which
/// finds the minimum of each window of consecutive hashes.
struct PassageSink<'a, 'c> {
    minima: &'a mut WindowMinima,
    /// Hashes of one batch of features.
    hashes: Vec<[u64; 1]>,
    /// Set of common features, which are left out, or `None` if no feature is left out.
    without: Option<&'a FeatureSet>,
    check: &'a SharedCheck<'c>,
}

impl PassageSink<'_, '_> {
    /// Passes the batch of feature hashes in `hashes` to `minima`. First replaces the hash of each
    /// feature of the set `without` by [`LEFT_OUT`].
    fn add_hashes(&mut self) {
        for hash in &mut self.hashes {
            // `LEFT_OUT` is reserved, so a feature hash with this value is decreased by one.
            let known = hash[0].min(LEFT_OUT - 1);
            let left_out = self.without.is_some_and(|set| set.contains(hash[0]));
            *hash = [if left_out { LEFT_OUT } else { known }];
        }
        self.minima.add(&self.hashes, &mut || self.check.call());
    }
}

impl FeatureSink for PassageSink<'_, '_> {
    const IN_ORDER: bool = true;

    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        self.hashes.clear();
        let hashes = features.map(|feature| FeatureHash::new(&bytes[feature]));
        self.hashes.grow_all(hashes);
        self.add_hashes();
    }

    fn add_windows(&mut self, windows: Windows<impl Position>) {
        for windows in windows.pieces(WINDOWS) {
            self.hashes.clear();
            self.hashes.ensure_room(WINDOWS);
            WindowHash::push_windows(windows, &mut self.hashes);
            self.add_hashes();
        }
    }
}

impl Sketcher {
    /// Returns hashes of the passages of a text, chosen by winnowing ([`crate::passages`]): texts
    /// that share a run of `length` tokens share a hash. The hashes are distinct and in ascending
    /// order as signed numbers. Ignores the option `weight`.
    ///
    /// Leaves out the features that are in `without`, a set of common features; `None` leaves out
    /// nothing. Two texts that share a run of `length` tokens then share a hash if at least one
    /// feature of the run is not in the set.
    ///
    /// Time is linear in the length of the text, plus the time to sort the hashes. Memory is that
    /// of the hashes. Calls the cancellation check `check` every few 100 kB.
    ///
    /// ```
    /// use neardup_sketch::passages::PassageLength;
    /// use neardup_sketch::{Sketcher, TextOptions};
    ///
    /// let options = TextOptions { shingle: 2, ..TextOptions::PASSAGES };
    /// let length = PassageLength::new(4, &options).unwrap();
    /// let mut sketcher = Sketcher::new(options);
    /// let a = sketcher.passages("It was the best of times", length, None, &mut || ());
    /// let b = sketcher.passages("the best of times again", length, None, &mut || ());
    /// assert!(a.iter().any(|hash| b.contains(hash)));
    /// ```
    pub fn passages(
        &mut self,
        text: &str,
        length: PassageLength,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Vec<u64> {
        // `length` may have been checked with other options, and be less than a shingle.
        let window = (length.get() + 1)
            .saturating_sub(self.options.shingle)
            .max(1);
        self.minima.reset(window);
        let check = SharedCheck::new(check);
        let mut sink = PassageSink {
            minima: &mut self.minima,
            hashes: Vec::new(),
            without,
            check: &check,
        };
        let (extractor, options) = (&mut self.extractor, &self.options);
        extractor.extract(text, options, &mut sink, &mut || check.call());
        self.minima.finish(&mut || check.call())
    }
}
