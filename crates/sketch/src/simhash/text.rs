//! Simhash of a text: its features are extracted, counted, weighted and summed.

use super::GroupedAccumulator;
use super::accumulator::Accumulator;
use crate::common_features::FeatureSet;
use crate::feature_counts::Counted;
use crate::hash::windows::WindowHash;
use crate::hash::{FeatureHash, join};
use crate::options::TextOptions;
use crate::sketcher::{Scratch, Sketcher};
use crate::tokens::{self, FeatureExtractor};

impl Sketcher {
    /// Returns the 64-bit simhash of a text, or `None` if the text has no feature.
    ///
    /// The hash of a feature is [`crate::hash::feature_hash`]; see [`crate::weight`] for weights.
    /// Calls the cancellation check `check` every few 100 kB.
    ///
    /// Time is linear in the length of the text. Memory in addition to the text:
    ///
    /// - about 300 kB of buffers
    /// - up to 80 MB for the counts of up to a million distinct features
    /// - for more distinct features, 8 bytes for each token: 2.7 times the text for Chinese words,
    ///   1.4 times for English words, 8 times for characters
    /// - twice the length of the normal forms of the two longest tokens, which are at worst six
    ///   times as long as the tokens in the text
    ///
    /// A run of combining marks is scanned without a call of `check`. Hundreds of megabytes of
    /// marks take seconds.
    pub fn simhash64(&mut self, text: &str, check: &mut dyn FnMut()) -> Option<u64> {
        self.simhash64_without(text, None, check)
    }

    /// Like [`Sketcher::simhash64`], but ignores the features of the text that are in `without`, a
    /// set of common features. If `without` is `None`, ignores no features. Returns `None` if no
    /// feature remains.
    pub fn simhash64_without(
        &mut self,
        text: &str,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Option<u64> {
        let [word] = if self.options.tokens.are_keywords() {
            let mut sums = Accumulator::default();
            for keyword in tokens::keywords(text, &self.options, check) {
                if without.is_none_or(|set| !set.contains(keyword.hash())) {
                    sums.add([keyword.hash()], keyword.weight);
                }
            }
            sums.simhash()
        } else {
            let extractor = &mut self.extractor;
            (self.scratch64).simhash(extractor, text, &self.options, without, check)
        }?;
        Some(word)
    }

    /// Returns the 128-bit simhash of a text, or `None` if the text has no feature.
    ///
    /// Features and weights are those of [`Sketcher::simhash64`]. The hash of a feature is
    /// [`crate::hash::feature_hash128`]. Counting the features takes 1.5 times as much memory as
    /// for 64 bits. Beyond a million distinct features, each token takes 16 bytes.
    pub fn simhash128(&mut self, text: &str, check: &mut dyn FnMut()) -> Option<u128> {
        self.simhash128_without(text, None, check)
    }

    /// Like [`Sketcher::simhash128`], but ignores the features of the text that are in `without`, a
    /// set of common features. If `without` is `None`, ignores no features. Returns `None` if no
    /// feature remains.
    pub fn simhash128_without(
        &mut self,
        text: &str,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Option<u128> {
        let words = if self.options.tokens.are_keywords() {
            let mut sums = Accumulator::default();
            for (word, keyword) in tokens::keyword_words(text, &self.options, check) {
                if without.is_none_or(|set| !set.contains(keyword.hash())) {
                    sums.add(FeatureHash::new(word.as_bytes()), keyword.weight);
                }
            }
            sums.simhash()
        } else {
            let extractor = &mut self.extractor;
            (self.scratch128).simhash(extractor, text, &self.options, without, check)
        };
        words.map(join)
    }
}

impl<const W: usize> Scratch<W>
where
    [u64; W]: WindowHash,
{
    fn simhash(
        &mut self,
        extractor: &mut FeatureExtractor,
        text: &str,
        options: &TextOptions,
        without: Option<&FeatureSet>,
        check: &mut dyn FnMut(),
    ) -> Option<[u64; W]> {
        let sums: &mut GroupedAccumulator<W> = &mut self.accumulator;
        sums.reset(options.weight.function());
        let counter = &mut self.counter;
        let add = |counted: Counted<W>| sums.add(counted);
        counter.count_text(extractor, text, options, without, add, check);
        sums.simhash()
    }
}

#[cfg(test)]
#[path = "../../tests/reference/mod.rs"]
mod reference;
#[cfg(test)]
use crate::options;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Accents, Digits, NamedOption, Normalize, Tokens, Weight};
    use crate::test_texts::{any_text, any_tokens};
    use proptest::prelude::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const DEFAULT: &TextOptions = &TextOptions::SIMHASH;

    fn simhash64(text: &str) -> Option<u64> {
        Sketcher::new(*DEFAULT).simhash64(text, &mut || ())
    }

    fn simhash128(text: &str) -> Option<u128> {
        Sketcher::new(*DEFAULT).simhash128(text, &mut || ())
    }

    /// Returns a strategy for all options except jieba and HTML, which have their own tests.
    fn any_options() -> impl Strategy<Value = TextOptions> {
        (
            any_tokens(),
            prop_oneof![8 => 1_usize..7, 1 => 1_usize..100],
            prop::sample::select(Weight::NAMES),
            prop::sample::select(Accents::NAMES),
            prop::sample::select(Digits::NAMES),
        )
            .prop_map(|(tokens, shingle, weight, accents, digits)| TextOptions {
                tokens,
                shingle,
                weight: weight.1,
                normalize: Normalize {
                    accents: accents.1,
                    digits: digits.1,
                },
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
            let mut sketcher = Sketcher::new(options);
            let expected = reference::simhash64(&text, &options);
            prop_assert_eq!(sketcher.simhash64(&text, &mut || ()), expected);
            let expected = reference::simhash128(&text, &options);
            prop_assert_eq!(sketcher.simhash128(&text, &mut || ()), expected);
            // The sketcher reuses the memory of the previous text.
            sketcher.set_options(*DEFAULT);
            let expected = reference::simhash64(&text, DEFAULT);
            prop_assert_eq!(sketcher.simhash64(&text, &mut || ()), expected);
        }

        /// The simhash does not depend on case. The test excludes combining marks, and letters such
        /// as ı and ſ, whose capital belongs to another letter.
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

    /// The simhash of every string of five characters, with one character of each ASCII kind in UAX
    /// 29, equals that of the reference implementation.
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

    /// The simhash equals that of the reference implementation wherever a border between two blocks
    /// of 64 bytes falls, for example inside a word or a number.
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
        let hyphens = "so\u{AD}ft hyphens in Ma\u{200B}ße, ".repeat(3000);
        let invisible = "a\u{AD}".repeat(30_000) + "\u{301} b";
        for text in [
            english, russian, chinese, one_word, katakana, marks, phrases, hyphens, invisible,
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

    /// The simhash equals that of the reference implementation for texts near the number of
    /// features at which the counting method changes, with and without repeated features. It does
    /// not matter whether the estimated number of distinct features is too high, too low or right.
    #[test]
    fn lists_and_tables_equal_the_definition() {
        let chars = TextOptions {
            tokens: Tokens::Char,
            ..*DEFAULT
        };
        for words in [
            1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 4098, 9000,
        ] {
            for kinds in [3, 100, 100_000] {
                let word = |at: usize| char::from_u32(0x4E00 + (at * at % kinds % 20_000) as u32);
                let han: String = (0..words).filter_map(word).collect();
                let spaced: String = (0..words)
                    .map(|at| format!("{} ", at * at % kinds))
                    .collect();
                let mixed = format!("{han}。{spaced}，{han}");
                for text in [&han, &spaced, &mixed] {
                    for options in [DEFAULT, &chars] {
                        let mut sketcher = Sketcher::new(*options);
                        let expected = reference::simhash64(text, options);
                        assert_eq!(sketcher.simhash64(text, &mut || ()), expected, "{text:.40}");
                        let expected = reference::simhash128(text, options);
                        assert_eq!(
                            sketcher.simhash128(text, &mut || ()),
                            expected,
                            "{text:.40}"
                        );
                    }
                }
            }
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

    /// The simhash of a text equals that of its features given one by one.
    #[test]
    fn equals_own_features() {
        let features = ["the quick", "quick brown", "brown fox"].map(|feature| (feature, 1.0));
        let given = crate::simhash64_features(features);
        assert_eq!(Ok(simhash64("The quick, brown fox.")), given);
        let given = crate::simhash128_features(features);
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
            let mut sketcher = Sketcher::new(*DEFAULT);
            let expected = sketcher.simhash64(&text, &mut || calls += 1);
            assert!(calls >= 3, "{unit:?}: {calls}");
            // The sketcher works as usual after an unwind, wherever it was stopped.
            for stop_at in 1..=3 {
                let mut calls = 0;
                let cancelled = catch_unwind(AssertUnwindSafe(|| {
                    sketcher.simhash64(&text, &mut || {
                        calls += 1;
                        if calls == stop_at {
                            std::panic::resume_unwind(Box::new(()));
                        }
                    })
                }));
                assert!(cancelled.is_err());
                assert_eq!(simhash64(unit), sketcher.simhash64(unit, &mut || ()));
            }
            assert_eq!(sketcher.simhash64(&text, &mut || ()), expected);
            assert_eq!(
                simhash64("Hello!"),
                Some(crate::hash::feature_hash(b"hello"))
            );
        }
    }
}
