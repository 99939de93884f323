//! Extracts features that consist of consecutive characters (tokens of the kind `char`).
//!
//! The characters are taken from the normal form of the text ([`crate::normalize`]). Each run of
//! white space counts as one space. White space at both ends of the text is dropped (Leskovec,
//! Rajaraman, Ullman, "Mining of Massive Datasets", section 3.2.2). A feature is the concatenation
//! of its characters, without separators.

use super::whitespace::is_space;
use crate::feature_sink::{FeatureSink, Windows};
use crate::hash::windows::PAD;
use crate::memory::GrowVec;
use crate::normalize::{Piece, each_piece_to_fold, leading_ascii};

/// Extracts features of consecutive characters from texts. Keeps its buffers between texts.
#[derive(Default)]
pub(crate) struct CharWindows {
    window: Window,
    /// Working memory: normal form of one piece of the text.
    normal: String,
}

/// Buffer of the last characters of a text. Features that were not passed to the sink yet begin at
/// these characters.
#[derive(Default)]
struct Window {
    /// The buffered characters in UTF-8. Bytes from `len` on are unused.
    bytes: Vec<u8>,
    /// Offset in `bytes` of the start of each buffered character, and the end of the last
    /// character. These are `chars + 1` elements. Later elements are unused.
    starts: Vec<u32>,
    /// Number of buffered characters.
    chars: usize,
    /// Number of bytes of the buffered characters.
    len: usize,
    /// True if the text so far is empty or ends with a space. White space that follows is then
    /// dropped.
    after_space: bool,
}

impl CharWindows {
    /// Passes the features of `width` consecutive characters of `text` to `sink`. A text of fewer
    /// characters is a single feature. Calls the cancellation check `check` every few 10 kB.
    pub fn extract(
        &mut self,
        text: &str,
        width: usize,
        sink: &mut impl FeatureSink,
        check: &mut dyn FnMut(),
    ) {
        let Self { window, normal } = self;
        window.reset();
        let mut any = false;
        each_piece_to_fold(text, normal, check, |piece| {
            match piece {
                Piece::Ascii(ascii) => window.push(ascii),
                Piece::Other(other) => window.push(other),
            }
            any |= window.emit_features(width, sink);
        });
        let chars = window.finish();
        if !any && chars > 0 {
            window.emit_features(chars, sink);
        }
        window.reset();
    }
}

/// Maximum length of each vector of [`Window`] that is kept between texts. Longer vectors are
/// shortened.
const KEPT_BYTES: usize = 1 << 16;

/// Number of ASCII characters that [`Window::push_block`] adds at once.
const BLOCK: usize = 32;

#[inline(always)]
const fn is_ascii_space(byte: u8) -> bool {
    (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)
}

/// Returns a space for ASCII white space, and any other ASCII character in lower case.
#[inline(always)]
const fn plain(byte: u8) -> u8 {
    if is_ascii_space(byte) {
        b' '
    } else {
        byte.to_ascii_lowercase()
    }
}

impl Window {
    fn reset(&mut self) {
        self.bytes.truncate(KEPT_BYTES);
        self.bytes.shrink_to(KEPT_BYTES);
        self.starts.truncate(KEPT_BYTES);
        self.starts.shrink_to(KEPT_BYTES);
        (self.chars, self.len, self.after_space) = (0, 0, true);
    }

    /// Adds a piece of the normal form of a text. ASCII letters in `piece` may be in upper case.
    fn push(&mut self, piece: &str) {
        // `piece` has at most one character per byte. There is one start more than characters.
        let room = self.len + piece.len() + PAD;
        if self.bytes.len() < room {
            self.bytes.grow_to(room, 0);
        }
        let room = self.chars + piece.len() + 1;
        if self.starts.len() < room {
            self.starts.grow_to(room, 0);
        }
        let mut rest = piece;
        while !rest.is_empty() {
            let (ascii, other) = rest.split_at(leading_ascii(rest.as_bytes()));
            self.push_ascii(ascii.as_bytes());
            let ascii = other.bytes().position(|byte| byte.is_ascii());
            let (other, ascii) = other.split_at(ascii.unwrap_or(other.len()));
            self.push_other(other);
            rest = ascii;
        }
        self.starts[self.chars] = self.len as u32;
    }

    fn push_ascii(&mut self, ascii: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if ascii.len() >= BLOCK && crate::simd::has_avx2() {
            // SAFETY: the processor has AVX2, as checked above.
            #[allow(unsafe_code)]
            unsafe {
                self.push_ascii_avx2(ascii);
            }
            return;
        }
        self.push_ascii_portable(ascii);
    }

    /// [`Self::push_ascii_portable`], compiled for AVX2 (vectors of 32 bytes).
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn push_ascii_avx2(&mut self, ascii: &[u8]) {
        self.push_ascii_portable(ascii);
    }

    #[inline(always)]
    fn push_ascii_portable(&mut self, ascii: &[u8]) {
        let (blocks, rest) = ascii.as_chunks::<BLOCK>();
        for block in blocks {
            self.push_block(block);
        }
        self.push_bytes(rest);
    }

    /// Adds a block of ASCII characters. If no white space in it follows other white space, as in
    /// most blocks, adds all characters at once. Otherwise adds them one by one.
    #[inline(always)]
    fn push_block(&mut self, block: &[u8; BLOCK]) {
        let spaces = block.map(|byte| u8::from(is_ascii_space(byte)));
        let mut doubled = spaces[0] & u8::from(self.after_space);
        for (this, next) in spaces.iter().zip(&spaces[1..]) {
            doubled |= this & next;
        }
        if doubled != 0 {
            return self.push_bytes(block);
        }
        let out = &mut self.bytes[self.len..][..BLOCK];
        for (out, &byte) in out.iter_mut().zip(block) {
            *out = plain(byte);
        }
        let starts = &mut self.starts[self.chars..][..BLOCK];
        for (n, start) in starts.iter_mut().enumerate() {
            *start = self.len as u32 + n as u32;
        }
        self.len += BLOCK;
        self.chars += BLOCK;
        self.after_space = spaces[BLOCK - 1] != 0;
    }

    fn push_bytes(&mut self, ascii: &[u8]) {
        for &byte in ascii {
            let space = is_ascii_space(byte);
            // The character is always written. If it is a repeated space, the next character
            // overwrites it.
            self.bytes[self.len] = plain(byte);
            self.starts[self.chars] = self.len as u32;
            let counts = usize::from(!(space & self.after_space));
            self.len += counts;
            self.chars += counts;
            self.after_space = space;
        }
    }

    fn push_other(&mut self, other: &str) {
        let mut rest = other;
        while let Some(c) = rest.chars().next() {
            let (char, after) = rest.split_at(c.len_utf8());
            rest = after;
            if is_space(c) {
                self.push_ascii(b" ");
                continue;
            }
            self.starts[self.chars] = self.len as u32;
            self.bytes[self.len..][..char.len()].copy_from_slice(char.as_bytes());
            self.len += char.len();
            self.chars += 1;
            self.after_space = false;
        }
    }

    /// Ends the text: drops a space at its end, and returns the number of characters in the buffer.
    fn finish(&mut self) -> usize {
        if self.chars > 0 && self.after_space {
            self.chars -= 1;
            self.len -= 1;
            self.after_space = false;
        }
        self.chars
    }

    /// Passes all features of `width` buffered characters to `sink`. If the last character is a
    /// space, the feature that ends with it is not passed yet, because a space at the end of the
    /// text is dropped. Keeps the characters at which later features begin. Returns true if a
    /// feature was passed.
    fn emit_features(&mut self, width: usize, sink: &mut impl FeatureSink) -> bool {
        let ready = self.chars - usize::from(self.chars > 0 && self.after_space);
        let Some(more) = ready.checked_sub(width) else {
            return false;
        };
        let starts = &self.starts[..=ready];
        sink.add_windows(Windows {
            bytes: &self.bytes,
            starts,
            width,
            gap: 0,
        });
        let from = starts[more + 1];
        self.bytes.copy_within(from as usize..self.len, 0);
        sink.bytes_dropped(from as usize);
        self.len -= from as usize;
        self.starts.copy_within(more + 1..=self.chars, 0);
        self.chars -= more + 1;
        for start in &mut self.starts[..=self.chars] {
            *start -= from;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_texts::FeatureTexts;
    use proptest::prelude::*;

    fn found(chars: &mut CharWindows, text: &str, width: usize) -> Vec<String> {
        let mut all = FeatureTexts(Vec::new());
        chars.extract(text, width, &mut all, &mut || ());
        all.0
    }

    /// Reference implementation: the features by their definition, from the whole normal form.
    fn defined(text: &str, width: usize) -> Vec<String> {
        let normal = crate::normalize::normalized(text);
        let words: Vec<&str> = normal.split(is_space).filter(|w| !w.is_empty()).collect();
        let chars: Vec<char> = words.join(" ").chars().collect();
        let string = |chars: &[char]| chars.iter().collect();
        match chars.len() {
            0 => Vec::new(),
            len if len < width => vec![string(&chars)],
            _ => chars.windows(width).map(string).collect(),
        }
    }

    #[test]
    fn published_bigrams() {
        let mut all = found(&mut CharWindows::default(), "the cat sat on the mat", 2);
        assert_eq!(all.len(), 21);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 15);
    }

    #[test]
    fn white_space_is_one_space() {
        let mut chars = CharWindows::default();
        for text in ["A b", "  a \t\n\u{3000} B\u{2028}\r\n", "a\u{A0}\u{AD}b "] {
            assert_eq!(found(&mut chars, text, 1), ["a", " ", "b"], "{text:?}");
            assert_eq!(found(&mut chars, text, 9), ["a b"], "{text:?}");
        }
        assert_eq!(found(&mut chars, " \n\u{3000}", 1), [""; 0]);
        assert_eq!(found(&mut chars, "", 3), [""; 0]);
    }

    proptest! {
        #[test]
        fn implementations_agree(
            ascii in "[a-zA-Z \\t\\n.\\x00-\\x7F]{0,300}",
            before in "[a ]{0,3}",
        ) {
            let pushed = |how: fn(&mut Window, &[u8])| {
                let mut window = Window {
                    bytes: vec![0; 1000],
                    starts: vec![0; 1000],
                    after_space: true,
                    ..Window::default()
                };
                window.push_bytes(before.as_bytes());
                how(&mut window, ascii.as_bytes());
                window.bytes.truncate(window.len);
                window.starts.truncate(window.chars);
                (window.bytes, window.starts, window.after_space)
            };
            let plain = pushed(Window::push_bytes);
            prop_assert_eq!(&pushed(Window::push_ascii), &plain);
            prop_assert_eq!(&pushed(|window, ascii| window.push_ascii_portable(ascii)), &plain);
        }

        #[test]
        fn equals_the_definition(
            texts in prop::collection::vec(crate::test_texts::any_text(), 1..4),
            width in 1_usize..8,
            repeat in prop_oneof![9 => Just(1_usize), 1 => 1_usize..3000],
        ) {
            let mut chars = CharWindows::default();
            for text in texts {
                let text = if text.len() * repeat < 100_000 { text.repeat(repeat) } else { text };
                prop_assert_eq!(found(&mut chars, &text, width), defined(&text, width));
            }
        }
    }
}
