//! Features of consecutive tokens.

use crate::hash::feature_hash;

/// What stands between the tokens of a feature. No token contains it (see [`crate::tokens`]), so
/// different shingles are different features, and users can write the features of a text themselves:
/// those of `the quick brown` are `the quick` and `quick brown`.
pub const SEPARATOR: u8 = b' ';

/// Takes hashes of features, occurrence by occurrence.
pub(crate) trait HashSink {
    /// Takes some hashes.
    fn add_all(&mut self, hashes: &[u64]);
}

impl HashSink for crate::counts::FeatureCounts {
    fn add_all(&mut self, hashes: &[u64]) {
        crate::counts::FeatureCounts::add_all(self, hashes);
    }
}

/// Bytes of tokens after which the features are hashed.
const BATCH_BYTES: usize = 1 << 15;
/// Bytes of the buffer that are kept from one text to the next.
const KEPT_BYTES: usize = 1 << 18;

/// Gathers tokens and hashes every `width` consecutive ones.
///
/// Tokens are packed with one separator after each, so a shingle is one stretch of the buffer,
/// and work is done in batches: first many tokens, then the hashes of all their shingles.
pub(crate) struct Shingles {
    width: usize,
    /// Tokens up to `len`; what is beyond is room to write into.
    bytes: Vec<u8>,
    len: usize,
    /// Where the finished tokens in `bytes` begin.
    starts: Vec<usize>,
    /// Where the token that is being added begins.
    open: usize,
    hashes: Vec<u64>,
    /// Whether `width` tokens were seen.
    any: bool,
}

impl Shingles {
    pub fn new(width: usize) -> Self {
        assert!(width > 0, "a shingle has at least one token");
        Self {
            width,
            bytes: Vec::new(),
            len: 0,
            starts: Vec::new(),
            open: 0,
            hashes: Vec::new(),
            any: false,
        }
    }

    /// Forgets everything, for the next text.
    pub fn reset(&mut self) {
        self.bytes.truncate(KEPT_BYTES);
        self.bytes.shrink_to(KEPT_BYTES);
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
        self.bytes.resize(
            needed
                .next_multiple_of(1 << 12)
                .max(self.bytes.len() * 3 / 2),
            0,
        );
    }

    /// Ends a token, of which at least one byte was added.
    #[inline]
    pub fn end_token(&mut self, sink: &mut impl HashSink) {
        debug_assert!(self.len > self.open, "an empty token");
        self.bytes[self.len] = SEPARATOR;
        self.len += 1;
        self.starts.push(self.open);
        self.open = self.len;
        if self.len >= BATCH_BYTES {
            self.flush(sink);
        }
    }

    /// Adds a token.
    #[inline]
    pub fn push(&mut self, token: &[u8], sink: &mut impl HashSink) {
        self.push_part(token);
        self.end_token(sink);
    }

    /// The token that is being added, as far as it has come.
    pub fn open_token(&self) -> &[u8] {
        &self.bytes[self.open..self.len]
    }

    /// Drops the token that is being added.
    pub fn abandon_token(&mut self) {
        self.len = self.open;
    }

    /// Hashes all complete shingles; keeps the tokens that the next shingles need.
    fn flush(&mut self, sink: &mut impl HashSink) {
        debug_assert_eq!(self.open, self.len, "between tokens");
        let count = self.starts.len();
        if count < self.width {
            return;
        }
        self.any = true;
        self.hashes.clear();
        let ends = self.starts[self.width..].iter().chain([&self.open]);
        self.hashes.extend(
            self.starts
                .iter()
                .zip(ends)
                .map(|(&a, &b)| feature_hash(&self.bytes[a..b - 1])),
        );
        sink.add_all(&self.hashes);
        let kept = count + 1 - self.width;
        let from = self.starts.get(kept).copied().unwrap_or(self.open);
        self.bytes.copy_within(from..self.len, 0);
        self.starts.drain(..kept);
        self.starts.iter_mut().for_each(|start| *start -= from);
        self.len -= from;
        self.open = self.len;
    }

    /// Ends the text. One with fewer tokens than a shingle is a single feature.
    pub fn finish(&mut self, sink: &mut impl HashSink) {
        self.flush(sink);
        if !self.any && self.len > 0 {
            sink.add_all(&[feature_hash(&self.bytes[..self.len - 1])]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct All(Vec<u64>);

    impl HashSink for All {
        fn add_all(&mut self, hashes: &[u64]) {
            self.0.extend_from_slice(hashes);
        }
    }

    fn shingled(width: usize, tokens: &[String]) -> Vec<u64> {
        let (mut all, mut shingles) = (All(Vec::new()), Shingles::new(width));
        // A text before, so that what it leaves behind would be seen.
        shingles.push(b"before", &mut All(Vec::new()));
        shingles.reset();
        for token in tokens {
            let half = token.len() / 2;
            shingles.push_part(b"to be dropped");
            shingles.abandon_token();
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
            let expected: Vec<u64> = if tokens.is_empty() {
                Vec::new()
            } else if tokens.len() < width {
                vec![feature_hash(tokens.join(" ").as_bytes())]
            } else {
                tokens.windows(width).map(|w| feature_hash(w.join(" ").as_bytes())).collect()
            };
            prop_assert_eq!(shingled(width, &tokens), expected);
        }
    }
}
