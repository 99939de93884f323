//! Splits a text into lines, as the module [`super`] defines them.

use super::whitespace::{is_line_end, is_space};
use crate::feature_sink::FeatureSink;
use crate::normalize::each_piece;
use crate::shingle::Shingles;

/// Adds the lines of `text` as tokens to `shingles`, which passes features of consecutive lines to
/// `sink`. Calls the cancellation check `check` every few 10 kB. `buffer` is working memory.
pub(crate) fn tokenize(
    text: &str,
    buffer: &mut String,
    shingles: &mut Shingles,
    sink: &mut impl FeatureSink,
    check: &mut dyn FnMut(),
) {
    // `open` is true if the current line has characters other than white space. `space` is true if
    // white space follows the last of these characters.
    let (mut open, mut space) = (false, false);
    each_piece(text, buffer, check, |piece| {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            if is_space(first) {
                if is_line_end(first) && std::mem::take(&mut open) {
                    shingles.end_token(sink);
                }
                space = open;
                rest = &rest[first.len_utf8()..];
                continue;
            }
            if std::mem::take(&mut space) {
                shingles.push_part(b" ");
            }
            let len = match plain_len(rest.as_bytes()) {
                0 => (rest.find(|c| is_space(c) || !may_be_space(c))).unwrap_or(rest.len()),
                len => len,
            };
            let (part, after) = rest.split_at(len);
            shingles.push_part(part.as_bytes());
            open = true;
            rest = after;
        }
    });
    if open {
        shingles.end_token(sink);
    }
}

/// Returns true for all white space, and for other characters that are below U+0020 or begin with
/// the same byte as white space. [`is_plain`] is false for the first byte of each of these
/// characters.
fn may_be_space(c: char) -> bool {
    matches!(c, '\0'..=' ' | '\u{80}'..='\u{BF}' | '\u{1000}'..='\u{3FFF}')
}

/// Returns true for UTF-8 bytes above 0x20 that cannot begin a white-space character. A non-ASCII
/// character is white space only if its first byte is C2, E1, E2 or E3.
#[inline(always)]
fn is_plain(byte: u8) -> bool {
    byte > b' ' && byte != 0xC2 && !matches!(byte, 0xE1..=0xE3)
}

/// Number of bytes that [`plain_len`] checks at once.
const BLOCK: usize = 32;

/// Returns the length in bytes of the leading part of `text` that can be copied to a line
/// unchanged. This part has plain bytes ([`is_plain`]) with single spaces between them. Returns 0
/// if the first byte is not plain.
fn plain_len(text: &[u8]) -> usize {
    let mut len = 0;
    // Takes each byte with the previous byte, because two spaces in a row become one.
    let goes_on = |(&byte, &before): (&u8, &u8)| is_plain(byte) | (byte == b' ') & (before != b' ');
    if text.first().is_some_and(|&byte| is_plain(byte)) {
        len = 1;
        while let Some(block) = text.get(len - 1..len + BLOCK) {
            let pairs = block[1..].iter().zip(&block[..BLOCK]);
            if !pairs.map(goes_on).fold(true, |all, one| all & one) {
                break;
            }
            len += BLOCK;
        }
        let pairs = text[len..].iter().zip(&text[len - 1..]);
        len += pairs.take_while(|&pair| goes_on(pair)).count();
    }
    len - usize::from(len > 0 && text[len - 1] == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature_list::FeatureList;
    use crate::normalize::normalized;
    use crate::options::Tokens;
    use crate::test_texts::{any_text, set_options};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Reference implementation: the distinct lines of a text, by their definition.
    fn lines(text: &str) -> BTreeSet<String> {
        let normal = normalized(text);
        let lines = normal.split(is_line_end).map(|line| {
            let words: Vec<&str> = line
                .split(is_space)
                .filter(|word| !word.is_empty())
                .collect();
            words.join(" ")
        });
        lines.filter(|line| !line.is_empty()).collect()
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_definition(
            text in prop_oneof![any_text(), "[ab \u{1}\t\n\r\u{3000}。é\u{1680}]{0,200}"],
            repeat in prop_oneof![4 => Just(1_usize), 1 => 1_usize..400],
        ) {
            let text = text.repeat(repeat);
            let options = set_options(Tokens::Line, 1);
            let list = FeatureList::new(&text, &options, &mut || ());
            let features = (0..list.len()).filter_map(|at| list.get(at));
            let found: BTreeSet<String> = features.map(|feature| feature.text).collect();
            prop_assert_eq!(found, lines(&text));
        }
    }

    #[test]
    fn bytes_tell_where_a_space_may_begin() {
        for c in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes).as_bytes();
            let first = bytes[0];
            assert!(!is_space(c) || !is_plain(first), "{c:?}");
            assert_eq!(may_be_space(c), !is_plain(first), "{c:?}");
            assert!(bytes[1..].iter().all(|&byte| is_plain(byte)), "{c:?}");
        }
    }

    #[test]
    fn plain_text_has_single_spaces() {
        let long = "a b".repeat(40);
        for (text, len) in [
            ("", 0),
            (" a", 0),
            ("a", 1),
            ("a ", 1),
            ("a  b", 1),
            ("a b\tc", 3),
            ("ä b\u{a0}", 4),
            ("a \u{3000}", 1),
            (long.as_str(), 120),
            (&format!("{long}  {long}"), 120),
            (&format!("{long} \n{long}"), 120),
            ("\u{1}a", 0),
        ] {
            assert_eq!(plain_len(text.as_bytes()), len, "{text}");
        }
    }
}
