//! Text of letters and punctuation that behave as ASCII does, in a form for [`super::ascii`].

use crate::memory::GrowVec;
use crate::normalize::class::Class;
use crate::normalize::{fold, is_ignorable, leading_ascii};

/// Bytes of text that are simplified at once.
const SIMPLE: usize = 1 << 13;
/// Bytes of ASCII that are copied in one step.
const CHUNK: usize = 16;

/// The start of a text in the form that [`super::ascii::tokenize`] takes: non-ASCII letters folded,
/// separators as spaces, invisible characters left out.
#[derive(Default)]
pub(super) struct SimpleText {
    /// The text up to `len`; the rest is unused room.
    bytes: Vec<u8>,
    len: usize,
    /// Bytes of the characters that were left out.
    left_out: usize,
    /// The last place to cut before the last character that was left out: the position here, and
    /// in the text.
    cut: (usize, usize),
    /// The position here up to which `cut` has been searched.
    searched: usize,
}

impl SimpleText {
    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Takes over the start of `text`, up to other characters, and back to the last place where the
    /// text can be cut. Returns its length. At least its first `ascii` bytes are ASCII.
    pub fn read(&mut self, text: &str, ascii: usize) -> usize {
        if self.bytes.is_empty() {
            self.bytes.grow_exact(SIMPLE + 2 * CHUNK, 0);
        }
        let bytes = text.as_bytes();
        let ascii = ascii.min(SIMPLE);
        self.bytes[..ascii].copy_from_slice(&bytes[..ascii]);
        (self.len, self.left_out) = (ascii, 0);
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
        // A mark may follow the last character.
        self.len = last_break(&self.bytes[..self.len - last_len]);
        if self.len > self.cut.0 {
            return self.len + self.left_out;
        }
        self.len = self.cut.0;
        self.cut.1
    }

    /// Adds the ASCII at the start of `text`, as far as there is room, and returns its length.
    #[inline(always)]
    fn push_ascii(&mut self, text: &[u8]) -> usize {
        let mut ascii = 0;
        // Most often another character comes soon, or none for long.
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

    /// Adds a character that is not ASCII and comes before `rest`. Returns false if it is another
    /// one than this form has.
    fn push_char(&mut self, c: char, rest: &str) -> bool {
        let (before, out) = self.bytes.split_at_mut(self.len);
        let len = c.len_utf8();
        match Class::from_char(c) {
            Class::Letter => match fold(c) {
                (first, None) => {
                    first.encode_utf8(out);
                }
                // ß, which takes as many bytes.
                (first, Some(second)) => out[..2].copy_from_slice(&[first as u8, second as u8]),
            },
            Class::Separator => out[..len].fill(b' '),
            Class::Mid => match joins(before, c, rest.chars().next()) {
                // Then it can count as a letter itself.
                Some(true) => {
                    c.encode_utf8(out);
                }
                Some(false) => out[..len].fill(b' '),
                None => return false,
            },
            // Without it, what follows is next to what is before: a mark would combine with that.
            Class::Other if is_ignorable(c) && !starts_with_other(rest) => {
                let after = last_break(&before[self.searched..]);
                if after > 0 {
                    let cut = self.searched + after;
                    self.cut = (cut, cut + self.left_out);
                }
                self.searched = self.len;
                self.left_out += len;
                return true;
            }
            _ => return false,
        }
        self.len += len;
        true
    }
}

/// Returns true if a text begins with a character of [`Class::Other`].
fn starts_with_other(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|first| !Class::from_char(first).is_no_mark())
}

/// Returns true if the text can be cut between `bytes`, of which non-ASCII ones are letters, and
/// `next`.
pub(super) fn ends_before(bytes: &[u8], next: char) -> bool {
    let last = bytes.last().map_or(Class::AsciiWord, |&byte| match byte {
        0x80.. => Class::Letter,
        _ => Class::from_char(char::from(byte)),
    });
    last.cut_before(Class::from_char(next))
}

/// The position after the last ASCII break, 0 if there is none.
pub(super) fn last_break(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|&byte| Class::is_ascii_break(byte))
        .map_or(0, |at| at + 1)
}

/// Returns true if the punctuation `mid` joins the text that ends with `before` and the text that
/// begins with `after`; `None` if the general path has to decide.
fn joins(before: &[u8], mid: char, after: Option<char>) -> Option<bool> {
    let before = before.last().copied().unwrap_or(b' ');
    let Some(after) = after else {
        return Some(false);
    };
    let class = Class::from_char(after);
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
