//! Words of a page with one separator between them.

use super::elements::Part;
use crate::memory::{Grow, GrowVec};

/// Gathers text, with white space collapsed as a browser shows it.
#[derive(Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    /// What comes before the next character, if any follows.
    pending: Part,
}

impl Text {
    /// With room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut text = Self::default();
        text.bytes.ensure_room(bytes);
        text
    }

    /// Parts what was from what will be; the strongest part of several counts.
    pub fn part(&mut self, part: Part) {
        self.pending = self.pending.max(part);
    }

    /// Adds a stretch of characters. White space is one space; with `lines`, line breaks are kept.
    pub fn push(&mut self, stretch: &[u8], lines: bool) {
        let mut rest = stretch;
        while let Some(&first) = rest.first() {
            if is_space(first) {
                let line = lines && first == b'\n';
                self.part(if line { Part::Line } else { Part::Space });
                rest = &rest[1..];
                continue;
            }
            let len = rest
                .iter()
                .position(|&byte| is_space(byte))
                .unwrap_or(rest.len());
            self.separate();
            self.bytes.grow_by(&rest[..len]);
            rest = &rest[len..];
        }
    }

    fn separate(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if self.bytes.is_empty() {
            return;
        }
        match pending {
            Part::Nothing => {}
            Part::Space => self.bytes.grow_push(b' '),
            Part::Cell => self.bytes.grow_push(b'\t'),
            Part::Line => self.bytes.grow_push(b'\n'),
        }
    }

    /// The text.
    ///
    /// The tokenizer hands on what it was given, possibly in parts that end within a character; it
    /// adds nothing but characters. So the whole is valid, and were it not, what is wrong would
    /// become U+FFFD.
    pub fn finish(self) -> String {
        String::from_utf8(self.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// White space of HTML: space, tab, line feed, form feed, carriage return.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0C' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_separator_counts_once() {
        let mut text = Text::default();
        text.part(Part::Line);
        text.push(b" \n a\t b", false);
        text.part(Part::Cell);
        text.push(b" ", false);
        text.push(b"c", false);
        text.part(Part::Line);
        text.part(Part::Cell);
        text.push("\u{A0}é".as_bytes(), false);
        text.push(b"d \n\n  e f", true);
        text.part(Part::Space);
        assert_eq!(text.finish(), "a b\tc\n\u{A0}éd\ne f");
    }
}
