//! From a text to its fingerprint.

use std::cell::Cell;
use std::thread::LocalKey;

use crate::extract::Extracted;
use crate::hash::join;
use crate::options::{TextOptions, Tokens};
use crate::sums::{BitSums, GroupedSums};

/// 64-bit simhash of a text; `None` if it has no feature.
///
/// The text is cut into tokens ([`crate::tokens`]) and these into features ([`crate::shingle`]), as
/// `options` say. The hash of a feature is [`crate::hash::feature_hash`], its weight one of
/// [`crate::weight`].
///
/// `check` is called every few 100 kB of work, so that the caller can stop by unwinding from it. So
/// it does when memory cannot be had ([`crate::memory`]).
///
/// Time is linear in the length of the text. Memory beyond the text: some 200 kB; up to 80 MB for
/// the counts of up to a million distinct features; beyond that many, 8 bytes for each token (for
/// Chinese words that is 2.7 times the text, for English ones 1.4 times, for characters 8 times);
/// and room for the two longest tokens (normalised, at worst six times as long) twice. Marks
/// without a letter between them are looked through in one go: if there are hundreds of megabytes
/// of them, seconds pass without a call of `check`.
pub fn simhash64_text(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Option<u64> {
    simhash_text(text, options, check).map(|[word]| word)
}

/// 128-bit simhash of a text; `None` if it has no feature.
///
/// As [`simhash64_text`], with the same features and weights; the hash of a feature is
/// [`crate::hash::feature_hash128`]. Counting features takes half as much memory again, and 16
/// bytes for each token beyond a million distinct features.
pub fn simhash128_text(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Option<u128> {
    simhash_text(text, options, check).map(join)
}

fn simhash_text<const W: usize>(
    text: &str,
    options: &TextOptions,
    check: &mut dyn FnMut(),
) -> Option<[u64; W]>
where
    [u64; W]: Extracted<W> + Summed<W>,
{
    if options.tokens == Tokens::JiebaTfidf {
        let mut sums = BitSums::default();
        <[u64; W]>::each_keyword(text, options, |hash, weight| sums.add(hash, weight), check);
        return sums.simhash();
    }
    let mut sums = <[u64; W]>::place().take().unwrap_or_default();
    sums.begin(options.weight.function());
    <[u64; W]>::each(text, options, |counted| sums.add(counted), check);
    let simhash = sums.simhash();
    <[u64; W]>::place().set(Some(sums));
    simhash
}

/// Memory for sums, kept from one text to the next.
type Place<const W: usize> = LocalKey<Cell<Option<Box<GroupedSums<W>>>>>;

/// A hash that memory for sums is kept for.
trait Summed<const W: usize> {
    fn place() -> &'static Place<W>;
}

macro_rules! place {
    ($words:literal) => {
        impl Summed<$words> for [u64; $words] {
            fn place() -> &'static Place<$words> {
                thread_local! {
                    static SUMS: Cell<Option<Box<GroupedSums<$words>>>> = const { Cell::new(None) };
                }
                &SUMS
            }
        }
    };
}

place!(1);
place!(2);

#[cfg(test)]
#[path = "../tests/reference/mod.rs"]
mod reference;
#[cfg(test)]
use crate::options;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::options::{Accents, Digits, Normalize, Weight};
    use proptest::prelude::*;

    const DEFAULT: &TextOptions = &TextOptions::SIMHASH;

    fn simhash64(text: &str) -> Option<u64> {
        simhash64_text(text, DEFAULT, &mut || ())
    }

    fn simhash128(text: &str) -> Option<u128> {
        simhash128_text(text, DEFAULT, &mut || ())
    }

    /// Characters that the rules treat differently, more often than any others.
    const TRICKY: &str = "aAzZ09__'.:,;\"- \t\r\n\u{B}\u{85}\u{A0}éÉßẞİıΣςσΑאبك한글ᄀ\u{1161}\u{11A8}\
        中文國字カタｶﾞかが゛゜。、，．：；！？「」（）１Ａａ_＿‘’“”·…\u{200C}\u{200D}\u{FEFF}\u{AD}\u{300}\u{301}\u{307}\u{308}\u{323}\
        \u{331}\u{338}\u{345}\u{3099}\u{FE0F}\u{E0101}HhIi🇩🇪👩👍🏽\u{1F468}ﷺ㌖ﬁ①½²K℻ĳǆ\u{1100}\u{0E01}\u{0E33}\u{0E38}\u{0E48}क\u{93F}\u{94D}\u{958}𝒜𠀀豈\u{1680}\u{3000}\u{2028}\u{0F73}\u{0344}";

    /// Texts that mix stretches of all kinds.
    pub(crate) fn any_text() -> impl Strategy<Value = String> {
        let tricky: Vec<char> = TRICKY.chars().collect();
        let piece = prop_oneof![
            4 => prop::collection::vec(prop::sample::select(tricky), 0..12)
                .prop_map(|chars| chars.into_iter().collect::<String>()),
            2 => "[a-zA-Z0-9_'.:,; \\-\"\\n]{0,40}",
            2 => "[一-鿿]{0,8}",
            1 => "[а-яА-Я ]{0,20}",
            1 => "\\PC{0,8}",
            1 => any::<String>(),
            1 => (prop::sample::select(vec!["The Quick", "é", " ", "_", "中，", "a.", "1"]), 0_usize..60)
                .prop_map(|(text, n)| text.repeat(n)),
        ];
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    /// All that can be chosen, but for jieba and HTML, which have tests of their own.
    fn any_options() -> impl Strategy<Value = TextOptions> {
        let tokens = [Tokens::Word, Tokens::Char, Tokens::Line];
        let weights = [Weight::Tf, Weight::Sqrt, Weight::Log, Weight::Set];
        let accents = [Accents::Keep, Accents::Remove];
        let digits = [Digits::Keep, Digits::Zero];
        (
            prop::sample::select(tokens.to_vec()),
            prop_oneof![8 => 1_usize..7, 1 => 1_usize..100],
            prop::sample::select(weights.to_vec()),
            prop::sample::select(accents.to_vec()),
            prop::sample::select(digits.to_vec()),
        )
            .prop_map(|(tokens, shingle, weight, accents, digits)| TextOptions {
                tokens,
                shingle,
                weight,
                normalize: Normalize { accents, digits },
                ..TextOptions::SIMHASH
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn every_option_equals_the_definition(
            text in any_text(),
            options in any_options(),
            repeat in prop_oneof![9 => Just(1_usize), 1 => 1_usize..200],
        ) {
            let text = text.repeat(repeat);
            let expected = reference::simhash64(&text, &options);
            prop_assert_eq!(simhash64_text(&text, &options, &mut || ()), expected);
            let expected = reference::simhash128(&text, &options);
            prop_assert_eq!(simhash128_text(&text, &options, &mut || ()), expected);
        }

        /// Without the characters of which a capital is the capital of another, and what marks do.
        #[test]
        fn blind_to_case(text in "[a-zA-ZÀ-ÖØ-öø-įĴ-ňŊ-žß ẞΑ-Ωα-ωςА-яЁё'.,\n]{0,60}") {
            let expected = simhash64(&text);
            prop_assert_eq!(simhash64(&text.to_uppercase()), expected);
            prop_assert_eq!(simhash64(&text.to_lowercase()), expected);
        }

        #[test]
        fn equals_the_definition(text in any_text()) {
            prop_assert_eq!(simhash64(&text), reference::simhash64(&text, DEFAULT));
            prop_assert_eq!(simhash128(&text), reference::simhash128(&text, DEFAULT));
        }

        #[test]
        fn ascii_equals_the_definition(text in "[a-dA-D0-3_'.:,; \\-\"\\n\\x00-\\x7F]{0,300}") {
            prop_assert_eq!(simhash64(&text), reference::simhash64(&text, DEFAULT));
        }

        #[test]
        fn blind_to_case_and_form(text in any_text()) {
            use unicode_normalization::UnicodeNormalization;
            let expected = simhash64(&text);
            prop_assert_eq!(simhash64(&crate::normalize::normalized(&text)), expected);
            prop_assert_eq!(simhash64(&text.nfkc().collect::<String>()), expected);
            prop_assert_eq!(simhash64(&text.nfd().collect::<String>()), expected);
        }
    }

    /// Every string of five characters over one of each kind that ASCII has for UAX 29.
    #[test]
    fn all_short_ascii_equals_the_definition() {
        let kinds = ['a', 'Z', '7', '_', '\'', '.', ':', ',', ' '];
        for code in 0..9_usize.pow(5) {
            let text: String = (0..5).map(|i| kinds[code / 9_usize.pow(i) % 9]).collect();
            assert_eq!(
                simhash64(&text),
                reference::simhash64(&text, DEFAULT),
                "{text:?}"
            );
        }
    }

    /// The same, wherever a block of 64 may cut it.
    #[test]
    fn block_borders_do_not_matter() {
        for pattern in [
            "don't", "3.14", "a_b", "____", "__a__", "x.y.z", "1,000;5", "a..b", "e'", "'e",
        ] {
            for before in 55..70 {
                for after in [0, 1, 70] {
                    for filler in [" ", "a", "1", "_", ". "] {
                        let text = filler.repeat(before) + pattern + &filler.repeat(after);
                        assert_eq!(
                            simhash64(&text),
                            reference::simhash64(&text, DEFAULT),
                            "{text:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn long_texts_equal_the_definition() {
        let word = |i: usize| format!("w{}", i * i % 7919);
        let english: String = (0..60_000)
            .map(|i| word(i) + if i % 9 == 0 { ", " } else { " " })
            .collect();
        let russian = english.replace('w', "Ж");
        let chinese: String = (0..40_000)
            .map(|i| char::from_u32(0x4E00 + i * i % 3001).unwrap())
            .collect();
        let one_word = "ab".repeat(200_000);
        let katakana = "㌖".repeat(30_000);
        let marks = format!("a{}b c", "\u{316}\u{301}".repeat(100_000));
        let phrases = "ﷺ".repeat(20_000);
        for text in [
            english, russian, chinese, one_word, katakana, marks, phrases,
        ] {
            assert_eq!(
                simhash64(&text),
                reference::simhash64(&text, DEFAULT),
                "{:.40}",
                text
            );
            assert_eq!(
                simhash128(&text),
                reference::simhash128(&text, DEFAULT),
                "{:.40}",
                text
            );
        }
    }

    #[test]
    fn no_word_no_fingerprint() {
        for text in [
            "",
            " ",
            "\n\n",
            "...",
            "!?",
            "___",
            "。，、",
            "😀👍🏽",
            "\u{200B}\u{AD} \u{FEFF}",
            "\u{301}",
        ] {
            assert_eq!(simhash64(text), None, "{text:?}");
            assert_eq!(simhash128(text), None, "{text:?}");
        }
    }

    #[test]
    fn one_word_is_one_feature() {
        assert_eq!(
            simhash64("Hello!"),
            Some(crate::hash::feature_hash(b"hello"))
        );
        assert_eq!(
            simhash128("Hello!"),
            Some(crate::hash::feature_hash128(b"hello"))
        );
        assert_eq!(
            simhash64("Hello, World"),
            Some(crate::hash::feature_hash(b"hello world"))
        );
    }

    /// The features of a text can be given one by one.
    #[test]
    fn equals_own_features() {
        let given =
            crate::simhash64_feature_slices(&["the quick", "quick brown", "brown fox"], None);
        assert_eq!(Ok(simhash64("The quick, brown fox.")), given);
        let features = ["the quick", "quick brown", "brown fox"];
        let given = crate::simhash128_features(features.map(|feature| (feature, 1.0)));
        assert_eq!(Ok(simhash128("The quick, brown fox.")), given);
    }

    #[test]
    fn check_is_called_and_may_unwind() {
        for unit in [
            "Some words. ",
            "слова и ещё ",
            "漢字",
            "a",
            "é",
            "\u{301}",
            "ﷺ",
            "か、",
            "カ",
        ] {
            let text = unit.repeat(4_000_000 / unit.len());
            let mut calls = 0;
            let expected = simhash64_text(&text, DEFAULT, &mut || calls += 1);
            assert!(calls >= 3, "{unit:?}: {calls}");
            let cancelled = std::panic::catch_unwind(|| {
                simhash64_text(&text, DEFAULT, &mut || {
                    std::panic::resume_unwind(Box::new(()))
                })
            });
            assert!(cancelled.is_err());
            assert_eq!(simhash64(&text), expected);
            assert_eq!(
                simhash64("Hello!"),
                Some(crate::hash::feature_hash(b"hello"))
            );
        }
    }
}
