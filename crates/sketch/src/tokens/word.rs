//! Words of a text, as [`super`] defines them.
//!
//! The text is cut where that cannot change a word ([`Class`]). ASCII, letters that behave as ASCII
//! letters do, Han and Hiragana, and punctuation between them have fast paths; the rest is
//! normalised and segmented by the general algorithms.
//!
//! A long word without a place to cut the text is added in parts: between two letters there is no
//! boundary (WB5), and what follows the second does not depend on anything before it.

use unicode_segmentation::UnicodeSegmentation;

use super::ascii;
use super::simple_text::{SimpleText, ends_before, last_break};
use super::single_char::single_char_words;
use crate::feature_sink::FeatureSink;
use crate::normalize::class::Class;
use crate::normalize::{leading_ascii, piece_len, push_normalized};
use crate::shingle::Shingles;

/// Bytes after which the general path ends at the next cut.
const STRETCH: usize = 1 << 13;
/// Number of simple characters ahead for which the general path ends.
const SIMPLE_AHEAD: usize = 16;
/// Bytes of ASCII before other characters from which on they are not copied.
const MIN_ASCII: usize = 1 << 12;
/// Bytes of normalised text after which it is split into words.
const NORMAL: usize = 1 << 16;
/// Bytes of text between two calls of `check`, roughly.
const CHECK_BYTES: usize = 1 << 18;

/// Splits texts into words; reusable.
#[derive(Default)]
pub(crate) struct WordTokenizer {
    /// Normalised text that is not split into words yet.
    normal: String,
    simple: SimpleText,
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
        // Not empty if `check` unwound from an earlier text.
        self.normal.clear();
        let mut at = 0;
        let mut checked = 0;
        while let Some(first) = text[at..].chars().next() {
            if at - checked >= CHECK_BYTES {
                checked = at;
                check();
            }
            let rest = &text[at..];
            let class = Class::of(first);
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

    /// Adds the words of the start of `text` as far as it is ASCII or like it. Returns its length.
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
        let mut split_at = NORMAL;
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
                    0 => self.add_part(last_join(&self.normal), shingles, sink),
                    cut => self.add_words(cut, shingles, sink),
                }
                // Without either, the text is searched again when it has doubled.
                split_at = NORMAL.max(2 * self.normal.len());
            }
        }
        self.add_words(self.normal.len(), shingles, sink);
    }

    /// Adds the words before position `len`, which lies within a word, and then that word's part
    /// before `len`. The word that is added next completes it.
    fn add_part(&mut self, len: usize, shingles: &mut Shingles, sink: &mut impl FeatureSink) {
        let part = self.normal[..len].split_word_bounds().next_back();
        let part = part.map_or(0, str::len);
        self.add_words(len - part, shingles, sink);
        shingles.push_part(&self.normal.as_bytes()[..part]);
        self.normal.drain(..part);
    }

    fn add_words(&mut self, len: usize, shingles: &mut Shingles, sink: &mut impl FeatureSink) {
        for word in self.normal[..len].unicode_words() {
            // A space with marks is no word. Normalisation leaves these two spaces.
            if !word.starts_with([' ', '\u{1680}']) {
                shingles.push(word.as_bytes(), sink);
            }
        }
        self.normal.drain(..len);
    }
}

/// Length of the leading ASCII of `text`, of which there are `len` bytes, up to the last place
/// where it can be cut.
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

/// Length of the start of `text` that has to take the general path.
fn general_len(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, first)) = chars.next() else {
        return 0;
    };
    let mut before = Class::of(first);
    for (at, c) in chars {
        let class = Class::of(c);
        if before.cut_before(class) {
            let leave = match class {
                Class::SingleCharWord | Class::Separator => true,
                _ if at >= STRETCH => true,
                Class::AsciiWord | Class::AsciiBreak | Class::Letter => text[at..]
                    .chars()
                    .take(SIMPLE_AHEAD)
                    .all(|c| Class::of(c).is_simple()),
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

/// The last position in normalised text that is between two letters, and so within a word; 0 if
/// there is none.
fn last_join(text: &str) -> usize {
    let is_letter =
        |c: char| c.is_ascii_alphabetic() || !c.is_ascii() && Class::of(c) == Class::Letter;
    let mut after = false;
    for (at, c) in text.char_indices().rev() {
        let letter = is_letter(c);
        if letter && after {
            return at + c.len_utf8();
        }
        after = letter;
    }
    0
}

/// The last position where normalised text can be cut, 0 if there is none.
fn last_cut(text: &str) -> usize {
    let mut after = Class::Other;
    for (at, c) in text.char_indices().rev() {
        let class = Class::of(c);
        if class.cut_before(after) {
            return at + c.len_utf8();
        }
        after = class;
    }
    0
}
