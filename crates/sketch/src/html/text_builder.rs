//! Builds the visible text of an HTML page from characters and separators.

use super::elements::Separator;
use crate::memory::{Grow, GrowVec};

/// Visible text of an HTML page, built from characters and separators. Runs of white space are
/// collapsed as in a browser.
#[derive(Default)]
pub(super) struct TextBuilder {
    /// The text so far, in UTF-8.
    bytes: Vec<u8>,
    /// Separator to write before the next character. At the start and at the end of the text, no
    /// separator is written.
    pending: Separator,
}

impl TextBuilder {
    /// Creates an empty text with room for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut text = Self::default();
        text.bytes.ensure_room(bytes);
        text
    }

    /// Puts a separator between the text so far and the text that follows. If several separators
    /// follow each other, only the strongest is written.
    pub fn separate(&mut self, separator: Separator) {
        self.pending = self.pending.max(separator);
    }

    /// Adds UTF-8 characters to the text. A run of white space becomes one line break if `lines` is
    /// true and the run has a line break, and otherwise one space.
    pub fn push(&mut self, characters: &[u8], lines: bool) {
        let mut rest = characters;
        while let Some(&first) = rest.first() {
            if is_space(first) {
                let line = lines && first == b'\n';
                let separator = if line {
                    Separator::Line
                } else {
                    Separator::Space
                };
                self.separate(separator);
                rest = &rest[1..];
                continue;
            }
            let len = rest
                .iter()
                .position(|&byte| is_space(byte))
                .unwrap_or(rest.len());
            self.push_separator();
            self.bytes.grow_by(&rest[..len]);
            rest = &rest[len..];
        }
    }

    /// Writes the pending separator, unless the text is empty.
    fn push_separator(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if self.bytes.is_empty() {
            return;
        }
        match pending {
            Separator::None => {}
            Separator::Space => self.bytes.grow_push(b' '),
            Separator::Cell => self.bytes.grow_push(b'\t'),
            Separator::Line => self.bytes.grow_push(b'\n'),
        }
    }

    /// Returns the finished text.
    ///
    /// The text is valid UTF-8. Its bytes come from the tokenizer, which copies the bytes of the
    /// page in order and adds only whole characters. If bytes were invalid nevertheless, U+FFFD
    /// would replace them.
    pub fn finish(self) -> String {
        String::from_utf8(self.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// Returns true for the white space of HTML: space, tab, line feed, form feed, carriage return.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0C' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_separator_counts_once() {
        let mut text = TextBuilder::default();
        text.separate(Separator::Line);
        text.push(b" \n a\t b", false);
        text.separate(Separator::Cell);
        text.push(b" ", false);
        text.push(b"c", false);
        text.separate(Separator::Line);
        text.separate(Separator::Cell);
        text.push("\u{A0}é".as_bytes(), false);
        text.push(b"d \n\n  e f", true);
        text.separate(Separator::Space);
        assert_eq!(text.finish(), "a b\tc\n\u{A0}éd\ne f");
    }
}
