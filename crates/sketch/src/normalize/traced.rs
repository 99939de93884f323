//! Normal form of a text with the way back: which characters of the text its parts come from.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::{MAX_PIECE, alone, fold_accents_and_digits, is_boundary, push_normalized};
use crate::memory::{GrowString, GrowVec};
use crate::options::Normalize;

/// Bytes between two calls of `check`.
const CHECK_EVERY: usize = 1 << 16;

/// Normal form of a text, of which each part knows its characters in the text.
#[derive(Default)]
pub(crate) struct TracedText {
    /// The normal form.
    pub normal: String,
    runs: Vec<Run>,
    /// Number of characters of the text.
    chars: usize,
}

/// A stretch of the normal form.
struct Run {
    /// First byte in the normal form.
    normal: usize,
    /// Number of characters of the text before it.
    original: usize,
    /// Bytes in the normal form of each of its characters, which correspond one to one; 0 if they
    /// do not, but as a whole.
    width: u8,
}

impl TracedText {
    /// The normal form of `text`, without accents and digits as far as `options` say so. Calls
    /// `check` every few 10 kB.
    pub fn new(text: &str, options: Normalize, check: &mut dyn FnMut()) -> Self {
        let mut traced = Self::default();
        let mut rest = text;
        let mut unchecked = 0;
        while !rest.is_empty() {
            let (segment, after) = rest.split_at(segment_len(rest));
            traced.push(segment, options);
            unchecked += segment.len();
            if unchecked >= CHECK_EVERY {
                unchecked = 0;
                check();
            }
            rest = after;
        }
        traced
    }

    /// Adds what is normalised by itself.
    fn push(&mut self, segment: &str, options: Normalize) {
        let start = self.normal.len();
        let mut chars = segment.chars();
        let single = chars.next().filter(|_| chars.next().is_none());
        match single {
            Some(ascii) if ascii.is_ascii() && options == Normalize::DEFAULT => {
                self.normal.grow_char(ascii.to_ascii_lowercase());
            }
            _ => {
                let segment = Cow::Borrowed(segment);
                let folded = fold_accents_and_digits(segment, options, &mut || ());
                push_normalized(&folded, &mut self.normal);
            }
        }
        let added = &self.normal[start..];
        let one_to_one = single.is_some() && added.chars().nth(1).is_none();
        let width = if one_to_one { added.len() as u8 } else { 0 };
        let same = width > 0 && self.runs.last().is_some_and(|run| run.width == width);
        if !added.is_empty() && !same {
            self.runs.grow_push(Run {
                normal: start,
                original: self.chars,
                width,
            });
        }
        self.chars += segment.chars().count();
    }

    /// The characters of the text that a part of the normal form, which is not empty, comes from.
    pub fn original(&self, part: Range<usize>) -> Range<usize> {
        let at = |byte: usize| {
            let next = self.runs.partition_point(|run| run.normal <= byte);
            let run = &self.runs[next - 1];
            match usize::from(run.width) {
                0 => {
                    let end = self.runs.get(next).map_or(self.chars, |run| run.original);
                    run.original..end
                }
                width => {
                    let start = run.original + (byte - run.normal) / width;
                    start..start + 1
                }
            }
        };
        at(part.start).start..at(part.end - 1).end
    }
}

/// Length of the first part of `text` that can be normalised by itself: a character, and those
/// after it that may combine with it.
fn segment_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes[0].is_ascii() && bytes.get(1).is_none_or(u8::is_ascii) {
        return 1;
    }
    let most = text.floor_char_boundary(text.len().min(MAX_PIECE));
    let mut chars = text[..most].char_indices().skip(1);
    chars.find(|&(_, c)| begins(c)).map_or(most, |(at, _)| at)
}

/// Returns true if the characters before `c` do not change its normal form, nor it theirs.
fn begins(c: char) -> bool {
    alone(c).is_some() || is_boundary(c) || c.nfkd().next().is_some_and(is_boundary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::normalized;
    use crate::options::{Accents, Digits};
    use crate::test_texts::any_text;
    use proptest::prelude::*;

    const BOTH: Normalize = Normalize {
        accents: Accents::Remove,
        digits: Digits::Zero,
    };

    fn originals(text: &str, part: &str) -> Range<usize> {
        let traced = TracedText::new(text, Normalize::DEFAULT, &mut || ());
        let at = traced.normal.find(part).expect("it is there");
        traced.original(at..at + part.len())
    }

    proptest! {
        #[test]
        fn is_the_normal_form(text in any_text(), both in any::<bool>()) {
            let options = if both { BOTH } else { Normalize::DEFAULT };
            let traced = TracedText::new(&text, options, &mut || ());
            let folded = fold_accents_and_digits(Cow::Borrowed(&text), options, &mut || ());
            prop_assert_eq!(&traced.normal, &normalized(&folded));
            // Any part comes from characters that have it in their normal form.
            let chars: Vec<char> = text.chars().collect();
            for (start, c) in traced.normal.char_indices() {
                let original = traced.original(start..start + c.len_utf8());
                let original: String = chars[original].iter().collect();
                let folded = fold_accents_and_digits(original.into(), options, &mut || ());
                prop_assert!(normalized(&folded).contains(c), "{c:?}");
            }
        }
    }

    #[test]
    fn parts_come_from_their_characters() {
        assert_eq!(originals("Das Große HAUS", "haus"), 10..14);
        assert_eq!(originals("Das Große HAUS", "grosse"), 4..9);
        assert_eq!(originals("Cafe\u{301} \u{AD}ＡＢＣ１２", "abc"), 7..10);
        assert_eq!(originals("ab\u{AD}c d", "abc"), 0..4);
        assert_eq!(originals("図書館㌖２ページ", "キロ"), 3..4);
        assert_eq!(originals("図書館㌖２ページ", "2ペ"), 4..6);
    }
}
