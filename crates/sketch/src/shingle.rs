//! Shingles: features that consist of consecutive tokens. A sink (`FeatureSink`) receives the
//! features of a text.

use crate::feature_sink::{FeatureSink, Windows};
use crate::hash::windows::PAD;
use crate::token_buffer::TokenBuffer;

/// Separator between the words of a feature: the features of `the quick brown` are `the quick` and
/// `quick brown`. No word contains the separator (see [`crate::tokens`]). So different shingles are
/// different features, and users can write a feature by hand: its words with one space between
/// them.
pub const SEPARATOR: u8 = b' ';

/// Separator between the lines of a feature, if the tokens are lines.
pub const LINE_SEPARATOR: u8 = b'\n';

/// Number of bytes of tokens at which a batch is full, so that its shingles are passed to the sink.
const BATCH_BYTES: usize = 1 << 15;

/// Collector of the tokens of a text. Passes each run of `width` consecutive tokens to a sink as
/// one feature.
///
/// The tokens are in one buffer with one separator after each, so a shingle is a range of the
/// buffer. The work is done in batches: many tokens are collected first, then all their shingles
/// are passed to the sink.
pub(crate) struct Shingles {
    width: usize,
    separator: u8,
    tokens: TokenBuffer,
    /// True once a shingle of the current text was passed to the sink.
    any: bool,
}

impl Default for Shingles {
    fn default() -> Self {
        Self {
            width: 1,
            separator: SEPARATOR,
            tokens: TokenBuffer::default(),
            any: false,
        }
    }
}

impl Shingles {
    /// Starts a new text. Its features have `width` tokens with `separator` between them. No token
    /// may contain `separator`.
    pub fn reset(&mut self, width: usize, separator: u8) {
        assert!(width > 0, "a shingle has at least one token");
        (self.width, self.separator) = (width, separator);
        self.any = false;
        self.tokens.clear();
    }

    /// Returns the buffer of the tokens collected since the last batch, to which a caller can add
    /// many tokens at once. The caller must call [`Shingles::emit_full_batch`] afterwards.
    #[inline(always)]
    pub fn tokens(&mut self) -> &mut TokenBuffer {
        &mut self.tokens
    }

    /// Appends `part` to the open token: the start of a token that [`Shingles::push`] or
    /// [`Shingles::end_token`] completes. If no token is open, starts one.
    #[inline]
    pub fn push_part(&mut self, part: &[u8]) {
        self.tokens.push_part(part);
    }

    /// Completes the open token, which must have at least one byte. If the batch of tokens is full,
    /// passes its shingles to `sink`.
    #[inline]
    pub fn end_token(&mut self, sink: &mut impl FeatureSink) {
        self.tokens.close(self.separator);
        self.emit_full_batch(sink);
    }

    /// Completes a token with the bytes `token`. If [`push_part`](Self::push_part) has started a
    /// token, `token` is the last part of it. Otherwise `token` is a whole token. If the batch of
    /// tokens is full, passes its shingles to `sink`.
    #[inline]
    pub fn push(&mut self, token: &[u8], sink: &mut impl FeatureSink) {
        self.tokens.push(token, self.separator);
        self.emit_full_batch(sink);
    }

    /// Adds a character as a token. If the batch of tokens is full, passes its shingles to `sink`.
    #[inline(always)]
    pub fn push_char(&mut self, c: char, sink: &mut impl FeatureSink) {
        self.push(c.encode_utf8(&mut [0; 4]).as_bytes(), sink);
    }

    /// Passes all complete shingles to the sink if at least [`BATCH_BYTES`] bytes are collected.
    #[inline]
    pub fn emit_full_batch(&mut self, sink: &mut impl FeatureSink) {
        if self.tokens.open_start() >= BATCH_BYTES {
            self.emit_batch(sink);
        }
    }

    /// Passes all complete shingles to the sink and drops the tokens that no later shingle needs.
    fn emit_batch(&mut self, sink: &mut impl FeatureSink) {
        let tokens = &mut self.tokens;
        let Some(more) = tokens.count.checked_sub(self.width) else {
            return;
        };
        self.any = true;
        tokens.make_room(PAD, 0);
        sink.add_windows(Windows {
            bytes: &tokens.bytes,
            starts: &tokens.starts[..=tokens.count],
            width: self.width,
            gap: 1,
        });
        let dropped = tokens.drop_first(more + 1);
        sink.bytes_dropped(dropped);
    }

    /// Ends the text, and passes the remaining shingles to the sink. If the text has fewer tokens
    /// than a shingle, they are a single feature. Frees memory that unusually long tokens needed.
    pub fn finish(&mut self, sink: &mut impl FeatureSink) {
        self.emit_batch(sink);
        let tokens = &mut self.tokens;
        if !self.any && tokens.len > 0 {
            sink.add_all(&tokens.bytes, std::iter::once(0..tokens.len - 1));
        }
        tokens.clear();
        tokens.shrink();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_texts::FeatureTexts;
    use proptest::prelude::*;

    fn shingled(width: usize, tokens: &[String]) -> Vec<String> {
        let (mut all, mut shingles) = (FeatureTexts(Vec::new()), Shingles::default());
        // An earlier text, which must have no effect after `reset`.
        shingles.push(b"before", &mut FeatureTexts(Vec::new()));
        shingles.reset(width, SEPARATOR);
        for token in tokens {
            let half = token.len() / 2;
            shingles.push_part(&token.as_bytes()[..half]);
            shingles.push(&token.as_bytes()[half..], &mut all);
        }
        shingles.finish(&mut all);
        all.0
    }

    proptest! {
        #[test]
        fn shingles_are_windows(
            tokens in prop::collection::vec("[a-z]{1,20}", 0..40),
            width in 1_usize..6,
            long in 0_usize..3,
        ) {
            let mut tokens = tokens;
            // These tokens are long enough to fill a batch.
            for i in 0..long.min(tokens.len()) {
                tokens[i] = "x".repeat(BATCH_BYTES / 2 + i);
            }
            let mut expected: Vec<String> = if tokens.is_empty() {
                Vec::new()
            } else if tokens.len() < width {
                vec![tokens.join(" ")]
            } else {
                tokens.windows(width).map(|w| w.join(" ")).collect()
            };
            let mut got = shingled(width, &tokens);
            got.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(got, expected);
        }
    }
}
