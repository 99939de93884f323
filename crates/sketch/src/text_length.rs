//! Length of a text: the number of characters of its normal form, with white space collapsed.

use std::borrow::Cow;

use crate::html::html_text;
use crate::normalize::{Piece, each_piece_to_fold, fold_accents_and_digits};
use crate::options::{Accents, Normalize};
use crate::tokens::is_space;

/// Returns the number of characters of the normal form of a text, as used by `tokens => 'char'`.
/// Each run of white space counts as one character. White space at the ends does not count. If
/// `html` is true, `text` is an HTML page, and only its visible text counts. Calls `check` every
/// few 10 kB.
///
/// ```
/// use neardup_sketch::options::Accents;
/// use neardup_sketch::text_length;
///
/// assert_eq!(text_length(" Cafe\u{301}  au lait\n", false, Accents::Keep, &mut || ()), 12);
/// ```
#[must_use]
pub fn text_length(text: &str, html: bool, accents: Accents, check: &mut dyn FnMut()) -> u64 {
    let visible = if html {
        Cow::Owned(html_text(text, check))
    } else {
        Cow::Borrowed(text)
    };
    // The option `digits` is not needed: a digit is one character before and after it becomes 0.
    let options = Normalize {
        accents,
        ..Normalize::DEFAULT
    };
    let text = fold_accents_and_digits(visible, options, check);
    let mut count = Count::default();
    each_piece_to_fold(&text, &mut String::new(), check, |piece| match piece {
        Piece::Ascii(ascii) => count.add_ascii(ascii.as_bytes()),
        Piece::Other(other) => count.add(other),
    });
    // The number of spaces is one less than the number of words.
    count.visible + count.words.saturating_sub(1)
}

/// Numbers of characters and words of the text so far. White space separates words.
struct Count {
    /// Number of characters other than white space.
    visible: u64,
    words: u64,
    after_space: bool,
}

impl Default for Count {
    fn default() -> Self {
        Self {
            visible: 0,
            words: 0,
            after_space: true,
        }
    }
}

impl Count {
    fn add(&mut self, text: &str) {
        for c in text.chars() {
            let visible = !is_space(c);
            self.visible += u64::from(visible);
            self.words += u64::from(visible && self.after_space);
            self.after_space = !visible;
        }
    }

    fn add_ascii(&mut self, ascii: &[u8]) {
        let (Some(&first), Some(&last)) = (ascii.first(), ascii.last()) else {
            return;
        };
        let visible = |byte: u8| !is_space(byte.into());
        self.words += u64::from(visible(first) && self.after_space);
        self.visible += u64::from(visible(first));
        // No iteration depends on the previous ones, so that the compiler can vectorise the loop.
        for (&before, &byte) in ascii.iter().zip(&ascii[1..]) {
            self.visible += u64::from(visible(byte));
            self.words += u64::from(visible(byte) & !visible(before));
        }
        self.after_space = !visible(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::normalized;
    use crate::test_texts::any_text;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    fn length(text: &str) -> u64 {
        text_length(text, false, Accents::Keep, &mut || ())
    }

    proptest! {
        #[test]
        fn equals_the_definition(text in any_text()) {
            let normal = normalized(&text);
            let words: Vec<&str> = normal.split(is_space).filter(|w| !w.is_empty()).collect();
            prop_assert_eq!(length(&text), words.join(" ").chars().count() as u64);
        }

        #[test]
        fn blind_to_form_and_spaces(text in any_text()) {
            let expected = length(&text);
            prop_assert_eq!(length(&text.nfd().collect::<String>()), expected);
            prop_assert_eq!(length(&text.nfkc().collect::<String>()), expected);
            prop_assert_eq!(length(&format!(" \t{}\n", text.replace(' ', " \r\n "))), expected);
        }
    }

    #[test]
    fn markup_and_accents() {
        let page = "<nav hidden>Home</nav><p>Fish &amp;\n <b>ch</b>ips</p>";
        assert_eq!(text_length(page, true, Accents::Keep, &mut || ()), 12);
        assert_eq!(length(page), 52);
        let pointed = "שָׁלוֹם";
        assert_eq!(length(pointed), 7);
        assert_eq!(text_length(pointed, false, Accents::Remove, &mut || ()), 4);
        assert_eq!(length("ﷺ"), 18);
        assert_eq!(length(" \u{3000}\n"), 0);
    }

    #[test]
    fn long_texts_are_counted_in_pieces() {
        assert_eq!(length(&"a  b ".repeat(50_000)), 4 * 50_000 - 1);
        assert_eq!(length(&"é  ж ".repeat(50_000)), 4 * 50_000 - 1);
    }
}
