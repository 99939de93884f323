//! Shingles: features of consecutive tokens.

use std::ops::Range;

use crate::memory::GrowVec;

/// Separator between the words of a feature. No word contains it (see [`crate::tokens`]), so
/// different shingles are different features, and users can write the features of a text
/// themselves: those of `the quick brown` are `the quick` and `quick brown`.
pub const SEPARATOR: u8 = b' ';

/// Separator between the lines of a feature.
pub const LINE_SEPARATOR: u8 = b'\n';

/// Receiver of features, one call for each occurrence.
pub(crate) trait FeatureSink {
    /// True if features are passed in the order of the text. Else their order is the one in which
    /// they are hashed fastest.
    const IN_ORDER: bool = false;

    /// Adds features, which are ranges of `bytes`.
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>);

    /// Adds every window of `bytes` from one of `starts` to the one `width` later. There is at
    /// least one, and [`crate::hash::windows::PAD`] more bytes after the last.
    fn add_windows(&mut self, bytes: &[u8], starts: &[u32], width: usize) {
        let each = starts.iter().zip(&starts[width..]);
        self.add_all(
            bytes,
            each.map(|(&start, &end)| start as usize..end as usize),
        );
    }

    /// Called when the caller removes the first `len` bytes of the buffer that features are ranges
    /// of: ranges of the next features count from there.
    fn bytes_dropped(&mut self, len: usize) {
        let _ = len;
    }
}

/// Bytes of tokens that are gathered before their features are passed to the sink.
const BATCH_BYTES: usize = 1 << 15;
/// Bytes of a block of ASCII text.
pub(crate) const BLOCK: usize = 64;
/// Bytes after a block that are read.
const PAD: usize = 16;
/// A block with padding.
pub(crate) type PaddedBlock = [u8; BLOCK + PAD];

/// Bytes of the buffer that are kept from one text to the next.
const KEPT_BYTES: usize = 1 << 18;

/// Number of length classes.
const CLASSES: usize = 4;

/// Length class of a feature: XXH3 has separate code for up to 8, 16 and 32 bytes.
#[inline(always)]
const fn class(len: usize) -> usize {
    (len > 8) as usize + (len > 16) as usize + (len > 32) as usize
}

/// Gathers tokens and makes a feature of every `width` consecutive ones.
///
/// Tokens are packed with one separator after each, so a shingle is one range of the buffer. Work
/// is done in batches: first many tokens, then all their shingles.
pub(crate) struct Shingles {
    width: usize,
    separator: u8,
    /// Tokens up to `len`; the rest is unused room.
    bytes: Vec<u8>,
    len: usize,
    /// Starts of the finished tokens in `bytes`.
    starts: Vec<usize>,
    /// Start of the token that is being added.
    open: usize,
    /// Room to sort shingles by their length class.
    by_class: Vec<usize>,
    /// True once a feature was passed to the sink.
    any: bool,
}

impl Default for Shingles {
    fn default() -> Self {
        Self {
            width: 1,
            separator: SEPARATOR,
            bytes: Vec::new(),
            len: 0,
            starts: Vec::new(),
            open: 0,
            by_class: Vec::new(),
            any: false,
        }
    }
}

impl Shingles {
    /// Starts a text, whose features have `width` tokens with `separator` between them. No token
    /// contains it.
    pub fn reset(&mut self, width: usize, separator: u8) {
        assert!(width > 0, "a shingle has at least one token");
        (self.width, self.separator) = (width, separator);
        (self.len, self.open, self.any) = (0, 0, false);
        self.starts.clear();
    }

    /// Adds a part of a token.
    #[inline]
    pub fn push_part(&mut self, part: &[u8]) {
        // Room for the separator too.
        let needed = self.len + part.len() + 1;
        if self.bytes.len() < needed {
            self.make_room(needed);
        }
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    #[cold]
    fn make_room(&mut self, needed: usize) {
        let len = needed
            .next_multiple_of(1 << 12)
            .max(self.bytes.len() * 3 / 2);
        self.bytes.grow_exact(len, 0);
    }

    /// Ends a token, of which at least one byte was added.
    #[inline]
    pub fn end_token(&mut self, sink: &mut impl FeatureSink) {
        self.close_token();
        self.emit_full_batch(sink);
    }

    #[inline(always)]
    fn close_token(&mut self) {
        debug_assert!(self.len > self.open, "an empty token");
        self.bytes[self.len] = self.separator;
        self.len += 1;
        self.starts.grow_push(self.open);
        self.open = self.len;
    }

    #[inline]
    fn emit_full_batch(&mut self, sink: &mut impl FeatureSink) {
        if self.open >= BATCH_BYTES {
            self.emit_batch(sink);
        }
    }

    /// Adds a token.
    #[inline]
    pub fn push(&mut self, token: &[u8], sink: &mut impl FeatureSink) {
        self.push_part(token);
        self.end_token(sink);
    }

    /// Adds a character as a token.
    #[inline(always)]
    pub fn push_char(&mut self, c: char, sink: &mut impl FeatureSink) {
        let mut utf8 = [0; 4];
        let len = c.encode_utf8(&mut utf8).len();
        if self.bytes.len() < self.len + 5 {
            self.make_room(self.len + 5);
        }
        self.bytes[self.len..][..4].copy_from_slice(&utf8);
        self.len += len;
        self.end_token(sink);
    }

    /// Adds each character of `chars` as a token, each of three bytes.
    #[inline]
    pub fn push_chars_of_three(&mut self, chars: &[[u8; 3]], sink: &mut impl FeatureSink) {
        let needed = self.len + 4 * chars.len();
        if self.bytes.len() < needed {
            self.make_room(needed);
        }
        debug_assert!(self.len == self.open, "an open token");
        let (fours, _) = self.bytes[self.len..needed].as_chunks_mut::<4>();
        for (four, &[a, b, c]) in fours.iter_mut().zip(chars) {
            *four = [a, b, c, self.separator];
        }
        self.starts.grow_all((self.len..needed).step_by(4));
        (self.len, self.open) = (needed, needed);
        self.emit_full_batch(sink);
    }

    /// Adds the tokens of a block of ASCII text. `edges` has a bit where a token begins or ends;
    /// `open` is true if one is open at the start of the block. Returns true if one is open at its
    /// end.
    #[inline(always)]
    pub fn push_block(
        &mut self,
        block: &PaddedBlock,
        mut edges: u64,
        open: bool,
        sink: &mut impl FeatureSink,
    ) -> bool {
        // The block, a separator for each token, and room for copying beyond.
        let needed = self.len + 2 * BLOCK + 2 * PAD;
        if self.bytes.len() < needed {
            self.make_room(needed);
        }
        if open {
            if edges == 0 {
                self.copy_short(block, 0, BLOCK);
                return true;
            }
            self.copy_short(block, 0, edges.trailing_zeros() as usize);
            self.close_word();
            edges &= edges - 1;
        }
        while edges != 0 {
            let start = edges.trailing_zeros() as usize;
            edges &= edges - 1;
            if edges == 0 {
                self.copy_short(block, start, BLOCK);
                self.emit_full_batch(sink);
                return true;
            }
            self.copy_short(block, start, edges.trailing_zeros() as usize);
            self.close_word();
            edges &= edges - 1;
        }
        self.emit_full_batch(sink);
        false
    }

    /// Appends `block[start..end]`. Most words are short, and copying a fixed number of bytes is
    /// much faster than an exact one.
    #[inline(always)]
    fn copy_short(&mut self, block: &PaddedBlock, start: usize, end: usize) {
        let len = end - start;
        let out = &mut self.bytes[self.len..];
        out[..PAD].copy_from_slice(&block[start..start + PAD]);
        if len > PAD {
            out[PAD..len].copy_from_slice(&block[start + PAD..end]);
        }
        self.len += len;
    }

    /// Ends an ASCII token; drops it if it consists of `_` alone, since a segment without letter or
    /// digit is no word.
    #[inline(always)]
    fn close_word(&mut self) {
        if self.bytes[self.open] == b'_'
            && self.bytes[self.open..self.len]
                .iter()
                .all(|&byte| byte == b'_')
        {
            self.len = self.open;
        } else {
            self.close_token();
        }
    }

    /// Ends the ASCII token that [`Shingles::push_block`] left open.
    pub fn end_block_token(&mut self, sink: &mut impl FeatureSink) {
        self.close_word();
        self.emit_full_batch(sink);
    }

    /// Passes all complete shingles to the sink and drops the tokens that no later shingle needs.
    fn emit_batch(&mut self, sink: &mut impl FeatureSink) {
        let count = self.starts.len();
        if count < self.width {
            return;
        }
        self.any = true;
        self.emit_shingles(sink);
        let kept = count + 1 - self.width;
        let from = self.starts.get(kept).copied().unwrap_or(self.open);
        self.bytes.copy_within(from..self.len, 0);
        sink.bytes_dropped(from);
        self.starts.drain(..kept);
        self.starts.iter_mut().for_each(|start| *start -= from);
        self.len -= from;
        self.open -= from;
    }

    /// Passes all complete shingles to the sink: in the order of the text, or grouped by length
    /// class, since the hash function branches on the length, which is hard to predict.
    fn emit_shingles<S: FeatureSink>(&mut self, sink: &mut S) {
        let count = self.starts.len() + 1 - self.width;
        let shingle = |at: usize| {
            let end = self
                .starts
                .get(at + self.width)
                .copied()
                .unwrap_or(self.open);
            self.starts[at]..end - 1
        };
        if S::IN_ORDER {
            return sink.add_all(&self.bytes, (0..count).map(shingle));
        }
        self.by_class.grow_to(CLASSES * count, 0);
        let mut lens = [0; CLASSES];
        for at in 0..count {
            let class = class(shingle(at).len());
            self.by_class[class * count + lens[class]] = at;
            lens[class] += 1;
        }
        for (class, len) in lens.into_iter().enumerate() {
            let class = &self.by_class[class * count..][..len];
            sink.add_all(&self.bytes, class.iter().map(|&at| shingle(at)));
        }
    }

    /// Ends the text. One with fewer tokens than a shingle is a single feature. Frees memory that
    /// unusually long tokens needed.
    pub fn finish(&mut self, sink: &mut impl FeatureSink) {
        self.emit_batch(sink);
        if !self.any && self.len > 0 {
            sink.add_all(&self.bytes, std::iter::once(0..self.len - 1));
        }
        self.bytes.truncate(KEPT_BYTES);
        self.bytes.shrink_to(KEPT_BYTES);
        (self.len, self.open) = (0, 0);
        self.starts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_texts::FeatureTexts;
    use proptest::prelude::*;

    fn shingled(width: usize, tokens: &[String]) -> Vec<String> {
        let (mut all, mut shingles) = (FeatureTexts(Vec::new()), Shingles::default());
        // An earlier text, which reset() has to forget.
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
            // Long enough to fill a batch.
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
