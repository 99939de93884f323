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
use crate::normalize::class::Class;
use crate::normalize::{fold, leading_ascii, piece_len, push_normalized};
use crate::shingle::{FeatureSink, Shingles};

/// Bytes after which the general path ends at the next cut.
const STRETCH: usize = 1 << 13;
/// Number of simple characters ahead for which the general path ends.
const SIMPLE_AHEAD: usize = 16;
/// Bytes of ASCII before other characters for which the ASCII path pays off.
const MIN_ASCII: usize = 256;
/// Bytes of text that are simplified at once.
const SIMPLE: usize = 1 << 13;
/// Bytes of normalised text after which it is split into words.
const NORMAL: usize = 1 << 16;
/// Bytes of text between two calls of `check`, roughly.
const CHECK_BYTES: usize = 1 << 18;

/// Splits texts into words; reusable.
#[derive(Default)]
pub(crate) struct WordTokenizer {
    /// Normalised text that is not split into words yet.
    normal: String,
    /// Text in the form that [`simplify`] gives it.
    simple: Vec<u8>,
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
                    let len = ascii_len(rest);
                    if len > 0 {
                        ascii::tokenize(&rest.as_bytes()[..len], shingles, sink, check);
                        at += len;
                        continue;
                    }
                    let len = simplify(rest, &mut self.simple);
                    if len > 0 {
                        ascii::tokenize(&self.simple, shingles, sink, check);
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

/// Adds the leading characters of `text` that are words of their own, and skips punctuation between
/// them. Returns the number of bytes read, at most some kilobytes.
fn single_char_words(text: &str, shingles: &mut Shingles, sink: &mut impl FeatureSink) -> usize {
    let mut at = 0;
    while at < STRETCH {
        // A mark may follow the last one.
        let han = leading_han(&text.as_bytes()[at..]);
        if han.len() > 1 {
            let most = &han[..han.len() - 1];
            shingles.push_chars_of_three(most, sink);
            at += 3 * most.len();
        }
        let mut chars = text[at..].chars();
        let Some(c) = chars.next() else {
            break;
        };
        let class = Class::of(c);
        if !matches!(class, Class::SingleCharWord | Class::Separator | Class::Mid)
            || chars.next().is_some_and(|c| !Class::of(c).is_no_mark())
        {
            break;
        }
        if class == Class::SingleCharWord {
            shingles.push_char(c, sink);
        }
        at += c.len_utf8();
    }
    at
}

/// The leading characters U+4E00 to U+9FFF of UTF-8 text, at most some hundreds.
#[inline]
fn leading_han(text: &[u8]) -> &[[u8; 3]] {
    const MOST: usize = 256;
    let (threes, _) = text.as_chunks::<3>();
    let han = |&[a, b, _]: &[u8; 3]| (0xE4B8..=0xE9BF).contains(&u16::from_be_bytes([a, b]));
    let len = threes
        .iter()
        .take(MOST)
        .take_while(|&three| han(three))
        .count();
    &threes[..len]
}

/// Length of the leading ASCII of `text`, up to the last place where it can be cut.
fn ascii_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let len = leading_ascii(bytes);
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

/// Returns true if the text can be cut between `bytes`, of which non-ASCII ones are letters, and
/// `next`.
fn ends_before(bytes: &[u8], next: char) -> bool {
    let last = bytes.last().map_or(Class::AsciiWord, |&byte| match byte {
        0x80.. => Class::Letter,
        _ => Class::of(char::from(byte)),
    });
    last.cut_before(Class::of(next))
}

/// The position after the last ASCII break, 0 if there is none.
fn last_break(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|&byte| Class::is_ascii_break(byte))
        .map_or(0, |at| at + 1)
}

/// Writes the start of `text` to `out` in the form that [`ascii::tokenize`] takes: non-ASCII
/// letters folded, separators as spaces. Stops at other characters, goes back to the last place
/// where the text can be cut, and returns its position, which is the same in `out` and `text`.
fn simplify(text: &str, out: &mut Vec<u8>) -> usize {
    out.clear();
    let mut last_len = 0;
    let mut next = None;
    while out.len() < SIMPLE {
        let rest = &text[out.len()..];
        if let Some(chunk) = rest.as_bytes().first_chunk::<16>()
            && u128::from_ne_bytes(*chunk) & (u128::MAX / 0xFF * 0x80) == 0
        {
            out.extend_from_slice(chunk);
            last_len = 1;
            continue;
        }
        next = rest.chars().next();
        let Some(c) = next else {
            break;
        };
        let len = c.len_utf8();
        match Class::of(c) {
            Class::AsciiWord | Class::AsciiBreak => out.push(c as u8),
            Class::Letter => match fold(c) {
                (first, None) => out.extend_from_slice(first.encode_utf8(&mut [0; 4]).as_bytes()),
                // ß, which takes as many bytes.
                (first, Some(second)) => out.extend([first as u8, second as u8]),
            },
            Class::Separator => out.extend_from_slice(&[b' '; 4][..len]),
            Class::Mid => match joins(out, c, rest[len..].chars().next()) {
                // Then it can count as a letter itself.
                Some(true) => out.extend_from_slice(&rest.as_bytes()[..len]),
                Some(false) => out.extend_from_slice(&[b' '; 4][..len]),
                None => break,
            },
            Class::SingleCharWord | Class::OtherLetter | Class::Other => break,
        }
        last_len = len;
    }
    let whole = match next {
        None => out.len() == text.len(),
        Some(next) => out.len() < SIMPLE && ends_before(out, next),
    };
    let len = if whole {
        out.len()
    } else {
        last_break(&out[..out.len() - last_len])
    };
    out.truncate(len);
    len
}

/// Returns true if the punctuation `mid` joins the text that ends with `before` and the text that
/// begins with `after`; `None` if the general path has to decide.
fn joins(before: &[u8], mid: char, after: Option<char>) -> Option<bool> {
    let before = before.last().copied().unwrap_or(b' ');
    let Some(after) = after else {
        return Some(false);
    };
    let class = Class::of(after);
    if !class.is_no_mark() || class == Class::OtherLetter {
        return None;
    }
    let letters = (before.is_ascii_alphabetic() || before >= 0x80)
        && (after.is_ascii_alphabetic() || class == Class::Letter);
    let digits = before.is_ascii_digit() && after.is_ascii_digit();
    match mid {
        '‘' | '’' => Some(letters || digits),
        '·' => Some(letters),
        // The others are changed by normalisation.
        _ if letters || digits => None,
        _ => Some(false),
    }
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
