//! Converts text whose letters and punctuation behave like ASCII into a form that the ASCII
//! tokenizer [`super::ascii`] reads. The conversion ends at a cut position, where the text can be
//! cut without changing a word.

use crate::memory::GrowVec;
use crate::normalize::class::Class;
use crate::normalize::{fold, is_ignorable, leading_ascii};

/// Length of the simplified text, in bytes, at which [`SimpleText::read`] stops. The caller reads
/// the rest of the text in later calls.
const SIMPLE: usize = 1 << 13;
/// Number of bytes that [`SimpleText::push_ascii`] copies before it looks for more ASCII.
const CHUNK: usize = 16;

/// Simplified start of a text, which [`super::ascii::tokenize`] reads: non-ASCII letters are
/// case-folded, non-ASCII separators are replaced by spaces, and invisible characters are removed.
#[derive(Default)]
pub(super) struct SimpleText {
    /// The simplified text. Bytes from `len` on are unused.
    bytes: Vec<u8>,
    /// Length of the simplified text in bytes.
    len: usize,
    /// Number of bytes of removed characters. The original text is longer than `len` by this
    /// number.
    removed_bytes: usize,
    /// Last cut position before the last removed character, as two offsets: in `bytes`, and in the
    /// original text. The offsets differ, because removed characters are only in the original text.
    /// Both are 0 if there is no such position.
    cut: (usize, usize),
    /// Offset in `bytes` at which the last character was removed, or 0. `cut` is the last cut
    /// position before it, so the next search for a cut position begins here.
    searched: usize,
}

impl SimpleText {
    /// Returns the simplified text.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Simplifies the start of `text`. The first `ascii` bytes of `text` must be ASCII. Stops at
    /// the end of `text`, at the first character that the simplified form cannot represent, or
    /// after about [`SIMPLE`] bytes. Drops the simplified text after the last cut position, unless
    /// the text can be cut where the function stops. Returns the number of bytes of `text` whose
    /// simplified form is kept, which may be 0.
    pub fn read(&mut self, text: &str, ascii: usize) -> usize {
        if self.bytes.is_empty() {
            self.bytes.grow_exact(SIMPLE + 2 * CHUNK, 0);
        }
        let bytes = text.as_bytes();
        let ascii = ascii.min(SIMPLE);
        self.bytes[..ascii].copy_from_slice(&bytes[..ascii]);
        (self.len, self.removed_bytes) = (ascii, 0);
        (self.cut, self.searched) = ((0, 0), 0);
        let (mut at, mut last_len) = (ascii, usize::from(ascii > 0));
        let whole = loop {
            if self.len >= SIMPLE {
                break false;
            }
            let ascii = self.push_ascii(&bytes[at..]);
            if ascii > 0 {
                at += ascii;
                last_len = 1;
                continue;
            }
            let Some(c) = text[at..].chars().next() else {
                break true;
            };
            let before = self.len;
            if !self.push_char(c, &text[at + c.len_utf8()..]) {
                break ends_before(self.text(), c);
            }
            at += c.len_utf8();
            if self.len > before {
                last_len = self.len - before;
            }
        };
        if whole {
            return at;
        }
        // A mark may follow the last character and change it.
        self.len = last_break(&self.bytes[..self.len - last_len]);
        if self.len > self.cut.0 {
            return self.len + self.removed_bytes;
        }
        self.len = self.cut.0;
        self.cut.1
    }

    /// Adds the leading ASCII of `text`, as far as there is room. Returns the number of bytes
    /// added.
    #[inline(always)]
    fn push_ascii(&mut self, text: &[u8]) -> usize {
        let mut ascii = 0;
        // Usually the next non-ASCII character follows soon, or not for a long time.
        if let Some(chunk) = text.first_chunk::<CHUNK>() {
            self.bytes[self.len..][..CHUNK].copy_from_slice(chunk);
            let high = u128::from_le_bytes(*chunk) & (u128::MAX / 0xFF * 0x80);
            ascii = high.trailing_zeros() as usize / 8;
            self.len += ascii;
            if ascii < CHUNK {
                return ascii;
            }
        }
        let room = (SIMPLE + CHUNK).saturating_sub(self.len);
        let rest = &text[ascii..];
        let more = leading_ascii(&rest[..rest.len().min(room)]);
        self.bytes[self.len..][..more].copy_from_slice(&rest[..more]);
        self.len += more;
        ascii + more
    }

    /// Adds the non-ASCII character `c`, which precedes the text `rest`. Returns false if the
    /// simplified form cannot represent `c`.
    fn push_char(&mut self, c: char, rest: &str) -> bool {
        let (before, out) = self.bytes.split_at_mut(self.len);
        let len = c.len_utf8();
        match Class::from_char(c) {
            Class::Letter => match fold(c) {
                (first, None) => {
                    first.encode_utf8(out);
                }
                // ß becomes `ss`, which also has two bytes.
                (first, Some(second)) => out[..2].copy_from_slice(&[first as u8, second as u8]),
            },
            Class::Separator => out[..len].fill(b' '),
            Class::Mid => match mid_joins(before, c, rest.chars().next()) {
                // The punctuation is inside a word, so the ASCII tokenizer may count its bytes as
                // letters.
                Some(true) => {
                    c.encode_utf8(out);
                }
                Some(false) => out[..len].fill(b' '),
                None => return false,
            },
            // Removing an invisible character joins its neighbours, so a mark after it would
            // combine with the character before it.
            Class::Other if is_ignorable(c) && !starts_with_other(rest) => {
                let after = last_break(&before[self.searched..]);
                if after > 0 {
                    let cut = self.searched + after;
                    self.cut = (cut, cut + self.removed_bytes);
                }
                self.searched = self.len;
                self.removed_bytes += len;
                return true;
            }
            _ => return false,
        }
        self.len += len;
        true
    }
}

/// Returns true if `text` begins with a character of [`Class::Other`], which may be a mark.
fn starts_with_other(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|first| !Class::from_char(first).never_combines())
}

/// Returns true if a text can be cut between `bytes` and the character `next` without changing its
/// words. Non-ASCII `bytes` must be letters of [`Class::Letter`].
pub(super) fn ends_before(bytes: &[u8], next: char) -> bool {
    let last = bytes.last().map_or(Class::AsciiWord, |&byte| match byte {
        0x80.. => Class::Letter,
        _ => Class::from_char(char::from(byte)),
    });
    last.cut_before(Class::from_char(next))
}

/// Returns the offset after the last byte of [`Class::AsciiBreak`], or 0 if there is none.
pub(super) fn last_break(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|&byte| Class::is_ascii_break(byte))
        .map_or(0, |at| at + 1)
}

/// Returns true if the punctuation `mid` joins the text before it and the text after it to one
/// word. `before` is the simplified text before `mid`. `after` is the next character, or `None` at
/// the end of the text. Returns `None` if only the general path of the word tokenizer can decide
/// this.
fn mid_joins(before: &[u8], mid: char, after: Option<char>) -> Option<bool> {
    let before = before.last().copied().unwrap_or(b' ');
    let Some(after) = after else {
        return Some(false);
    };
    let class = Class::from_char(after);
    if !class.never_combines() || class == Class::OtherLetter {
        return None;
    }
    let letters = (before.is_ascii_alphabetic() || before >= 0x80)
        && (after.is_ascii_alphabetic() || class == Class::Letter);
    let digits = before.is_ascii_digit() && after.is_ascii_digit();
    match mid {
        '‘' | '’' => Some(letters || digits),
        '·' => Some(letters),
        // Normalisation changes all other joining punctuation to ASCII.
        _ if letters || digits => None,
        _ => Some(false),
    }
}
