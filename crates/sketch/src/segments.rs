//! Segments of a text, with their positions and hashes: paragraphs, lines or sentences.
//!
//! A segment is a part of the unchanged text, without white space at its ends. A part that consists
//! of white space is not a segment. So each character other than white space is in exactly one
//! segment.
//!
//! - **Lines** end at the mandatory breaks of [UAX 14]: line feed, carriage return, form feed, ...
//! - **Paragraphs** are lines without a blank line between them. A paragraph separator (U+2029)
//!   also ends a paragraph.
//! - **Sentences** follow [UAX 29], which also ends them at line ends. Like [`crate::sentences`],
//!   this module also ends a sentence after 16 characters in a row that are neither letters nor
//!   digits. The rest of such a row is a separate sentence.
//!
//! Each segment has a range to cut: these bytes are removed when the segment is removed, and the
//! rest of the text stays byte for byte. For a line or a paragraph, the range consists of whole
//! lines with their line ends, so that no indentation is left.
//!
//! [UAX 14]: https://www.unicode.org/reports/tr14/
//! [UAX 29]: https://www.unicode.org/reports/tr29/#Sentence_Boundaries

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::Xxh3;

use crate::hash::feature_hash;
use crate::memory::{Grow, GrowString, GrowVec};
use crate::normalize::each_piece;
use crate::options::NamedOption;
use crate::sentences::{MAX_GAP, WINDOW, is_letter_or_digit};
use crate::tokens::{is_line_end, is_space};

/// Kind of the segments into which a text is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Consecutive lines without a blank line between them.
    Paragraph,
    /// Lines, which end at the mandatory breaks of UAX 14.
    Line,
    /// Sentences by UAX 29.
    Sentence,
}

impl NamedOption for Unit {
    const PARAMETER: &str = "unit";
    const NAMES: &[(&str, Self)] = &[
        ("paragraph", Self::Paragraph),
        ("line", Self::Line),
        ("sentence", Self::Sentence),
    ];
}

/// Position of a segment in its text. `cut` is the range to remove if the segment is deleted: it
/// also contains white space around the segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Byte range of the segment, without white space at its ends.
    pub bytes: Range<usize>,
    /// Byte range to remove from the text with the segment. The ranges of successive segments
    /// ascend and do not overlap.
    ///
    /// - For a line, the whole line with its indentation and its line end.
    /// - For a paragraph, its whole lines and the blank lines after them.
    /// - For a sentence, the sentence and the white space after it up to the line end.
    pub cut: Range<usize>,
}

/// Interval between two calls of `check`. The unit is bytes of text for lines and paragraphs, and
/// characters for sentences.
const CHECK_EVERY: usize = 1 << 16;

/// Returns the segments of a text in order. Calls `check` every few 10 kB.
///
/// ```
/// use neardup_sketch::segments::{Unit, segments};
///
/// let text = "A title\n\nOne line\nand another.\n";
/// let found = segments(text, Unit::Paragraph, &mut || ());
/// assert_eq!(&text[found[1].bytes.clone()], "One line\nand another.");
/// assert_eq!(found[0].cut, 0..9);
/// ```
#[must_use]
pub fn segments(text: &str, unit: Unit, check: &mut dyn FnMut()) -> Vec<Segment> {
    let mut builder = Builder {
        text,
        segments: Vec::new(),
    };
    match unit {
        Unit::Paragraph => paragraphs(text, check, |part, cut| builder.add(part, cut)),
        Unit::Line => lines(text, check, |line| {
            builder.add(line.start..line.end, line.start..line.next);
        }),
        Unit::Sentence => sentences(text, check, |part| builder.add_sentence(part)),
    }
    builder.segments
}

/// Returns the XXH3 hash (64 bits) of the normal form of a segment, with one space for each run of
/// white space and none at the ends. Segments that differ only in case, width, composition and
/// white space have equal hashes. The hash of a line equals the hash of the line as a feature
/// (`tokens => 'line'`).
#[must_use]
pub fn segment_hash(segment: &str, check: &mut dyn FnMut()) -> u64 {
    if segment.len() <= HASHED_AT_ONCE && segment.is_ascii() {
        return ascii_segment_hash(segment.as_bytes());
    }
    let mut normal = String::new();
    // Hash state after the part of the normal form that precedes `normal`. It is used only for a
    // long segment, whose normal form is not kept in memory as a whole.
    let mut before: Option<Box<Xxh3>> = None;
    let mut space = false;
    each_piece(segment, &mut String::new(), check, |piece| {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            if is_space(first) {
                space = before.is_some() || !normal.is_empty();
                rest = &rest[first.len_utf8()..];
                continue;
            }
            if std::mem::take(&mut space) {
                normal.grow_char(' ');
            }
            let (word, after) = rest.split_at(rest.find(is_space).unwrap_or(rest.len()));
            normal.grow_str(word);
            rest = after;
        }
        if normal.len() >= HASHED_AT_ONCE {
            before.get_or_insert_default().update(normal.as_bytes());
            normal.clear();
        }
    });
    match before {
        None => feature_hash(normal.as_bytes()),
        Some(mut hash) => {
            hash.update(normal.as_bytes());
            hash.digest()
        }
    }
}

/// Returns the [`segment_hash`] of a short ASCII segment.
fn ascii_segment_hash(segment: &[u8]) -> u64 {
    let mut normal = Vec::new();
    if has_single_spaces(segment) {
        normal.grow_by(segment);
    } else {
        normal.ensure_room(segment.len());
        for word in segment.split(|&byte| is_space(char::from(byte))) {
            if !word.is_empty() {
                if !normal.is_empty() {
                    normal.grow_push(b' ');
                }
                normal.grow_by(word);
            }
        }
    }
    normal.make_ascii_lowercase();
    feature_hash(&normal)
}

/// Returns true if all white space of a segment consists of single spaces between words.
fn has_single_spaces(segment: &[u8]) -> bool {
    let (mut is_regular, mut before) = (true, b' ');
    // The loop has no branch for each byte, so that the compiler can vectorise it.
    for &byte in segment {
        is_regular &= !matches!(byte, b'\t'..=b'\r') & !(byte == b' ' && before == b' ');
        before = byte;
    }
    is_regular && before != b' '
}

/// Length in bytes from which a normal form is hashed in parts. A shorter normal form is hashed at
/// once.
const HASHED_AT_ONCE: usize = 1 << 16;

/// Builds the list of the segments of a text.
struct Builder<'a> {
    text: &'a str,
    segments: Vec<Segment>,
}

impl Builder<'_> {
    /// Adds the byte range `part` of the text as a segment, without white space at its ends. `cut`
    /// is the byte range to remove with the segment. Skips a part that is blank.
    fn add(&mut self, part: Range<usize>, cut: Range<usize>) {
        let bytes = self.trimmed(part);
        if bytes.is_empty() {
            return;
        }
        self.segments.grow_push(Segment { bytes, cut });
    }

    /// Adds the sentence `part`. Its range to cut contains the white space after the sentence, but
    /// neither the line end nor the indentation before the sentence.
    fn add_sentence(&mut self, part: Range<usize>) {
        let bytes = self.trimmed(part);
        let after = &self.text[bytes.end..];
        let stays = |c| !is_space(c) || is_line_end(c);
        let end = bytes.end + after.find(stays).unwrap_or(after.len());
        self.add(bytes.clone(), bytes.start..end);
    }

    /// Returns the byte range of a part of the text without the white space at its ends.
    fn trimmed(&self, part: Range<usize>) -> Range<usize> {
        let whole = &self.text[part.clone()];
        let start = part.end - whole.trim_start_matches(is_space).len();
        let end = part.start + whole.trim_end_matches(is_space).len();
        start..end.max(start)
    }
}

/// Line of a text, as byte offsets in the text.
struct Line {
    start: usize,
    /// End of the text of the line, where the line end starts.
    end: usize,
    /// Start of the next line, or the end of the text.
    next: usize,
    /// Last character of the line end; `None` at the end of the text.
    terminator: Option<char>,
}

/// Calls `each` for each line of a text, including the last one, which may be empty.
fn lines(text: &str, check: &mut dyn FnMut(), mut each: impl FnMut(Line)) {
    let bytes = text.as_bytes();
    let (mut start, mut at, mut next_check) = (0, 0, 0);
    while at < bytes.len() {
        if at >= next_check {
            check();
            next_check = at + CHECK_EVERY;
        }
        let window = &bytes[at..bytes.len().min(next_check)];
        let Some(found) = window.iter().position(may_end_line) else {
            at += window.len();
            continue;
        };
        at += found;
        // A byte that can end a line is the first byte of a character.
        let Some(c) = text[at..].chars().next() else {
            break;
        };
        let after = at + c.len_utf8();
        // "\r\n" is one line end.
        if is_line_end(c) && !(c == '\r' && text[after..].starts_with('\n')) {
            each(Line {
                start,
                end: at,
                next: after,
                terminator: Some(c),
            });
            start = after;
        }
        at = after;
    }
    each(Line {
        start,
        end: text.len(),
        next: text.len(),
        terminator: None,
    });
}

/// Returns true for the first byte of each line end. Some other characters have the same first
/// byte.
#[inline]
fn may_end_line(byte: &u8) -> bool {
    matches!(byte, b'\n'..=b'\r' | 0xC2 | 0xE2)
}

/// Calls `each` for each paragraph, with the byte range of its lines and the byte range to cut.
fn paragraphs(
    text: &str,
    check: &mut dyn FnMut(),
    mut each: impl FnMut(Range<usize>, Range<usize>),
) {
    // The current paragraph, if any: the byte range from the start of its first line to the end of
    // its last line so far. The flag is true if the paragraph has ended, so that the next line that
    // is not blank begins another paragraph.
    let mut open: Option<(Range<usize>, bool)> = None;
    lines(text, check, |line| {
        let is_blank = text[line.start..line.end].chars().all(is_space);
        if !is_blank {
            if let Some((paragraph, _)) = open.take_if(|(_, ended)| *ended) {
                each(paragraph.clone(), paragraph.start..line.start);
            }
            let (paragraph, _) = open.get_or_insert((line.start..line.end, false));
            paragraph.end = line.end;
        }
        if let Some((_, ended)) = &mut open {
            *ended |= is_blank || line.terminator == Some('\u{2029}');
        }
    });
    if let Some((paragraph, _)) = open {
        each(paragraph.clone(), paragraph.start..text.len());
    }
}

/// Calls `each` with the byte range of each sentence of a text.
fn sentences(text: &str, check: &mut dyn FnMut(), mut each: impl FnMut(Range<usize>)) {
    // `start` is the offset of the text that was not passed to `each` yet. `gap` is the number of
    // characters since the last letter or digit.
    let (mut start, mut gap) = (0, 0);
    for (n, (at, c)) in text.char_indices().enumerate() {
        if n.is_multiple_of(CHECK_EVERY) {
            check();
        }
        let end = at + c.len_utf8();
        if is_letter_or_digit(c) {
            if gap >= MAX_GAP && start < at {
                each(start..at);
                start = at;
            }
            gap = 0;
        } else {
            gap += 1;
            if gap == MAX_GAP {
                sentences_within(text, start..end, &mut each);
                start = end;
            }
        }
        if gap < MAX_GAP && end - start >= WINDOW {
            // The last sentence may continue after the window, unless it fills the window.
            let last = text[start..end].split_sentence_bound_indices().last();
            let cut = last.map_or(0, |(last, _)| last);
            let cut = if cut == 0 { end } else { start + cut };
            sentences_within(text, start..cut, &mut each);
            start = cut;
        }
    }
    if gap < MAX_GAP {
        sentences_within(text, start..text.len(), &mut each);
    } else {
        each(start..text.len());
    }
}

/// Calls `each` with the byte range of each sentence within a part of the text, by UAX 29.
fn sentences_within(text: &str, part: Range<usize>, each: &mut impl FnMut(Range<usize>)) {
    for (at, sentence) in text[part.clone()].split_sentence_bound_indices() {
        let start = part.start + at;
        each(start..start + sentence.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature_list::features;
    use crate::normalize::normalized;
    use crate::options::{TextOptions, Tokens};
    use crate::test_texts::any_text;
    use proptest::prelude::*;

    fn shown(text: &str, unit: Unit) -> Vec<&str> {
        let found = segments(text, unit, &mut || ());
        found.into_iter().map(|s| &text[s.bytes]).collect()
    }

    #[test]
    fn paragraphs_and_lines() {
        let text = " Title \r\n\r\nfirst line\nsecond\n \t\n\nlast\u{2029}one\r\rmore\u{2028}";
        assert_eq!(
            shown(text, Unit::Paragraph),
            ["Title", "first line\nsecond", "last", "one", "more"]
        );
        assert_eq!(
            shown(text, Unit::Line),
            ["Title", "first line", "second", "last", "one", "more"]
        );
        for blank in ["", " ", "\n\n", "\u{3000}\r\n"] {
            for unit in [Unit::Paragraph, Unit::Line, Unit::Sentence] {
                assert_eq!(shown(blank, unit), [""; 0], "{blank:?}");
            }
        }
    }

    #[test]
    fn sentences_of_several_scripts() {
        for (text, expected) in [
            (
                "One two. Three! Four? \"Five.\" Six\nseven",
                &["One two.", "Three!", "Four?", "\"Five.\"", "Six", "seven"][..],
            ),
            (
                "It is 3.14, e.g. pi. Mr. Smith knows.",
                &["It is 3.14, e.g. pi.", "Mr.", "Smith knows."],
            ),
            (
                "你好，世界。再见！真的？是的……好",
                &["你好，世界。", "再见！", "真的？", "是的……好"],
            ),
            ("यह एक वाक्य है। यह दूसरा है।", &["यह एक वाक्य है।", "यह दूसरा है।"]),
            (
                "Title --------------------- Text of it.",
                &["Title ---------------", "------", "Text of it."],
            ),
            ("--------------------", &["----------------", "----"]),
        ] {
            assert_eq!(shown(text, Unit::Sentence), expected, "{text:?}");
        }
    }

    /// Returns a text for each segment: the rest of `text` when this segment is cut out.
    fn without_each(text: &str, unit: Unit) -> Vec<String> {
        let found = segments(text, unit, &mut || ());
        let left = |cut: Range<usize>| [&text[..cut.start], &text[cut.end..]].concat();
        found.into_iter().map(|segment| left(segment.cut)).collect()
    }

    #[test]
    fn cuts_leave_other_segments_as_they_are() {
        let text = "\r\n  one\r\n  1\r\n \t\r\n\r\n\ttwo\r\n\r\nthree\u{2029}  four";
        assert_eq!(
            without_each(text, Unit::Paragraph),
            [
                "\r\n\ttwo\r\n\r\nthree\u{2029}  four",
                "\r\n  one\r\n  1\r\n \t\r\n\r\nthree\u{2029}  four",
                "\r\n  one\r\n  1\r\n \t\r\n\r\n\ttwo\r\n\r\n  four",
                "\r\n  one\r\n  1\r\n \t\r\n\r\n\ttwo\r\n\r\nthree\u{2029}",
            ]
        );
        assert_eq!(
            without_each("\n  one \r\n\n\ttwo\rthree", Unit::Line),
            [
                "\n\n\ttwo\rthree",
                "\n  one \r\n\nthree",
                "\n  one \r\n\n\ttwo\r"
            ]
        );
        assert_eq!(
            without_each("  One.  Two! \n Three. 四。五。", Unit::Sentence),
            [
                "  Two! \n Three. 四。五。",
                "  One.  \n Three. 四。五。",
                "  One.  Two! \n 四。五。",
                "  One.  Two! \n Three. 五。",
                "  One.  Two! \n Three. 四。",
            ]
        );
        // Invisible characters are not white space, so they form a paragraph.
        assert_eq!(
            without_each("a\n\n\u{200B}\u{AD}\n\nb", Unit::Paragraph)[1],
            "a\n\nb"
        );
    }

    /// If these hashes changed, stored keys would be invalid.
    #[test]
    fn hashes_never_change() {
        for (text, expected) in [
            ("The quick  brown FOX.", 0x4fce_2a1e_71a7_ae5d),
            ("图书馆昨天\n宣布。", 0xc85a_3002_b0cb_fec4),
            ("Ｃａｆｅ\u{301} 1", 0x04cf_3306_4092_55b0),
            ("...", 0x77e9_e4a1_556d_5f7e),
        ] {
            let hash = segment_hash(text, &mut || ());
            assert_eq!(hash, expected, "{text:?}: {hash:#x}");
        }
    }

    #[test]
    fn what_does_not_count() {
        let hash = |text| segment_hash(text, &mut || ());
        assert_eq!(hash("One  Line\n of TEXT"), hash("one line of text"));
        assert_eq!(hash("ｏｎｅ"), hash(" one "));
        assert_ne!(hash("one"), hash("one."));
    }

    proptest! {
        /// Each character other than white space is in one segment, in text order.
        #[test]
        fn nothing_is_lost(
            text in any_text(),
            unit in prop::sample::select(vec![Unit::Paragraph, Unit::Line, Unit::Sentence]),
        ) {
            let (mut at, mut cut_up_to) = (0, 0);
            for segment in segments(&text, unit, &mut || ()) {
                let Range { start, end } = segment.bytes;
                prop_assert!(segment.cut.start <= start && end <= segment.cut.end);
                prop_assert!(cut_up_to <= segment.cut.start);
                cut_up_to = segment.cut.end;
                prop_assert!(text[at..start].chars().all(is_space));
                prop_assert!(start < end);
                let inner = &text[start..end];
                prop_assert_eq!(inner.trim_matches(is_space), inner);
                at = end;
            }
            prop_assert!(text[at..].chars().all(is_space));
        }

        /// After some segments are cut, the others remain, with the same white space around each.
        #[test]
        fn what_is_not_cut_stays(
            text in "[a-c\u{200B}é中 \t\nR\u{2028}]{0,40}",
            unit in prop::sample::select(vec![Unit::Paragraph, Unit::Line]),
            goes in any::<u64>(),
        ) {
            // A carriage return by itself could become a line end with the line feed that follows.
            let text = text.replace('R', "\r\n");
            let found = segments(&text, unit, &mut || ());
            let goes = |i: usize| goes >> (i % 64) & 1 == 1;
            let mut left = String::new();
            let mut at = 0;
            for (i, segment) in found.iter().enumerate() {
                left += &text[at..segment.cut.start];
                if !goes(i) {
                    left += &text[segment.cut.clone()];
                }
                at = segment.cut.end;
            }
            left += &text[at..];
            let kept = found.iter().enumerate().filter(|(i, _)| !goes(*i));
            let expected: Vec<&str> = kept.map(|(_, s)| &text[s.cut.clone()]).collect();
            let others: Vec<Segment> = segments(&left, unit, &mut || ());
            let others: Vec<&str> = others.iter().map(|s| &left[s.cut.clone()]).collect();
            prop_assert_eq!(others, expected);
        }

        /// `segment_hash` of a line equals the line's hash as a feature (`tokens => 'line'`).
        #[test]
        fn a_line_is_a_feature(text in "[a-cA-C1。！.é中 \t]{0,15}") {
            let options = TextOptions { tokens: Tokens::Line, shingle: 1, ..TextOptions::SET };
            let expected: Vec<u64> =
                features(&text, &options, &mut || ()).iter().map(|f| f.hash).collect();
            let found: Vec<u64> = shown(&text, Unit::Line)
                .into_iter()
                .map(|line| segment_hash(line, &mut || ()))
                .collect();
            prop_assert_eq!(found, expected);
        }

        /// A long segment, whose normal form is hashed in parts, has the hash of the whole normal
        /// form.
        #[test]
        fn a_long_segment_is_hashed_as_a_whole(
            unit in "[a-cA-C1。.é中 \t]{1,15}",
            len in 1_usize..200_000,
        ) {
            let text = unit.repeat(len / unit.len() + 1);
            let normal = normalized(&text);
            let words: Vec<&str> = normal.split(is_space).filter(|w| !w.is_empty()).collect();
            let expected = feature_hash(words.join(" ").as_bytes());
            prop_assert_eq!(segment_hash(&text, &mut || ()), expected);
        }

        /// Texts that are too short for a gap of [`MAX_GAP`] characters have the sentences of UAX
        /// 29.
        #[test]
        fn short_texts_are_cut_by_the_standard(text in "[a-cA-C1。！.?!,)» é中\n]{0,15}") {
            let expected: Vec<&str> = (text.split_sentence_bounds())
                .map(|sentence| sentence.trim_matches(is_space))
                .filter(|sentence| !sentence.is_empty())
                .collect();
            prop_assert_eq!(shown(&text, Unit::Sentence), expected);
        }
    }

    /// Texts in which UAX 29 searches far ahead for the next letter are read in windows of
    /// [`WINDOW`] bytes, so `check` is called meanwhile. Without windows, the time would be
    /// quadratic. A sentence is longer than a window only if it consists of characters other than
    /// letters and digits. It is then nearly the whole text.
    #[test]
    fn hostile_texts_are_read_in_windows() {
        for unit in [
            "(", ". (1", "\u{301}", "a.\u{AD}", "a", "中", "a. b", "\n", "....1",
        ] {
            let text = unit.repeat(1_000_000 / unit.len()) + "x";
            let mut checks = 0;
            let found = segments(&text, Unit::Sentence, &mut || checks += 1);
            assert!(checks >= 5, "{unit:?}: {checks}");
            let longest = found.iter().map(|s| s.bytes.len()).max();
            let signs = text.len() - unit.len();
            assert!(
                longest <= Some(WINDOW + 4) || longest >= Some(signs - 100),
                "{unit:?}"
            );
        }
    }
}
