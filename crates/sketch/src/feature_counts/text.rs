//! Counting the features of a text: from the text to the counts.

use super::{Counted, FeatureCounter};
use crate::common_features::{FeatureSet, RareFeatures};
use crate::hash::windows::WindowHash;
use crate::options::TextOptions;
use crate::tokens::FeatureExtractor;

impl<const W: usize> FeatureCounter<W>
where
    [u64; W]: WindowHash,
{
    /// Counts the features that `extractor` finds in `text` with `options`. Ignores the features in
    /// `without`, a set of common features. Passes the distinct features with their counts to
    /// `each`: many features in each call, in no particular order. Calls the cancellation check
    /// `check` every few 100 kB of text.
    pub fn count_text(
        &mut self,
        extractor: &mut FeatureExtractor,
        text: &str,
        options: &TextOptions,
        without: Option<&FeatureSet>,
        each: impl FnMut(Counted<W>),
        check: &mut dyn FnMut(),
    ) {
        self.reset(expected_features(text, options));
        match without {
            None => extractor.extract(text, options, self, check),
            Some(set) => {
                let mut rare = RareFeatures { set, sink: self };
                extractor.extract(text, options, &mut rare, check);
            }
        }
        self.drain(each, check);
    }
}

/// Estimates the number of distinct features of a text from its length. Guesses from the byte in
/// the middle of the text whether there are spaces between words: yes if the byte is ASCII.
fn expected_features(text: &str, options: &TextOptions) -> usize {
    let spaced = text.as_bytes().get(text.len() / 2).is_none_or(u8::is_ascii);
    text.len() / options.tokens.bytes_per_feature(spaced, options.shingle)
}
