//! Splits a text into words, as the module [`super`] defines them. Common characters have fast
//! paths, and a slower general path reads all other text. Paths change at cut positions, where the
//! text can be cut without changing a word.
//!
//! [`Class`] decides where a cut position is. ASCII and letters that behave like ASCII letters have
//! a fast path ([`super::ascii`]), and so have Han, Hiragana and the punctuation between them
//! ([`super::single_char`]). The general path normalises all other text and segments it by UAX 29.
//!
//! If the general path finds no cut position in a long text, it segments the text so far and adds
//! the words of all segments but the last two, because more text may change these two. It adds a
//! long word in parts: the segmentation after a letter or digit in a word does not depend on the
//! text before it.

use unicode_segmentation::UnicodeSegmentation;

use super::ascii;
use super::simple_text::{SimpleText, ends_before, last_break};
use super::single_char::single_char_words;
use crate::feature_sink::FeatureSink;
use crate::normalize::class::Class;
use crate::normalize::{leading_ascii, piece_len, push_normalized};
use crate::sentences::is_letter_or_digit;
use crate::shingle::Shingles;

/// Number of bytes of text after which the general path ends at the next cut position, whatever
/// text follows. An earlier cut position ends it only if a fast path can read the text that
/// follows.
const MAX_GENERAL_BYTES: usize = 1 << 13;
/// Number of characters after a cut position that the general path examines. If all are simple
/// ([`Class::is_simple`]), the path ends there, even before [`MAX_GENERAL_BYTES`]. Otherwise it
/// continues, because a change of path would not pay for a few characters. If a separator or a
/// single-character word follows the cut position, the path ends at once.
const SIMPLE_AHEAD: usize = 16;
/// Decides how a run of ASCII is read if the text cannot be cut at the end of the run. If the run
/// has at least this many bytes, the ASCII tokenizer reads it directly from the text, up to the
/// last cut position in the run. A shorter run is copied to [`SimpleText`], together with the text
/// that follows.
const MIN_ASCII: usize = 1 << 12;
/// Number of bytes of normalised text that the general path collects before it splits them into
/// words.
const NORMAL: usize = 1 << 16;
/// Approximate bytes of text between two calls of the cancellation check `check`.
const CHECK_BYTES: usize = 1 << 18;

/// Splits texts into words. Keeps its buffers between texts.
pub(crate) struct WordTokenizer {
    /// Normalised text that the general path has not split into words yet.
    normal: String,
    /// Buffer of the fast path for text that behaves like ASCII.
    simple: SimpleText,
    /// Number of bytes at which `normal` is split into words: [`NORMAL`], or fewer in tests.
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
    /// Adds the words of `text` to `shingles`, which passes features to `sink`. Calls the
    /// cancellation check `check` every few 100 kB.
    pub fn tokenize(
        &mut self,
        text: &str,
        shingles: &mut Shingles,
        sink: &mut impl FeatureSink,
        check: &mut dyn FnMut(),
    ) {
        // `normal` is not empty if `check` unwound while an earlier text was read.
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

    /// Adds the words at the start of `text`, as far as the text is ASCII or behaves like ASCII, to
    /// `shingles`. Returns the number of bytes read, which may be 0.
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

    /// Adds the words of `text` by the general path, which accepts any characters. `text` must have
    /// word boundaries at its ends.
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
                // The text that is left in `normal` is searched for a cut position again when its
                // length has doubled, so that the time stays linear.
                split_at = self.split_bytes.max(2 * self.normal.len());
            }
        }
        self.add_words(self.normal.len(), shingles, sink);
    }

    /// Adds the words of `normal` that no further text can change. Then adds the beginning of the
    /// next word as an open token, as far as no further text can change it. A later call adds the
    /// rest of this word.
    ///
    /// Segments are found from left to right, independently of each other. The end of a segment
    /// depends on the next character that is not a mark (WB4). If that character is punctuation
    /// that may join words, the end also depends on the character after it (WB6, WB7b, WB12).
    /// Punctuation that does not join forms a segment with its marks. So a segment is complete if
    /// two segments follow it.
    fn add_complete(&mut self, shingles: &mut Shingles, sink: &mut impl FeatureSink) {
        let mut last = [0, 0];
        for (at, _) in self.normal.split_word_bound_indices() {
            last = [last[1], at];
        }
        // `last[0]` is the start of the last segment but one, or 0 if there are fewer than three.
        self.add_words(last[0], shingles, sink);
        let first = self.normal.split_word_bounds().next().map_or(0, str::len);
        let part = last_join(&self.normal[..first]);
        shingles.push_part(&self.normal.as_bytes()[..part]);
        self.normal.drain(..part);
    }

    /// Adds the words of the first `len` bytes of `normal` to `shingles`, and removes these bytes.
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

/// Returns the number of bytes at the start of `text` that the ASCII tokenizer can read directly,
/// without a copy in [`SimpleText`]. `len` is the length of the run of ASCII at the start of
/// `text`. If the text can be cut after the run, returns `len`. Otherwise a run of [`MIN_ASCII`]
/// bytes or more can be read up to the last cut position in the run. Returns 0 for a shorter run,
/// or if the run has no cut position.
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
    // A mark may follow the last ASCII character and change it.
    last_break(&bytes[..len - 1])
}

/// Returns the length in bytes of the start of `text` that must take the general path. After it,
/// the caller tries the fast paths again.
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
                _ if at >= MAX_GENERAL_BYTES => true,
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

/// Returns the last offset in bytes at which `segment`, a long word, can be divided into two words,
/// or 0 if there is no such offset. The division moves no later word boundary: the segments of the
/// text from this offset on end at the same positions as before.
///
/// The second part begins with a letter or digit that the word-break rules treat as a letter, a
/// digit or Katakana. After such a character, the rules do not depend on the text before it. The
/// first part also has a letter or digit, so both parts are words.
fn last_join(segment: &str) -> usize {
    let Some((first, _)) = segment.char_indices().find(|&(_, c)| is_letter_or_digit(c)) else {
        return 0;
    };
    let mut chars = segment.char_indices().rev().take(MAX_JOIN_CHARS);
    let join = chars.find(|&(at, c)| at > first && is_letter_or_digit(c) && is_word_character(c));
    join.map_or(0, |(at, _)| at)
}

/// Maximum number of characters at the end of a segment in which [`last_join`] searches for a
/// position to divide the segment. If these characters have none, it returns 0.
const MAX_JOIN_CHARS: usize = 1 << 12;

/// Returns true if the word-break rules join `c` with a `_` after it (WB13a). They do so if they
/// treat `c` as a letter, a digit or Katakana, or if `c` is `_`.
fn is_word_character(c: char) -> bool {
    let mut with_underscore = [0; 5];
    let len = c.encode_utf8(&mut with_underscore).len();
    with_underscore[len] = b'_';
    let joined = str::from_utf8(&with_underscore[..=len]);
    joined.is_ok_and(|joined| joined.split_word_bounds().nth(1).is_none())
}

/// Returns the last offset in bytes at which the normalised text `text` can be cut without changing
/// a word, or 0 if there is none.
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

    /// Returns the words that the general path finds if it splits the normalised text whenever it
    /// has collected at least `split_bytes` bytes of it.
    fn found(text: &str, split_bytes: usize) -> Vec<String> {
        let mut words = WordTokenizer {
            split_bytes,
            ..WordTokenizer::default()
        };
        let (mut all, mut shingles) = (FeatureTexts(Vec::new()), Shingles::default());
        shingles.reset(1, SEPARATOR);
        // The text is also cut and normalised in pieces.
        let mut rest = text;
        while !rest.is_empty() {
            let len = general_len(rest);
            words.general(&rest[..len], &mut shingles, &mut all, &mut || ());
            rest = &rest[len..];
        }
        shingles.finish(&mut all);
        all.0
    }

    /// Reference implementation: the words of a text by their definition.
    fn defined(text: &str) -> Vec<String> {
        (normalized(text).split_word_bounds())
            .filter(|segment| segment.chars().any(char::is_alphanumeric))
            .filter(|segment| !segment.starts_with([' ', '\u{1680}']))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the words that the general path finds if the normal form of `text` is added one
    /// character at a time. Complete words are taken out whenever at least `split_bytes` bytes are
    /// collected.
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

    /// Words longer than a piece are added in parts, and do not stay in memory.
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
