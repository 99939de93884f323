//! Tokens of a text in text order, with their positions in the text.

use std::ops::Range;

use crate::feature_sink::FeatureSink;
use crate::feature_spans::{CharSpan, find_spans};
use crate::memory::GrowVec;
use crate::options::{TextOptions, Tokens};
use crate::tokens::FeatureExtractor;

/// Tokens of one text, in text order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenSequence {
    /// Bytes of the tokens, each followed by the separator, as [`crate::feature_spans`] expects.
    bytes: Vec<u8>,
    /// Offset in `bytes` of the start of each token. The last element is the length of `bytes`.
    starts: Vec<usize>,
    /// Byte after each token in `bytes`. `None` if the tokens are characters, which have no
    /// separator.
    separator: Option<u8>,
}

impl TokenSequence {
    /// Splits `text` into tokens. Ignores `options.shingle`. Calls the cancellation check `check`
    /// every few 100 kB.
    #[must_use]
    pub fn new(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Self {
        let mut sequence = Self {
            separator: Self::separator(options.tokens),
            ..Self::default()
        };
        let single = TextOptions {
            shingle: 1,
            ..*options
        };
        FeatureExtractor::default().extract(text, &single, &mut sequence, check);
        sequence.starts.grow_push(sequence.bytes.len());
        sequence
    }

    /// Returns the byte that follows each token in [`TokenSequence::bytes()`], for tokens of the
    /// kind `tokens`. Returns `None` if the tokens are characters, which have no separator.
    #[must_use]
    pub fn separator(tokens: Tokens) -> Option<u8> {
        tokens.separator()
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns true if the text has no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the tokens, each followed by the separator.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the offset of each token in [`TokenSequence::bytes()`], in text order. The last
    /// element is the total number of bytes.
    #[must_use]
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Returns the range in [`TokenSequence::bytes()`] of the consecutive tokens `tokens`, counted
    /// from 0 in text order. The range does not include the separator after the last token.
    #[must_use]
    pub fn range(&self, tokens: Range<usize>) -> Range<usize> {
        let separator = usize::from(self.separator.is_some());
        self.starts[tokens.start]..self.starts[tokens.end] - separator
    }

    /// Returns the position in the text of each run of `runs`, in the same order. A run is a range
    /// of tokens, counted from 0 in text order. The sequence does not store positions, so this
    /// function tokenizes the text again. `text` and `options` are those of [`TokenSequence::new`].
    /// A result is `None` if its tokens cannot be located, which happens after a megabyte without a
    /// word boundary. If the text is HTML, the result refers to its visible text.
    #[must_use]
    pub fn spans(
        &self,
        text: &str,
        options: &TextOptions,
        runs: &[Range<usize>],
        check: &mut dyn FnMut(),
    ) -> Vec<Option<CharSpan>> {
        let mut ranges = Vec::new();
        ranges.grow_all(runs.iter().map(|run| self.range(run.clone())));
        find_spans(text, options, &self.bytes, &ranges, check)
    }
}

impl FeatureSink for TokenSequence {
    const IN_ORDER: bool = true;

    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        for feature in features {
            self.starts.grow_push(self.bytes.len());
            self.bytes.grow_by(&bytes[feature]);
            if let Some(separator) = self.separator {
                self.bytes.grow_push(separator);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_in_the_text() {
        let text = "A rose – is a ROSE!";
        let options = TextOptions::PASSAGES;
        let sequence = TokenSequence::new(text, &options, &mut || ());
        assert_eq!(sequence.bytes(), b"a rose is a rose ");
        assert_eq!(sequence.starts(), [0, 2, 7, 10, 12, 17]);
        assert_eq!(&sequence.bytes()[sequence.range(1..3)], b"rose is");
        let spans = sequence.spans(text, &options, &[1..3, 4..5], &mut || ());
        let spans: Vec<_> = spans
            .into_iter()
            .flatten()
            .map(CharSpan::code_points)
            .collect();
        assert_eq!(spans, [2..11, 14..18]);
        assert!(TokenSequence::new(" ", &options, &mut || ()).is_empty());
    }
}
