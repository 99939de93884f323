//! Words of a text, as [`super`] defines them.
//!
//! The text is cut where the cut cannot change a word ([`Class`]). ASCII, letters that behave like
//! ASCII letters, Han and Hiragana, and punctuation between them have fast paths. The general
//! algorithms normalise and segment all other text.
//!
//! If a long text has no cut position, the text so far is segmented, and all segments but the last
//! two are added, because the last two may continue. A long word is added in parts: the text after
//! a letter or digit in a word does not depend on the text before it.

use unicode_segmentation::UnicodeSegmentation;

use super::ascii;
use super::simple_text::{SimpleText, ends_before, last_break};
use super::single_char::single_char_words;
use crate::feature_sink::FeatureSink;
use crate::normalize::class::Class;
use crate::normalize::{leading_ascii, piece_len, push_normalized};
use crate::sentences::is_letter_or_digit;
use crate::shingle::Shingles;

/// Bytes after which the general path ends at the next cut position.
const STRETCH: usize = 1 << 13;
/// Number of simple characters ahead at which the general path ends.
const SIMPLE_AHEAD: usize = 16;
/// Minimum bytes of ASCII before other characters that are not copied.
const MIN_ASCII: usize = 1 << 12;
/// Bytes of normalised text after which the text is split into words.
const NORMAL: usize = 1 << 16;
/// Approximate bytes of text between two calls of `check`.
const CHECK_BYTES: usize = 1 << 18;

/// Splits texts into words; reusable.
pub(crate) struct WordTokenizer {
    /// Normalised text that is not split into words yet.
    normal: String,
    simple: SimpleText,
    /// Bytes of `normal` after which it is split into words.
    split_bytes: usize,
}

impl Default for WordTokenizer {
    fn default() -> Self {
        Self {
            normal: String::new(),
            simple: SimpleText::default(),
            split_bytes: NORMAL,
        }
    }
}

impl WordTokenizer {
    /// Adds the words of `text` to `shingles`, which passes the features to `sink`. Calls `check`
    /// every few 100 kB.
    pub fn tokenize(
        &mut self,
        text: &str,
        shingles: &mut Shingles,
        sink: &mut impl FeatureSink,
        check: &mut dyn FnMut(),
    ) {
        // Not empty if `check` unwound while an earlier text was read.
        self.normal.clear();
        let mut at = 0;
        let mut checked = 0;
        while let Some(first) = text[at..].chars().next() {
            if at - checked >= CHECK_BYTES {
                checked = at;
                check();
            }
            let rest = &text[at..];
            let class = Class::from_char(first);
            match class {
                Class::AsciiWord | Class::AsciiBreak | Class::Letter => {
                    let len = self.simple_words(rest, shingles, sink, check);
                    if len > 0 {
                        at += len;
                        continue;
                    }
                }
                Class::SingleCharWord | Class::Separator | Class::Mid => {
                    let len = single_char_words(rest, shingles, sink);
                    if len > 0 {
                        at += len;
                        continue;
                    }
                }
                Class::OtherLetter | Class::Other => {}
            }
            let len = general_len(rest);
            self.general(&rest[..len], shingles, sink, check);
            at += len;
        }
        self.normal.shrink_to(4 * NORMAL);
    }

    /// Adds the words of the leading text that is ASCII or similar, and returns its length.
    fn simple_words(
        &mut self,
        text: &str,
        shingles: &mut Shingles,
        sink: &mut impl FeatureSink,
        check: &mut dyn FnMut(),
    ) -> usize {
        let ascii = leading_ascii(text.as_bytes());
        let len = ascii_len(text, ascii);
        if len > 0 {
            ascii::tokenize(&text.as_bytes()[..len], shingles, sink, check);
            return len;
        }
        let len = self.simple.read(text, ascii);
        ascii::tokenize(self.simple.text(), shingles, sink, check);
        len
    }

    /// Adds the words of any text with word boundaries at its ends.
    fn general(
        &mut self,
        mut text: &str,
        shingles: &mut Shingles,
        sink: &mut impl FeatureSink,
        check: &mut dyn FnMut(),
    ) {
        let mut split_at = self.split_bytes;
        let mut unchecked = 0;
        while !text.is_empty() {
            let (piece, rest) = text.split_at(piece_len(text));
            push_normalized(piece, &mut self.normal);
            text = rest;
            unchecked += piece.len();
            if unchecked >= CHECK_BYTES {
                unchecked = 0;
                check();
            }
            if self.normal.len() >= split_at {
                match last_cut(&self.normal) {
                    0 => self.add_complete(shingles, sink),
                    cut => self.add_words(cut, shingles, sink),
                }
                // Searches the rest again when its length has doubled.
                split_at = self.split_bytes.max(2 * self.normal.len());
            }
        }
        self.add_words(self.normal.len(), shingles, sink);
    }

    /// Adds the words that no further text can change, and the longest such part of an unfinished
    /// word. The next added word completes it.
    ///
    /// Segments are found from left to right, independently of each other. The end of a segment
    /// depends on the next character that is not a mark (WB4). If that is punctuation that may
    /// join words, the end also depends on the next character after it (WB6, WB7b, WB12). Such
    /// punctuation forms a segment with its marks. So a segment followed by two others is
    /// complete.
    fn add_complete(&mut self, shingles: &mut Shingles, sink: &mut impl FeatureSink) {
        let mut last = [0, 0];
        for (at, _) in self.normal.split_word_bound_indices() {
            last = [last[1], at];
        }
        // The index is zero if there are fewer than three segments.
        self.add_words(last[0], shingles, sink);
        let first = self.normal.split_word_bounds().next().map_or(0, str::len);
        let part = last_join(&self.normal[..first]);
        shingles.push_part(&self.normal.as_bytes()[..part]);
        self.normal.drain(..part);
    }

    fn add_words(&mut self, len: usize, shingles: &mut Shingles, sink: &mut impl FeatureSink) {
        for word in self.normal[..len].unicode_words() {
            // A space with marks is not a word. Normalisation keeps these two spaces.
            if !word.starts_with([' ', '\u{1680}']) {
                shingles.push(word.as_bytes(), sink);
            }
        }
        self.normal.drain(..len);
    }
}

/// Returns the length of the leading ASCII of `text` up to the last cut position. `len` is the
/// length of all leading ASCII.
fn ascii_len(text: &str, len: usize) -> usize {
    let bytes = text.as_bytes();
    let Some(next) = text[len..].chars().next() else {
        return len;
    };
    if ends_before(&bytes[..len], next) {
        return len;
    }
    if len < MIN_ASCII {
        return 0;
    }
    // A mark may follow the last character.
    last_break(&bytes[..len - 1])
}

/// Returns the length of the leading text that must take the general path.
fn general_len(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, first)) = chars.next() else {
        return 0;
    };
    let mut before = Class::from_char(first);
    for (at, c) in chars {
        let class = Class::from_char(c);
        if before.cut_before(class) {
            let leave = match class {
                Class::SingleCharWord | Class::Separator => true,
                _ if at >= STRETCH => true,
                Class::AsciiWord | Class::AsciiBreak | Class::Letter => text[at..]
                    .chars()
                    .take(SIMPLE_AHEAD)
                    .all(|c| Class::from_char(c).is_simple()),
                _ => false,
            };
            if leave {
                return at;
            }
        }
        before = class;
    }
    text.len()
}

/// Returns the last position in a segment at which it can be divided so that the second part is
/// segmented as in the whole text, or 0 if there is none.
///
/// The position is before a letter or digit that the word-break rules treat as such. After this
/// character the rules are in the same state, whether the text begins with it or not. The first
/// part also has a letter or digit, so both parts are words.
fn last_join(segment: &str) -> usize {
    let Some((first, _)) = segment.char_indices().find(|&(_, c)| is_letter_or_digit(c)) else {
        return 0;
    };
    let mut chars = segment.char_indices().rev().take(MAX_JOIN_CHARS);
    let join = chars.find(|&(at, c)| at > first && is_letter_or_digit(c) && joins(c));
    join.map_or(0, |(at, _)| at)
}

/// Maximum characters at the end of a segment that are searched for a position to divide it.
const MAX_JOIN_CHARS: usize = 1 << 12;

/// Returns true if the word-break rules treat a character as a letter, a digit or Katakana. They
/// join exactly these characters, and `_`, with a `_` after them (WB13a).
fn joins(c: char) -> bool {
    let mut with_underscore = [0; 5];
    let len = c.encode_utf8(&mut with_underscore).len();
    with_underscore[len] = b'_';
    let joined = str::from_utf8(&with_underscore[..=len]);
    joined.is_ok_and(|joined| joined.split_word_bounds().nth(1).is_none())
}

/// Returns the last position where normalised text can be cut, or 0 if there is none.
fn last_cut(text: &str) -> usize {
    let mut after = Class::Other;
    for (at, c) in text.char_indices().rev() {
        let class = Class::from_char(c);
        if class.cut_before(after) {
            return at + c.len_utf8();
        }
        after = class;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::normalized;
    use crate::shingle::SEPARATOR;
    use crate::test_texts::{FeatureTexts, any_text};
    use proptest::prelude::*;

    /// Returns the words by the general path, with splits after `split_bytes` bytes.
    fn found(text: &str, split_bytes: usize) -> Vec<String> {
        let mut words = WordTokenizer {
            split_bytes,
            ..WordTokenizer::default()
        };
        let (mut all, mut shingles) = (FeatureTexts(Vec::new()), Shingles::default());
        shingles.reset(1, SEPARATOR);
        // Normalised in pieces as well, so that each piece is split.
        let mut rest = text;
        while !rest.is_empty() {
            let len = general_len(rest);
            words.general(&rest[..len], &mut shingles, &mut all, &mut || ());
            rest = &rest[len..];
        }
        shingles.finish(&mut all);
        all.0
    }

    /// The definition.
    fn defined(text: &str) -> Vec<String> {
        (normalized(text).split_word_bounds())
            .filter(|segment| segment.chars().any(char::is_alphanumeric))
            .filter(|segment| !segment.starts_with([' ', '\u{1680}']))
            .map(str::to_owned)
            .collect()
    }

    /// Splits a normal form after each character, as if pieces ended there.
    fn found_by_characters(text: &str, split_bytes: usize) -> Vec<String> {
        let mut words = WordTokenizer::default();
        let (mut all, mut shingles) = (FeatureTexts(Vec::new()), Shingles::default());
        shingles.reset(1, SEPARATOR);
        for c in normalized(text).chars() {
            words.normal.push(c);
            if words.normal.len() >= split_bytes {
                words.add_complete(&mut shingles, &mut all);
            }
        }
        words.add_words(words.normal.len(), &mut shingles, &mut all);
        shingles.finish(&mut all);
        all.0
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn pieces_have_the_words_of_the_whole(
            text in prop_oneof![
                any_text(),
                "[a1_.:,'\"א٣カ\u{301}\u{345}\u{1680}\u{E01}\u{903} ]{0,60}",
            ],
            split_bytes in 1_usize..20,
        ) {
            let expected = defined(&text);
            prop_assert_eq!(found_by_characters(&text, split_bytes), expected.clone());
            prop_assert_eq!(found(&text, split_bytes), expected);
        }
    }

    /// Runs of one kind of character longer than a piece do not stay in memory.
    #[test]
    fn long_runs_are_added_in_parts() {
        for unit in [
            "a.", "é", "カ", "א", "٣", "ก", "ກ", "한", "ᄀ", "क्", "a\u{301}", "ཀ", "𝒜", "_é", "😀",
        ] {
            let text = unit.repeat((5 * NORMAL) / unit.len());
            let mut words = WordTokenizer::default();
            let (mut all, mut shingles) = (FeatureTexts(Vec::new()), Shingles::default());
            shingles.reset(1, SEPARATOR);
            words.general(&text, &mut shingles, &mut all, &mut || ());
            shingles.finish(&mut all);
            assert_eq!(all.0, defined(&text), "{unit}");
            let kept = words.normal.capacity();
            assert!(kept <= 3 * NORMAL, "{unit}: {kept}");
        }
    }
}
