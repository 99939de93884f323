//! Computes a normal form of a text that can be traced back to the characters of the text.

use std::borrow::Cow;
use std::ops::Range;

use super::{MAX_PIECE, fold_accents_and_digits, is_piece_start, push_normalized};
use crate::memory::{GrowString, GrowVec};
use crate::options::Normalize;

/// Bytes of text between two calls of the cancellation check `check`.
const CHECK_EVERY: usize = 1 << 16;

/// Maximum number of segments from one stored position ([`Mark`]) to the next. After so many
/// segments, another position is stored.
const SEGMENTS_PER_MARK: usize = 1 << 6;
/// Maximum bytes of text from one stored position ([`Mark`]) to the next, unless a single segment
/// is longer.
const BYTES_PER_MARK: usize = 1 << 12;

/// Normal form of a text, in which each part can be traced back to its characters in the text.
///
/// The text is normalised in segments of one or a few characters. The positions of only some
/// segments are stored ([`Mark`]). To find the position of another segment, the text is normalised
/// again from the stored position before it. So most of the memory is that of the normal form.
pub(crate) struct TracedText<'a> {
    /// Normal form of the whole text.
    pub normal: String,
    /// The original text.
    text: &'a str,
    /// How accents and digits are handled.
    options: Normalize,
    /// Starts of some segments in text order, including the first segment.
    marks: Vec<Mark>,
}

/// Stored position: the start of a segment.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// Offset in the normal form, in bytes.
    normal: usize,
    /// Offset in the original text, in bytes.
    byte: usize,
    /// Number of characters of the original text before the segment.
    chars: usize,
}

impl<'a> TracedText<'a> {
    /// Computes the normal form of `text`, with accents and digits handled as in `options`. Calls
    /// the cancellation check `check` every few 10 kB.
    pub fn new(text: &'a str, options: Normalize, check: &mut dyn FnMut()) -> Self {
        let mut traced = Self {
            normal: String::new(),
            text,
            options,
            marks: Vec::new(),
        };
        let mut at = Mark::default();
        traced.marks.grow_push(at);
        let (mut checked, mut marked, mut segments) = (0, 0, 0);
        loop {
            if segments == SEGMENTS_PER_MARK || at.byte - marked >= BYTES_PER_MARK {
                traced.marks.grow_push(at);
                (marked, segments) = (at.byte, 0);
            }
            segments += 1;
            if at.byte - checked >= CHECK_EVERY {
                checked = at.byte;
                check();
            }
            let rest = &text[at.byte..];
            if rest.is_empty() {
                return traced;
            }
            let segment = &rest[..segment_len(rest)];
            push_segment(segment, options, &mut traced.normal);
            at = Mark {
                normal: traced.normal.len(),
                byte: at.byte + segment.len(),
                chars: at.chars + segment.chars().count(),
            };
        }
    }

    /// Returns the characters of the original text from which a part of the normal form was made,
    /// as a range of character numbers. `part` is a byte range of the normal form, and is not
    /// empty.
    pub fn original(&self, part: Range<usize>) -> Range<usize> {
        self.segment_at(part.start).start..self.segment_at(part.end - 1).end
    }

    /// Returns the segment whose normal form contains the byte at offset `byte`, as a range of
    /// character numbers of the original text.
    fn segment_at(&self, byte: usize) -> Range<usize> {
        let mark = self.marks.partition_point(|mark| mark.normal <= byte) - 1;
        let mut at = self.marks[mark];
        let mut normal = String::new();
        loop {
            let rest = &self.text[at.byte..];
            let segment = &rest[..segment_len(rest)];
            normal.clear();
            push_segment(segment, self.options, &mut normal);
            let chars = segment.chars().count();
            if at.normal + normal.len() > byte {
                return at.chars..at.chars + chars;
            }
            at = Mark {
                normal: at.normal + normal.len(),
                byte: at.byte + segment.len(),
                chars: at.chars + chars,
            };
        }
    }
}

/// Appends the normal form of a segment to `out`, with accents and digits handled as in `options`.
/// A segment can be normalised alone.
fn push_segment(segment: &str, options: Normalize, out: &mut String) {
    match *segment.as_bytes() {
        [ascii] if options == Normalize::DEFAULT => {
            out.grow_char(char::from(ascii).to_ascii_lowercase());
        }
        _ => {
            let folded = fold_accents_and_digits(Cow::Borrowed(segment), options, &mut || ());
            push_normalized(&folded, out);
        }
    }
}

/// Returns the length in bytes of the first segment of `text`: a character, and the following
/// characters that may combine with it.
fn segment_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes[0].is_ascii() && bytes.get(1).is_none_or(u8::is_ascii) {
        return 1;
    }
    let most = text.floor_char_boundary(text.len().min(MAX_PIECE));
    let mut chars = text[..most].char_indices().skip(1);
    chars
        .find(|&(_, c)| is_piece_start(c))
        .map_or(most, |(at, _)| at)
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
        fn is_the_normal_form(
            text in any_text(),
            repeat in prop_oneof![4 => Just(1_usize), 1 => 1_usize..20],
            both in any::<bool>(),
        ) {
            let text = text.repeat(repeat);
            let options = if both { BOTH } else { Normalize::DEFAULT };
            let traced = TracedText::new(&text, options, &mut || ());
            let folded = fold_accents_and_digits(Cow::Borrowed(&text), options, &mut || ());
            prop_assert_eq!(&traced.normal, &normalized(&folded));
            // For each part of the normal form, the normal form of its original characters contains
            // the part.
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
