//! Characters before they are cut into tokens.
//!
//! The normal form of a text is NFKC(lower(NFKC(text))), with [NFKC] by UAX 15 and the lower-case
//! mapping of Unicode, final sigma as sigma. In this order because
//! - NFKC first: `℻` or the Kelvin sign turn into capitals only by it, which are then lowered;
//! - NFKC last: lower case can make compositions possible that were not, as in H̱ (two characters,
//!   no composed form) and ẖ (one).
//!
//! The result is stable: normalising it again changes nothing, and neither does normalising the
//! text to NFC, NFD, NFKC or NFKD beforehand.
//!
//! [NFKC]: https://www.unicode.org/reports/tr15/

pub(crate) mod class;
mod lower;
mod lower_table;
pub(crate) mod options;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

pub(crate) use lower::lower;

/// The normal form of a text, for tests and for showing users what happened.
#[must_use]
pub fn normalized(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_normalized(text, &mut out);
    out
}

/// Hands over the normal form of `text` in pieces of some kilobytes; `buffer` is room for one. Calls
/// `check` between them.
pub(crate) fn each_piece(
    mut text: &str,
    buffer: &mut String,
    check: &mut dyn FnMut(),
    mut each: impl FnMut(&str),
) {
    while !text.is_empty() {
        let (piece, rest) = text.split_at(piece_len(text));
        buffer.clear();
        push_normalized(piece, buffer);
        each(buffer);
        text = rest;
        check();
    }
    buffer.clear();
    buffer.shrink_to(MAX_PIECE);
}

/// Appends the normal form of `text`.
///
/// To what `out` already holds there must be a normalisation boundary.
pub(crate) fn push_normalized(text: &str, out: &mut String) {
    if is_nfkc_quick(text.chars()) == IsNormalized::Yes && !text.contains('İ') {
        push_lower(text, out);
    } else {
        out.extend(text.nfkc().flat_map(lowered).nfkc());
    }
}

/// Appends `text`, which is in NFKC and whose lower case is too, in lower case.
pub(crate) fn push_lower(text: &str, out: &mut String) {
    out.extend(text.chars().map(|c| lower(c).0));
}

fn lowered(c: char) -> impl Iterator<Item = char> {
    let (first, second) = lower(c);
    std::iter::once(first).chain(second)
}

/// Bytes of a text that are normalised in one go, unless there is no boundary.
const PIECE: usize = 1 << 14;
/// Bytes of a text without any boundary after which it is cut nevertheless.
const MAX_PIECE: usize = 1 << 20;

/// Length of the first piece of `text` that can be normalised by itself.
///
/// After some 16 kB a piece ends before a character that never combines with one before it. Only
/// when there is none in 1 MB (such as a million combining marks on one letter, which are no text)
/// is it cut anywhere, to bound the memory that reordering takes; what stands in such a flood is
/// then normalised in pieces.
pub(crate) fn piece_len(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let from = text.ceil_char_boundary(PIECE);
    let to = text.floor_char_boundary(text.len().min(MAX_PIECE));
    text[from..to]
        .char_indices()
        .find(|&(_, c)| starts_anew(c))
        .map_or(to, |(at, _)| from + at)
}

/// Whether normalisation never looks from `c` on at what stands before it.
fn starts_anew(c: char) -> bool {
    canonical_combining_class(c) == 0
        && is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes
        && c != 'İ'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_of_steps() {
        assert_eq!(normalized("℻ K Ａ"), "fax k a");
        assert_eq!(normalized("H\u{331}"), "ẖ");
        assert_eq!(normalized("ΟΔΟΣ οδος"), "οδοσ οδοσ");
        assert_eq!(normalized("Straße STRAẞE"), "straße straße");
        assert_eq!(normalized("İ"), "i\u{307}");
        assert_eq!(normalized("İ\u{323}"), normalized("I\u{323}\u{307}"));
    }

    /// What [`push_lower`] relies on: the lower case of a character that is in NFKC by itself is too,
    /// and lower case neither makes nor unmakes a combining mark.
    #[test]
    fn lower_case_keeps_single_characters_normal() {
        for c in ('\0'..=char::MAX).filter(|&c| c != 'İ') {
            let l = lower(c).0;
            if is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes {
                assert_eq!(
                    is_nfkc_quick(std::iter::once(l)),
                    IsNormalized::Yes,
                    "{c:?}"
                );
            }
            if l != c {
                assert_eq!(canonical_combining_class(l), 0, "{c:?}");
                assert_eq!(canonical_combining_class(c), 0, "{c:?}");
            }
        }
    }

    #[test]
    fn every_character_is_stable() {
        for c in '\0'..=char::MAX {
            let once = normalized(c.encode_utf8(&mut [0; 4]));
            assert_eq!(normalized(&once), once, "{c:?}");
            assert!(once.chars().all(|c| lower(c) == (c, None)), "{c:?}");
        }
    }

    proptest! {
        #[test]
        fn stable_and_blind_to_the_form_of_the_input(text in crate::text::tests::any_text()) {
            let once = normalized(&text);
            prop_assert_eq!(&normalized(&once), &once);
            prop_assert_eq!(&once.nfkc().collect::<String>(), &once);
            for form in [
                text.nfc().collect::<String>(),
                text.nfd().collect(),
                text.nfkc().collect(),
                text.nfkd().collect(),
            ] {
                prop_assert_eq!(&normalized(&form), &once);
            }
        }
    }

    #[test]
    fn pieces_are_bounded() {
        let flood = "\u{301}".repeat(3 << 20);
        assert_eq!(piece_len(&flood), MAX_PIECE);
        let text = "é".repeat(PIECE);
        assert_eq!(piece_len(&text), PIECE);
        assert_eq!(piece_len("abc"), 3);
    }
}
