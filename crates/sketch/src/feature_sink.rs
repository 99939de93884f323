//! Interface between the code that finds the features of a text and the code that uses them, such
//! as a fingerprint. A feature is one token or several consecutive tokens, with separators between
//! them.

use std::ops::Range;

/// Type of the byte offset at which a token starts in a buffer: `u32` or `usize`.
pub(crate) trait Position: Copy {
    /// Returns the offset as an index into the buffer.
    fn index(self) -> usize;
}

impl Position for u32 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

impl Position for usize {
    #[inline(always)]
    fn index(self) -> usize {
        self
    }
}

/// Batch of features that consist of `width` consecutive tokens each. A feature starts at each
/// token that has enough tokens after it. A feature contains the separators between its tokens, but
/// not the `gap` bytes of separator after its last token.
#[derive(Clone, Copy)]
pub(crate) struct Windows<'a, P> {
    /// Tokens with separators, followed by [`crate::hash::windows::PAD`] bytes that the hash
    /// functions may read but that belong to no token.
    pub bytes: &'a [u8],
    /// Byte offset in `bytes` of the start of each token. The last element is the offset after the
    /// last token and its separator.
    pub starts: &'a [P],
    /// Number of tokens in each feature.
    pub width: usize,
    /// Number of bytes of the separator after each token.
    pub gap: usize,
}

impl<P: Position> Windows<'_, P> {
    /// Returns the number of features in the batch.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.starts.len() - self.width
    }

    /// Returns the range of feature `at` in `bytes`.
    #[inline(always)]
    pub fn range(&self, at: usize) -> Range<usize> {
        self.starts[at].index()..self.starts[at + self.width].index() - self.gap
    }

    /// Divides this batch into smaller batches of at most `most` features each. The features stay
    /// in order.
    pub fn pieces(self, most: usize) -> impl Iterator<Item = Self> {
        let count = self.len();
        (0..count).step_by(most).map(move |first| Self {
            starts: &self.starts[first..count.min(first + most) + self.width],
            ..self
        })
    }
}

/// Receiver of the features of a text. It receives every occurrence of each feature.
pub(crate) trait FeatureSink {
    /// True if features must be passed to the sink in text order. If false, they are passed in the
    /// order in which hashing is fastest.
    const IN_ORDER: bool = false;

    /// Receives some features. Each feature is a byte range of `bytes`, a buffer of tokens.
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>);

    /// Receives a batch of features of consecutive tokens. It has at least one feature.
    fn add_windows(&mut self, windows: Windows<impl Position>) {
        if Self::IN_ORDER {
            self.add_all(
                windows.bytes,
                (0..windows.len()).map(|at| windows.range(at)),
            );
            return;
        }
        for piece in windows.pieces(BY_LENGTH) {
            let range = |at: &u8| piece.range(usize::from(*at));
            let mut members = [[0; BY_LENGTH]; CLASSES];
            let mut lens = [0; CLASSES];
            for at in 0..piece.len() {
                let class = class(piece.range(at).len());
                members[class][lens[class]] = at as u8;
                lens[class] += 1;
            }
            for (members, len) in members.iter().zip(lens) {
                self.add_all(piece.bytes, members[..len].iter().map(range));
            }
        }
    }

    /// Tells the sink that the caller has removed the first `len` bytes of its buffer of tokens.
    /// The ranges of later features are relative to the new start of this buffer.
    fn bytes_dropped(&mut self, len: usize) {
        let _ = len;
    }
}

/// Maximum number of features that are sorted by length class at once. The index of a feature in
/// such a group fits into a byte.
const BY_LENGTH: usize = 1 << 8;

/// Number of length classes of features; see [`class`].
const CLASSES: usize = 4;

/// Returns the length class of a feature of `len` bytes, 0 to 3. XXH3 has separate code for up to
/// 8, 16 and 32 bytes, so features of a class take the same branches.
#[inline(always)]
const fn class(len: usize) -> usize {
    (len > 8) as usize + (len > 16) as usize + (len > 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sink that records the ranges of features, one vector for each call.
    #[derive(Default)]
    struct Calls(Vec<Vec<Range<usize>>>);

    impl FeatureSink for Calls {
        fn add_all(&mut self, _: &[u8], features: impl Iterator<Item = Range<usize>>) {
            self.0.push(features.collect());
        }
    }

    proptest! {
        #[test]
        fn windows_are_passed_once_by_their_length(
            lens in prop::collection::vec(2_usize..30, 1..1500),
            width in 1_usize..5,
        ) {
            prop_assume!(lens.len() >= width);
            let mut starts = vec![0];
            for len in lens {
                starts.push(starts.last().unwrap() + len);
            }
            let windows = Windows { bytes: &[], starts: &starts, width, gap: 1 };
            let mut calls = Calls::default();
            calls.add_windows(windows);
            for features in &calls.0 {
                let classes = features.iter().map(|range| class(range.len()));
                prop_assert!(classes.clone().max() == classes.clone().min());
            }
            let mut got = calls.0.concat();
            got.sort_by_key(|range| range.start);
            let expected: Vec<_> = (0..windows.len()).map(|at| windows.range(at)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
