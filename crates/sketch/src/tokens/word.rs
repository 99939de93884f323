//! Words: the segments of [UAX 29] that have a letter or a digit (a character with the property
//! Alphabetic or of general category N), of the normal form of the text ([`crate::normalize`]).
//!
//! Han and Hiragana fall into single characters, Katakana and Hangul into runs, Thai and its
//! neighbours into runs between spaces. A segment that begins with a space is no word, even if it
//! has a mark that counts as alphabetic.
//!
//! The text is cut wherever that cannot change a word ([`Class`]): ASCII stretches, Han and kana,
//! and punctuation between them take short ways, and only what is left is normalised and segmented
//! in general.
//!
//! [UAX 29]: https://www.unicode.org/reports/tr29/#Word_Boundaries

use unicode_segmentation::UnicodeSegmentation;

use super::ascii;
use crate::normalize::class::Class;
use crate::normalize::{piece_len, push_normalized};
use crate::shingle::{HashSink, Shingles};

/// Bytes after which a stretch of the general kind ends at the next cut.
const STRETCH: usize = 1 << 13;
/// ASCII bytes ahead that make it worth while to leave the general way.
const ASCII_AHEAD: usize = 32;
/// Bytes of normalised text after which words are taken from it.
const NORMAL: usize = 1 << 16;
/// Bytes of text between two calls of `check`, roughly.
const CHECK_BYTES: usize = 1 << 18;

/// Finds words; reusable.
#[derive(Default)]
pub(crate) struct Words {
    /// Normalised text of which the words are still to be found.
    normal: String,
}

impl Words {
    /// Feeds the words of `text` to `shingles`, which feeds the hashes to `sink`. Calls `check`
    /// every few 100 kB.
    pub fn tokenize(
        &mut self,
        text: &str,
        shingles: &mut Shingles,
        sink: &mut impl HashSink,
        check: &mut dyn FnMut(),
    ) {
        self.normal.clear();
        self.normal.shrink_to(4 * NORMAL);
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
                Class::AsciiWord | Class::AsciiBreak => {
                    let len = ascii_len(rest);
                    if len > 0 {
                        ascii::tokenize(&rest.as_bytes()[..len], shingles, sink, check);
                        at += len;
                        continue;
                    }
                }
                Class::Solo | Class::Separator | Class::Mid => {
                    let (this, after) = rest.split_at(first.len_utf8());
                    if after
                        .chars()
                        .next()
                        .is_none_or(|next| Class::of(next).is_no_mark())
                    {
                        if class == Class::Solo {
                            shingles.push(this.as_bytes(), sink);
                        }
                        at += this.len();
                        continue;
                    }
                }
                Class::Letter | Class::Other => {}
            }
            let len = general_len(rest);
            self.general(&rest[..len], shingles, sink, check);
            at += len;
        }
    }

    /// Any text, with word boundaries at its ends.
    fn general(
        &mut self,
        mut text: &str,
        shingles: &mut Shingles,
        sink: &mut impl HashSink,
        check: &mut dyn FnMut(),
    ) {
        let mut enough = NORMAL;
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
            if self.normal.len() >= enough {
                let cut = last_cut(&self.normal);
                self.take_words(cut, shingles, sink);
                // A text without cuts is looked at again only when it has doubled.
                enough = NORMAL.max(2 * self.normal.len());
            }
        }
        self.take_words(self.normal.len(), shingles, sink);
    }

    fn take_words(&mut self, len: usize, shingles: &mut Shingles, sink: &mut impl HashSink) {
        for word in self.normal[..len].unicode_words() {
            // The two spaces that normalisation leaves; marks attach to them.
            if !word.starts_with([' ', '\u{1680}']) {
                shingles.push(word.as_bytes(), sink);
            }
        }
        self.normal.drain(..len);
    }
}

/// Length of the ASCII at the start of `text`, up to the last place where it can be cut.
fn ascii_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let len = bytes
        .iter()
        .position(|byte| !byte.is_ascii())
        .unwrap_or(bytes.len());
    let Some(next) = text[len..].chars().next() else {
        return len;
    };
    if Class::AsciiWord.cut_before(Class::of(next)) {
        return len;
    }
    // The last character itself may get a mark.
    bytes[..len - 1]
        .iter()
        .rposition(|&byte| Class::is_ascii_break(byte))
        .map_or(0, |at| at + 1)
}

/// Number of ASCII bytes at the start.
fn leading_ascii(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = bytes[at..].first_chunk::<64>() {
        // Without a branch for each byte, for vector code.
        if block.iter().fold(0, |all, byte| all | byte) >= 0x80 {
            break;
        }
        at += 64;
    }
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let high = u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080;
        if high != 0 {
            return at + (high.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii())
        .count()
}

/// Length of the stretch at the start of `text` that has to take the general way.
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
                Class::Solo | Class::Separator => true,
                _ if at >= STRETCH => true,
                Class::AsciiWord | Class::AsciiBreak => text.as_bytes()[at..]
                    .first_chunk::<ASCII_AHEAD>()
                    .is_some_and(|ahead| ahead.is_ascii()),
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

/// The last place where normalised text can be cut, 0 if there is none.
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
