//! Finds the passages that two texts share, with their positions.

use std::borrow::Cow;

use super::PassageLength;
use super::runs::{SharedRun, shared_runs};
use super::token_list::{TokenList, TokenNumbers};
use crate::feature_spans::CharSpan;
use crate::html::html_text;
use crate::memory::{GrowVec, copied};
use crate::options::TextOptions;
use crate::text_changes::beginnings;

/// Passage that two texts share.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedPassage {
    /// Position of the passage in the first text. With the option `html`, the position is in the
    /// visible text of the page. The text is tokenized again to find the position. `None` if this
    /// fails, which happens after a megabyte without a word boundary.
    pub a: Option<CharSpan>,
    /// Position of the first occurrence of the passage in the second text, measured like `a`.
    /// `None` if the position cannot be found.
    pub b: Option<CharSpan>,
    /// Number of tokens of the passage.
    pub tokens: usize,
    /// Text of the passage, as it is written in the first text. If the position `a` is `None`, this
    /// is the normal form of the passage instead.
    pub text: String,
}

/// All passages that two texts share, and the lengths of the texts.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedPassages {
    /// Number of tokens of the first text.
    pub a_tokens: usize,
    /// Number of tokens of the second text.
    pub b_tokens: usize,
    /// Shared passages, the longest first. Passages of equal length are in the order of the first
    /// text. The passages do not overlap in the first text.
    pub passages: Vec<SharedPassage>,
}

impl SharedPassages {
    /// Finds the passages of at least `length` tokens that two texts share. Compares the tokens
    /// themselves, not hashes. Ignores `options.shingle`. Calls the cancellation check `check`
    /// every few 100 kB.
    ///
    /// Passages are chosen one after the other: each passage is the longest run of tokens of `a`
    /// that `b` contains and that does not overlap an earlier passage in `a`. So the number of
    /// passages is at most the number of tokens of `a` divided by `length`, and together they are
    /// not longer than `a`. Each token of a shared run of `length` tokens is in one of the
    /// passages, unless other passages leave fewer than `length` tokens of the run.
    ///
    /// Time grows as n log n with the number of tokens, for any texts. Memory: the normal forms of
    /// both texts, about 50 bytes for each token of `a`, about 120 for each token of `b` (250 at
    /// most), and 60 for each distinct token.
    ///
    /// ```
    /// use neardup_sketch::TextOptions;
    /// use neardup_sketch::passages::{PassageLength, SharedPassages};
    ///
    /// let options = TextOptions { shingle: 1, ..TextOptions::PASSAGES };
    /// let length = PassageLength::new(3, &options).unwrap();
    /// let (a, b) = ("It was the best of times.", "Ah, the BEST of times!");
    /// let found = SharedPassages::new(a, b, length, &options, &mut || ());
    /// assert_eq!(found.passages[0].text, "the best of times");
    /// assert_eq!(found.passages[0].tokens, 4);
    /// ```
    pub fn new(
        a: &str,
        b: &str,
        length: PassageLength,
        options: &TextOptions,
        check: &mut dyn FnMut(),
    ) -> Self {
        let mut numbers = TokenNumbers::default();
        let a_list = TokenList::new(a, options, &mut numbers, check);
        let b_list = TokenList::new(b, options, &mut numbers, check);
        drop(numbers);
        let runs = shared_runs(&a_list.numbers, &b_list.numbers, length.get(), check);
        let mut found = Self {
            a_tokens: a_list.numbers.len(),
            b_tokens: b_list.numbers.len(),
            passages: Vec::new(),
        };
        if runs.is_empty() {
            return found;
        }
        let mut spans = |text: &str, list: &TokenList, start: fn(&SharedRun) -> usize| {
            let mut tokens = Vec::new();
            tokens.grow_all(runs.iter().map(|run| start(run)..start(run) + run.length));
            list.tokens.spans(text, options, &tokens, check)
        };
        let a_spans = spans(a, &a_list, |run| run.a);
        let b_spans = spans(b, &b_list, |run| run.b);
        let visible = match options.html {
            true => Cow::Owned(html_text(a, check)),
            false => Cow::Borrowed(a),
        };
        let texts = beginnings(&visible, &a_spans, usize::MAX, check);
        let each = runs.iter().zip(a_spans.into_iter().zip(b_spans)).zip(texts);
        found
            .passages
            .grow_all(each.map(|((run, (a, b)), text)| SharedPassage {
                a,
                b,
                tokens: run.length,
                text: match a {
                    Some(_) => text,
                    None => normal_form(&a_list, run),
                },
            }));
        found
    }
}

/// Returns the normal form of a run of tokens of the first text.
fn normal_form(list: &TokenList, run: &SharedRun) -> String {
    let tokens = &list.tokens.bytes()[list.tokens.range(run.a..run.a + run.length)];
    copied(str::from_utf8(tokens).expect("tokens are cut between characters"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sketcher;
    use crate::options::Tokens;
    use crate::test_texts::{any_text, any_tokens, set_options};
    use proptest::prelude::*;

    fn shared(a: &str, b: &str, length: usize, options: &TextOptions) -> SharedPassages {
        let single = TextOptions {
            shingle: 1,
            ..*options
        };
        let length = PassageLength::new(length as i64, &single).unwrap();
        SharedPassages::new(a, b, length, options, &mut || ())
    }

    /// Returns, for each shared passage, the text at its position in `a` and in `b`.
    fn shown(a: &str, b: &str, length: usize, options: &TextOptions) -> Vec<[String; 2]> {
        let at = |text: &str, span: Option<CharSpan>| -> String {
            let CharSpan { start, length } = span.expect("a span");
            text.chars().skip(start).take(length).collect()
        };
        let visible = |text: &str| match options.html {
            true => html_text(text, &mut || ()),
            false => text.to_owned(),
        };
        let passages = shared(a, b, length, options).passages;
        (passages.into_iter())
            .map(|passage| {
                let there = at(&visible(a), passage.a);
                assert_eq!(passage.text, there);
                [there, at(&visible(b), passage.b)]
            })
            .collect()
    }

    #[test]
    fn passages_stand_in_both_texts() {
        let words = TextOptions::PASSAGES;
        let (a, b) = (
            "One — the old swing bridge will stay closed; two: divers found CRACKS in it.",
            "Divers found cracks in three. The Old Swing-Bridge, will stay closed (again).",
        );
        let expected = [
            [
                "the old swing bridge will stay closed",
                "The Old Swing-Bridge, will stay closed",
            ],
            ["divers found CRACKS in", "Divers found cracks in"],
        ];
        assert_eq!(
            shown(a, b, 4, &words),
            expected.map(|pair| pair.map(str::to_owned))
        );
        assert_eq!(shown(a, b, 5, &words).len(), 1);
        assert_eq!(shown(a, b, 8, &words).len(), 0);
        assert_eq!(shown("", b, 1, &words).len(), 0);
        assert_eq!(shown(a, "...", 1, &words).len(), 0);
        let counts = shared(a, b, 4, &words);
        assert_eq!((counts.a_tokens, counts.b_tokens), (14, 13));
    }

    #[test]
    fn pages_and_chinese() {
        let page = TextOptions {
            html: true,
            ..TextOptions::PASSAGES
        };
        let (a, b) = (
            "<p>T&uuml;ren <b>auf</b> und zu</p>",
            "<h1>t\u{fc}ren auf und zu</h1> und",
        );
        assert_eq!(
            shown(a, b, 3, &page)[0],
            ["T\u{fc}ren auf und zu", "t\u{fc}ren auf und zu"]
        );
        let (a, b) = ("图书馆重新开放，欢迎。", "欢迎！图书馆重新开放");
        for tokens in [
            Tokens::Word,
            Tokens::Char,
            Tokens::Jieba,
            Tokens::JiebaSearch,
        ] {
            let found = shown(a, b, 2, &set_options(tokens, 1));
            assert!(found[0][0].starts_with("图书馆"), "{tokens:?} {found:?}");
        }
        let lines = set_options(Tokens::Line, 1);
        assert_eq!(
            shown("a\nb  c\nd\n", "x\nB c\nD\ny", 2, &lines)[0],
            ["b  c\nd", "B c\nD"]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// If two texts share a run of `length` tokens, their sets of passage hashes share a hash,
        /// and the run is in a shared passage. This holds for any text around the run.
        #[test]
        fn what_is_shared_is_found(
            common in any_text(),
            frames in prop::array::uniform4(any_text()),
            tokens in any_tokens(),
            shingle in 1_usize..5,
            more in 0_usize..6,
        ) {
            let options = set_options(tokens, shingle);
            let single = set_options(tokens, 1);
            let [before, after, other_before, other_after] = frames;
            // No token crosses a line end. If tokens are characters, line ends are white space.
            let a = format!("{before}\n\n{common}\n\n{after}");
            let b = format!("{other_before}\n\n{common}\n\n{other_after}");
            let length = shingle + more;
            let count = shared(&common, "", 1, &single).a_tokens;
            let passage_length = PassageLength::new(length as i64, &options).unwrap();
            let mut sketcher = Sketcher::new(options);
            let mut hashes = |text| sketcher.passages(text, passage_length, None, &mut || ());
            let (of_a, of_b) = (hashes(&a), hashes(&b));
            prop_assert!(of_a.is_sorted_by(|a, b| (*a as i64) < (*b as i64)));
            let found = shared(&a, &b, length, &options);
            if count >= length {
                prop_assert!(of_a.iter().any(|hash| of_b.contains(hash)));
                prop_assert!(found.passages[0].tokens >= count);
            }
            let covered: usize = found.passages.iter().map(|passage| passage.tokens).sum();
            prop_assert!(covered <= found.a_tokens);
            for passage in &found.passages {
                prop_assert!(passage.a.is_some() && passage.b.is_some());
                prop_assert!(passage.tokens >= length);
                // One character may be several tokens, and the run may contain only some of them.
                if tokens == Tokens::Word {
                    let alone = shared(&passage.text, "", 1, &single).a_tokens;
                    prop_assert!(alone >= passage.tokens);
                }
            }
        }
    }
}
