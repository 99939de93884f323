//! Computes the normal form of a text, from which tokens are made. Texts that differ only in case,
//! width, composition or invisible characters have the same normal form. A text can be divided at a
//! normalisation boundary: the characters on one side do not change the normal form of the other
//! side.
//!
//! The normal form of a text X is toNFKC_Casefold(NFKD(X)) of the Unicode Standard (section 3.13,
//! R5). Compatibility characters are replaced by their equivalents. Upper case becomes lower case
//! by full case folding (`Straße` and `STRASSE` are `strasse`, a final sigma is a sigma).
//! Invisible characters are removed (soft hyphens, joiners, variation selectors). NFKD is applied
//! first, because the standard's own mapping works on single characters. Without NFKD, some texts
//! that differ only in the order of marks would have different normal forms.
//!
//! The normal form is stable: normalising it again does not change it. Normalising the text to NFC,
//! NFD, NFKC or NFKD beforehand does not change its normal form either.

mod accents_and_digits;
pub(crate) mod class;
mod fold;
mod fold_table;
mod leading;
pub(crate) mod traced;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use crate::memory::{Grow, GrowString, ensure_available};
pub(crate) use accents_and_digits::fold_accents_and_digits;
use class::Class;
use fold::folds_without_decomposition;
pub(crate) use fold::{fold, is_ignorable};
pub(crate) use leading::{is_common_han, leading_ascii, leading_han};

/// Returns the normal form of a text (see the [module](self)): case, width, composition and
/// invisible characters make no difference.
///
/// ```
/// assert_eq!(neardup_sketch::normalize::normalized("Ｓtraße ①"), "strasse 1");
/// ```
#[must_use]
pub fn normalized(text: &str) -> String {
    let mut out = String::new();
    push_normalized(text, &mut out);
    out
}

/// Normalises `text` in pieces of some kilobytes. Calls `each` for the normal form of each piece,
/// and the cancellation check `check` after each piece. `buffer` is working memory.
pub(crate) fn each_piece(
    text: &str,
    buffer: &mut String,
    check: &mut dyn FnMut(),
    mut each: impl FnMut(&str),
) {
    each_piece_to_fold(text, buffer, check, |piece| match piece {
        Piece::Ascii(ascii) => each(&ascii.to_ascii_lowercase()),
        Piece::Other(other) => {
            other.make_ascii_lowercase();
            each(other);
        }
    });
}

/// Piece of a text in its normal form, except that ASCII letters may be in upper case.
pub(crate) enum Piece<'a> {
    /// ASCII piece, unchanged from the text.
    Ascii(&'a str),
    /// Normal form of a piece with non-ASCII characters.
    Other(&'a mut String),
}

/// Like [`each_piece`], but ASCII letters in the pieces may be in upper case. Used by callers that
/// convert ASCII letters to lower case themselves.
pub(crate) fn each_piece_to_fold(
    mut text: &str,
    buffer: &mut String,
    check: &mut dyn FnMut(),
    mut each: impl FnMut(Piece),
) {
    while !text.is_empty() {
        let (piece, rest) = text.split_at(piece_len(text));
        if piece.is_ascii() {
            each(Piece::Ascii(piece));
        } else {
            buffer.clear();
            push_keeping_ascii_case(piece, buffer);
            each(Piece::Other(buffer));
        }
        text = rest;
        check();
    }
    buffer.clear();
    buffer.shrink_to(MAX_PIECE);
}

/// Appends the normal form of `text` to `out`, except that ASCII letters keep their case. This
/// function is faster than [`push_normalized`] for common characters.
fn push_keeping_ascii_case(mut text: &str, out: &mut String) {
    while !text.is_empty() {
        let ascii = leading_ascii(text.as_bytes());
        let next = text[ascii..].chars().next();
        // A mark after the ASCII would combine with the last ASCII character, which is therefore
        // normalised together with the mark.
        let marked = next.is_some_and(|next| !Class::from_char(next).never_combines());
        let (ascii, rest) = text.split_at(ascii.saturating_sub(usize::from(marked)));
        out.grow_str(ascii);
        // A mark may follow the last Han character, so this character is not copied here.
        let (han, rest) = rest.split_at(leading_han(rest.as_bytes()).saturating_sub(3));
        out.grow_str(han);
        let (len, next) = push_independent(rest, out);
        text = &rest[len..];
        // These characters cannot be normalised one by one. They end before the next character that
        // can.
        let end = next.map_or(0, |_| {
            let mut chars = text.char_indices().skip(1);
            let end = chars.find(|&(_, c)| normalized_alone(c).is_some());
            end.map_or(text.len(), |(at, _)| at)
        });
        push_normalized(&text[..end], out);
        text = &text[end..];
    }
}

/// Normalises the characters at the start of `text` one by one, and appends the results to `out`.
/// Stops at a character that cannot be normalised alone. Returns the number of bytes read, and this
/// character; `None` if the function stopped for another reason.
///
/// A character cannot be normalised alone if [`normalized_alone`] has no result for it, or if a
/// mark follows it. After the first character, the function also stops before ASCII and common Han
/// characters, because the caller copies long runs of these faster.
fn push_independent(text: &str, out: &mut String) -> (usize, Option<char>) {
    let mut chars = text.char_indices();
    let Some((_, mut c)) = chars.next() else {
        return (0, None);
    };
    let mut at = 0;
    loop {
        let Some((first, second)) = normalized_alone(c) else {
            return (at, Some(c));
        };
        let next = chars.next();
        if next.is_some_and(|(_, next)| !Class::from_char(next).never_combines()) {
            return (at, Some(c));
        }
        out.grow_char(first);
        out.grow_chars(second.into_iter());
        let runs = |c| matches!(c, '\0'..='\x7F' | '\u{4E00}'..='\u{9FFF}');
        if next.is_some_and(|(_, next)| runs(next)) {
            // The caller copies long runs of these characters.
            return (at + c.len_utf8(), None);
        }
        match next {
            None => return (text.len(), None),
            Some(next) => (at, c) = next,
        }
    }
}

/// Returns the normal form of `c`, which has one or two characters. Returns `None` if `c` cannot be
/// normalised alone. The neighbours of `c` do not change the result, except a mark directly after
/// `c` (see [`Class::never_combines`]).
#[inline]
fn normalized_alone(c: char) -> Option<(char, Option<char>)> {
    match Class::from_char(c) {
        Class::SingleCharWord | Class::OtherLetter => Some((c, None)),
        Class::AsciiWord | Class::AsciiBreak | Class::Letter => Some(fold(c)),
        Class::Separator | Class::Mid => match c {
            // Full-width forms of ASCII characters.
            '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).map(fold),
            '\u{A0}' | '\u{3000}' => Some((' ', None)),
            '…' | '￥' => None,
            _ => Some((c, None)),
        },
        Class::Other => None,
    }
}

/// Appends the normal form of `text` to `out`.
///
/// A normalisation boundary must separate the text in `out` from `text`: neither may change the
/// normal form of the other.
pub(crate) fn push_normalized(text: &str, out: &mut String) {
    if is_nfkc_quick(text.chars()) == IsNormalized::Yes && folds_in_place(text) {
        out.ensure_room(text.len());
        out.grow_chars(text.chars().filter(|&c| !is_ignorable(c)).flat_map(folded));
    } else {
        ensure_reordering(text);
        let folded = text.nfkd().filter(|&c| !is_ignorable(c)).flat_map(folded);
        out.grow_chars(folded.nfc());
    }
}

/// Checks that the memory for reordering the marks of `text` can be allocated, and unwinds
/// otherwise.
pub(crate) fn ensure_reordering(text: &str) {
    /// Maximum length in bytes of a text that is not checked. Reordering its marks takes no more
    /// memory than the allocator of the process has in reserve ([`crate::memory`]).
    const SHORT: usize = 1 << 15;
    /// Maximum bytes of memory that reordering takes for each byte of text. In the worst case,
    /// every character of the text is a mark. One list takes 8 bytes for each mark, and sorting
    /// this list takes half as much. A second list takes 4 bytes for each mark. Lists grow by
    /// doubling, so a list may be larger than its contents.
    const FACTOR: usize = 48;
    if text.len() > SHORT {
        ensure_available(FACTOR * text.len());
    }
}

/// Returns true if the normal form of `text` results from removing ignorable characters and folding
/// the case of each other character by itself. `text` must be in NFKC.
fn folds_in_place(text: &str) -> bool {
    let mut ignored = false;
    text.chars().all(|c| {
        let after_ignored = std::mem::replace(&mut ignored, is_ignorable(c));
        // When ignorable characters are removed, a mark may meet another letter or mark.
        folds_without_decomposition(c)
            && (!after_ignored || ignored || canonical_combining_class(c) == 0)
    })
}

/// Returns an iterator over the case folding of `c`, which has one or two characters.
fn folded(c: char) -> impl Iterator<Item = char> {
    let (first, second) = fold(c);
    std::iter::once(first).chain(second)
}

/// Number of bytes after which a piece of a text ends at the next normalisation boundary.
const PIECE: usize = 1 << 14;
/// Number of bytes after which a piece of a text ends even if there is no normalisation boundary.
/// This bounds the memory for a piece.
const MAX_PIECE: usize = 1 << 20;

/// Returns the length in bytes of the first piece of `text` that can be normalised alone.
///
/// After about 16 kB, a piece ends before the next character that never combines with the previous
/// character. If there is no such character within 1 MB, the piece ends after 1 MB, to bound the
/// memory for reordering marks. Real texts have no such long run of characters that combine.
pub(crate) fn piece_len(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let from = text.ceil_char_boundary(PIECE);
    let to = text.floor_char_boundary(text.len().min(MAX_PIECE));
    text[from..to]
        .char_indices()
        .find(|&(_, c)| is_piece_start(c))
        .map_or(to, |(at, _)| from + at)
}

/// Returns true if a new piece of a text can start with `c`: `c` does not change the normal form of
/// the characters before it, and they do not change the normal form of `c`.
fn is_piece_start(c: char) -> bool {
    normalized_alone(c).is_some() || is_boundary(c) || c.nfkd().next().is_some_and(is_boundary)
}

/// Returns true if a normalisation boundary always precedes `c`, and the normal form of `c` is its
/// case folding.
fn is_boundary(c: char) -> bool {
    canonical_combining_class(c) == 0
        && is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes
        && folds_without_decomposition(c)
        && !is_ignorable(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation: the normal form by its definition.
    fn defined(text: &str) -> String {
        let folded = text.nfkd().filter(|&c| !is_ignorable(c)).flat_map(folded);
        folded.nfc().collect()
    }

    #[test]
    fn some_normal_forms() {
        assert_eq!(normalized("℻ K Ａ"), "fax k a");
        assert_eq!(normalized("H\u{331}"), "ẖ");
        assert_eq!(normalized("ΟΔΟΣ οδος"), "οδοσ οδοσ");
        assert_eq!(
            normalized("Straße STRAẞE STRASSE"),
            "strasse strasse strasse"
        );
        assert_eq!(normalized("İ"), "i\u{307}");
        assert_eq!(normalized("İ\u{323}"), normalized("I\u{323}\u{307}"));
        assert_eq!(normalized("ᾠδή ΩΙΔΗ\u{301} ᾨΔΉ"), "ὠιδή ωιδή ὠιδή");
        assert_eq!(
            normalized("co\u{AD}op ❤\u{FE0F} می\u{200C}خواهم"),
            "coop ❤ میخواهم"
        );
        assert_eq!(normalized("e\u{34F}\u{301}"), "é");
        assert_eq!(normalized("ᏸᏰ ꭰᎠ"), "ᏰᏰ ᎠᎠ");
    }

    /// The normal form of each character is that of the definition. If a character in NFKC can be
    /// folded without decomposition, such as `É`, its folded form is in NFKC too (`é`).
    /// [`folds_in_place`] relies on this.
    #[test]
    fn every_character_folds_as_its_decomposition() {
        for c in '\0'..=char::MAX {
            let text = c.to_string();
            assert_eq!(normalized(&text), defined(&text), "{c:?}");
            let (first, _) = fold(c);
            if is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes
                && folds_without_decomposition(c)
            {
                let quick = is_nfkc_quick(std::iter::once(first));
                assert_eq!(quick, IsNormalized::Yes, "{c:?}");
                if first != c {
                    assert_eq!(canonical_combining_class(first), 0, "{c:?}");
                    assert_eq!(canonical_combining_class(c), 0, "{c:?}");
                }
            }
        }
    }

    #[test]
    fn every_character_is_stable() {
        for c in '\0'..=char::MAX {
            let once = normalized(c.encode_utf8(&mut [0; 4]));
            assert_eq!(normalized(&once), once, "{c:?}");
            assert!(!once.contains(is_ignorable), "{c:?}");
            assert!(once.chars().all(|c| fold(c) == (c, None)), "{c:?}");
        }
    }

    #[test]
    fn characters_normalised_alone() {
        for c in '\0'..=char::MAX {
            if let Some((first, second)) = normalized_alone(c) {
                let expected: String = std::iter::once(first).chain(second).collect();
                assert_eq!(normalized(&c.to_string()), expected, "{c:?}");
            }
        }
        let most = ('\0'..=char::MAX)
            .filter(|&c| Class::from_char(c) != Class::Other && normalized_alone(c).is_none());
        assert_eq!(most.collect::<String>(), "…￥");
    }

    proptest! {
        #[test]
        fn fast_paths_give_the_same(text in crate::test_texts::any_text()) {
            let mut out = String::new();
            push_keeping_ascii_case(&text, &mut out);
            prop_assert_eq!(out.to_ascii_lowercase(), normalized(&text));
        }

        #[test]
        fn stable_and_blind_to_the_form_of_the_input(text in crate::test_texts::any_text()) {
            let once = normalized(&text);
            prop_assert_eq!(&once, &defined(&text));
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
