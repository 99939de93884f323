//! Optional steps before normalisation: removes accents, and replaces decimal digits by 0.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use super::{ensure_reordering, piece_len};
use crate::memory::{Grow, GrowString};
use crate::options::{Accents, Digits, Normalize};

/// Returns `text` without accents, if `options.accents` is [`Accents::Remove`], and with each digit
/// replaced by 0, if `options.digits` is [`Digits::Zero`]. `text` is not normalised yet.
///
/// Both steps work on the NFKD form of the text. In this form, accents are separate characters, and
/// plain digits replace characters such as `²` and full-width digits. Calls the cancellation check
/// `check` every few 10 kB.
pub(crate) fn fold_accents_and_digits<'a>(
    text: Cow<'a, str>,
    options: Normalize,
    check: &mut dyn FnMut(),
) -> Cow<'a, str> {
    if options == Normalize::DEFAULT {
        return text;
    }
    let remove = options.accents == Accents::Remove;
    let zero = options.digits == Digits::Zero;
    let change = |c: char| if zero && is_digit(c) { '0' } else { c };
    let mut out = String::new();
    out.ensure_room(text.len());
    let mut rest = &*text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_len(rest));
        if piece.is_ascii() {
            out.grow_chars(piece.chars().map(change));
        } else {
            ensure_reordering(piece);
            let accented = piece.nfkd().filter(|&c| !(remove && is_accent(c)));
            out.grow_chars(accented.map(change));
        }
        rest = after;
        check();
    }
    Cow::Owned(out)
}

/// Returns true for the marks that [`Accents::Remove`] removes:
///
/// - the combining diacritical marks of Unicode
/// - the points and accents of Hebrew
/// - the vowel signs and similar marks of Arabic, such as hamza and madda above a letter
///
/// The vowel signs of India and South-East Asia are kept, because they are letters of the word. The
/// voicing marks of Japanese are also kept.
const fn is_accent(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36F}'
            | '\u{1AB0}'..='\u{1AFF}'
            | '\u{1DC0}'..='\u{1DFF}'
            | '\u{20D0}'..='\u{20FF}'
            | '\u{FE20}'..='\u{FE2F}'
            // Points and accents of Hebrew.
            | '\u{591}'..='\u{5BD}'
            | '\u{5BF}'
            | '\u{5C1}'..='\u{5C2}'
            | '\u{5C4}'..='\u{5C5}'
            | '\u{5C7}'
            // Vowel signs of Arabic.
            | '\u{610}'..='\u{61A}'
            | '\u{64B}'..='\u{65F}'
            | '\u{670}'
            | '\u{6D6}'..='\u{6DC}'
            | '\u{6DF}'..='\u{6E4}'
            | '\u{6E7}'..='\u{6E8}'
            | '\u{6EA}'..='\u{6ED}'
    )
}

/// Code points of the digit 0 in all scripts with decimal digits (general category Nd, Unicode
/// 17.0), in ascending order. The digits 1 to 9 of a script follow its 0.
#[rustfmt::skip]
const ZEROS: [u32; 77] = [
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
    0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90,
    0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
    0x104A0, 0x10D30, 0x10D40, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0,
    0x11650, 0x116C0, 0x116D0, 0x116DA, 0x11730, 0x118E0, 0x11950, 0x11BF0, 0x11C50, 0x11D50,
    0x11DA0, 0x11DE0, 0x11F50, 0x16130, 0x16A60, 0x16AC0, 0x16B50, 0x16D70, 0x1CCF0, 0x1D7CE,
    0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E5F1, 0x1E950, 0x1FBF0,
];

/// Returns true if `c` is a decimal digit of any script.
fn is_digit(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    let after = ZEROS.partition_point(|&zero| zero <= c as u32);
    c as u32 - ZEROS[after - 1] < 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::normalized;
    use crate::test_texts::any_text;
    use proptest::prelude::*;

    const ACCENTS: Normalize = Normalize {
        accents: Accents::Remove,
        digits: Digits::Keep,
    };
    const DIGITS: Normalize = Normalize {
        accents: Accents::Keep,
        digits: Digits::Zero,
    };
    const BOTH: Normalize = Normalize {
        accents: Accents::Remove,
        digits: Digits::Zero,
    };

    fn with(options: Normalize, text: &str) -> String {
        normalized(&fold_accents_and_digits(text.into(), options, &mut || ()))
    }

    #[test]
    fn accents_go() {
        for (text, plain) in [
            ("Café Crème brûlée", "cafe creme brulee"),
            ("cafe\u{301}", "cafe"),
            ("Tiếng Việt", "tieng viet"),
            ("Příliš žluťoučký kůň", "prilis zlutoucky kun"),
            ("ὈΔΥΣΣΕΎΣ ᾠδή", "οδυσσευσ ωδη"),
            ("Ёлка, йод", "елка, иод"),
            ("İstanbul", "istanbul"),
            ("שָׁלוֹם", "שלום"),
            ("بِسْمِ اللَّهِ آ أ", "بسم الله ا ا"),
            // Letters of their own, and vowel signs, which are kept.
            ("Łódź Ørsted", "łodz ørsted"),
            ("がか ガカ", "がか ガカ"),
            ("हिन्दी สวัสดี 한국어", "हिन्दी สวัสดี 한국어"),
        ] {
            assert_eq!(with(ACCENTS, text), normalized(plain), "{text}");
        }
    }

    #[test]
    fn digits_become_zeros() {
        for (text, zeros) in [
            ("2024-01-31 3.14", "0000-00-00 0.00"),
            ("１２３ x² ①", "000 x0 0"),
            ("٣٤ ۵ ५ ๓ 𝟗", "00 0 0 0 0"),
            ("Ⅷ ½ 一", "viii 0⁄0 一"),
        ] {
            assert_eq!(with(DIGITS, text), zeros, "{text}");
        }
        assert_eq!(with(BOTH, "Été 2024"), "ete 0000");
    }

    /// The table has the 770 digits of Unicode 17, and all are numeric characters of the standard
    /// library. The library may know more digits.
    #[test]
    fn digits_are_those_of_unicode_17() {
        assert!(ZEROS.windows(2).all(|w| w[0] + 10 <= w[1]));
        let digits = ('\0'..=char::MAX).filter(|&c| is_digit(c));
        assert_eq!(digits.clone().count(), 770);
        assert!(digits.clone().all(char::is_numeric));
        // Digits without a compatibility decomposition may form words.
        assert!(digits.clone().all(|c| !c.is_alphabetic()));
    }

    proptest! {
        #[test]
        fn twice_is_once(text in any_text()) {
            for options in [ACCENTS, DIGITS, BOTH] {
                let once = with(options, &text);
                prop_assert_eq!(&with(options, &once), &once);
                prop_assert_eq!(&with(options, &text.nfc().collect::<String>()), &once);
            }
        }
    }
}
