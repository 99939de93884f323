//! Hashes of the passages of a text.

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

/// Number of features that are hashed at once.
const WINDOWS: usize = 512;

/// Passes the hashes of features, in the order of the text, to the windows.
struct PassageSink<'a, 'c> {
    minima: &'a mut WindowMinima,
    /// Hashes of one batch of features.
    hashes: Vec<[u64; 1]>,
    without: Option<&'a FeatureSet>,
    check: &'a SharedCheck<'c>,
}

impl PassageSink<'_, '_> {
    fn add_hashes(&mut self) {
        for hash in &mut self.hashes {
            // `LEFT_OUT` is reserved, so a hash with this value is decreased by one.
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
    /// Hashes of the passages of a text, by winnowing ([`crate::passages`]): texts that share a
    /// run of `length` tokens share a hash. The hashes are distinct and in ascending order as
    /// signed numbers. The weight of the options does not matter.
    ///
    /// Leaves out the features of the set `without`. A run that two texts share gives both a hash
    /// if one of its features is not in the set.
    ///
    /// Time is linear in the length of the text, plus sorting. Memory is that of the hashes.
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
        // The length may have been checked with other options.
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
