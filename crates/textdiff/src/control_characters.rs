//! Characters that control a terminal or the direction of text, and the visible names that are
//! printed in their place.

use std::fmt;

/// Character that would control a terminal, or change the direction of the text after it.
pub(crate) struct Control(char);

impl Control {
    /// Returns `None` unless the character is a control character other than tab and line feed, or
    /// a bidirectional embedding, override or isolate.
    pub fn from_char(c: char) -> Option<Self> {
        let bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let control = c.is_control() && !matches!(c, '\t' | '\n');
        (bidi || control).then_some(Self(c))
    }
}

/// Writes the visible name of the character: `^[` for escape, as terminals do, and `U+009B` for a
/// character beyond ASCII.
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match u8::try_from(self.0) {
            Ok(byte) if byte.is_ascii() => write!(f, "^{}", char::from(byte ^ 0x40)),
            _ => write!(f, "U+{:04X}", u32::from(self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown() {
        for (c, expected) in [
            ('\u{1b}', "^["),
            ('\r', "^M"),
            ('\0', "^@"),
            ('\u{7f}', "^?"),
            ('\u{9b}', "U+009B"),
            ('\u{202e}', "U+202E"),
        ] {
            assert_eq!(Control::from_char(c).unwrap().to_string(), expected);
        }
        for c in ['\t', '\n', ' ', 'a', 'é', '\u{200f}', '\u{ad}', '一'] {
            assert!(Control::from_char(c).is_none(), "{c:?}");
        }
    }
}
