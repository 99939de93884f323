//! Finds the positions of features in the text from which they were made. The tokens of a text come
//! from its normal form, in which letter case and the like are folded. So a feature is first
//! located in the normal form, and this position is then traced back to the text.

use std::borrow::Cow;
use std::ops::Range;

use crate::feature_list::{FeatureEntry, FeatureList};
use crate::html::html_text;
use crate::memory::GrowVec;
use crate::normalize::traced::TracedText;
use crate::options::TextOptions;
use crate::shingle::SEPARATOR;
use crate::tokens::is_space;
use crate::tokens::kinds::TokenOrder;

/// Number of tokens between two calls of `check`.
const CHECK_EVERY: usize = 1 << 14;

/// Position of a feature or a passage in a text, in characters (code points). If the option `html`
/// is set, the position is in the visible text, which [`crate::html::html_text`] extracts from the
/// page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharSpan {
    /// Number of characters before the first token.
    pub start: usize,
    /// Number of characters from the start of the first token to the end of the last token.
    pub length: usize,
}

impl CharSpan {
    /// Returns the span as a range of code points of the text.
    #[must_use]
    pub fn code_points(self) -> Range<usize> {
        self.start..self.start + self.length
    }
}

/// Returns the position in `text` of the first occurrence of each feature in `entries`, in the same
/// order. A position is `None` if the feature was not found. `entries` are features of `list`,
/// which was made from `text` with `options`. If `text` is an HTML page, the positions are in the
/// page's visible text.
pub(crate) fn feature_spans(
    list: &FeatureList,
    text: &str,
    options: &TextOptions,
    entries: &[&FeatureEntry],
    check: &mut dyn FnMut(),
) -> Vec<Option<CharSpan>> {
    if entries.is_empty() {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    ranges.grow_all(entries.iter().map(|entry| entry.range()));
    find_spans(text, options, list.tokens(), &ranges, check)
}

/// Returns the position in `text` of each of `features`, in the same order. A position is `None` if
/// the feature was not found. `features` are byte ranges of `tokens`, which holds the tokens of the
/// text in order, with separators. If `text` is an HTML page, the positions are in the page's
/// visible text.
pub(crate) fn find_spans(
    text: &str,
    options: &TextOptions,
    tokens: &[u8],
    features: &[Range<usize>],
    check: &mut dyn FnMut(),
) -> Vec<Option<CharSpan>> {
    let visible = if options.html {
        Cow::Owned(html_text(text, check))
    } else {
        Cow::Borrowed(text)
    };
    let traced = TracedText::new(&visible, options.normalize, check);
    let mut parts = SpanFinder::new(features);
    let normal = traced.normal.as_str();
    match options.tokens.token_order() {
        TokenOrder::Characters => parts.follow_chars(tokens, normal, check),
        TokenOrder::Words => parts.follow_words(tokens, normal, check),
        TokenOrder::PartsOf(longer) => {
            let words = TextOptions {
                tokens: longer,
                shingle: 1,
                html: false,
                ..*options
            };
            let words = FeatureList::by_hash(&visible, &words, check);
            parts.follow_shorter_words(tokens, words.tokens(), normal, check);
        }
        TokenOrder::Keywords => parts.search(tokens, features, normal, check),
    }
    let mut spans = Vec::new();
    spans.grow_all(parts.found.iter().map(|tokens| {
        let [Some(first), Some(last)] = tokens else {
            return None;
        };
        // With `jieba_search`, a shorter word may precede the longer word that contains it, so the
        // first token of a feature may start after its last token.
        let part = first.start.min(last.start)..first.end.max(last.end);
        let original = traced.original(part);
        Some(CharSpan {
            start: original.start,
            length: original.len(),
        })
    }));
    spans
}

/// Search for features in the normal form of a text. The features are given as byte ranges of the
/// text's tokens. The search finds the byte ranges of the normal form that correspond to them.
struct SpanFinder {
    /// Byte offset in the tokens where each feature starts, and the feature's index, in ascending
    /// order.
    starts: Vec<(usize, usize)>,
    /// Byte offset in the tokens where each feature ends, and the feature's index, in ascending
    /// order.
    ends: Vec<(usize, usize)>,
    /// For each feature, its first and its last token, as byte ranges of the normal form.
    found: Vec<[Option<Range<usize>>; 2]>,
    /// Index of the first element of `starts` that the search has not reached yet.
    next_start: usize,
    /// Index of the first element of `ends` that the search has not reached yet.
    next_end: usize,
}

impl SpanFinder {
    fn new(features: &[Range<usize>]) -> Self {
        let sorted = |end: fn(&Range<usize>) -> usize| {
            let mut all = Vec::new();
            all.grow_all(
                features
                    .iter()
                    .enumerate()
                    .map(|(n, range)| (end(range), n)),
            );
            all.sort_unstable();
            all
        };
        let mut found = Vec::new();
        found.grow_to(features.len(), [None, None]);
        Self {
            starts: sorted(|range| range.start),
            ends: sorted(|range| range.end),
            found,
            next_start: 0,
            next_end: 0,
        }
    }

    /// Records the position of a token, for the features that start or end with it. `token` is its
    /// byte range in the tokens, and `normal` is its byte range in the normal form. The calls must
    /// be in text order.
    fn note(&mut self, token: Range<usize>, normal: Range<usize>) {
        while let Some(&(at, feature)) = self.starts.get(self.next_start)
            && at <= token.start
        {
            if at == token.start {
                self.found[feature][0] = Some(normal.clone());
            }
            self.next_start += 1;
        }
        while let Some(&(at, feature)) = self.ends.get(self.next_end)
            && at <= token.end
        {
            if at == token.end {
                self.found[feature][1] = Some(normal.clone());
            }
            self.next_end += 1;
        }
    }

    /// Returns true if no later token can complete a feature.
    fn is_complete(&self) -> bool {
        self.next_end == self.ends.len()
    }

    /// Finds the position of each word in the normal form. `tokens` holds the words in text order,
    /// so the position of a word is its first occurrence after the end of the previous word.
    ///
    /// A text of a megabyte without a word boundary was tokenized in parts, so a word may not occur
    /// in the normal form. Then the function stops, and the positions of all later features remain
    /// unknown.
    fn follow_words(&mut self, tokens: &[u8], normal: &str, check: &mut dyn FnMut()) {
        let mut from = 0;
        for (n, (token, word)) in words(tokens).enumerate() {
            if n % CHECK_EVERY == 0 {
                check();
            }
            let Some(at) = normal[from..].find(word) else {
                return;
            };
            let start = from + at;
            from = start + word.len();
            self.note(token, start..from);
            if self.is_complete() {
                return;
            }
        }
    }

    /// Finds the position of each word in the normal form, for the tokens of `jieba_search`.
    /// `tokens` holds the longer words of a text in text order, and before each longer word the
    /// shorter words that it contains. `longer` holds only the longer words. The position of a
    /// longer word is its first occurrence after the previous longer word. The shorter words are
    /// found within it.
    fn follow_shorter_words(
        &mut self,
        tokens: &[u8],
        longer: &[u8],
        normal: &str,
        check: &mut dyn FnMut(),
    ) {
        let mut longer = words(longer);
        let mut from = 0;
        let mut current: Option<&str> = None;
        for (n, (token, word)) in words(tokens).enumerate() {
            if n % CHECK_EVERY == 0 {
                check();
            }
            let whole = match current {
                Some(whole) => whole,
                None => {
                    let Some((_, next)) = longer.next() else {
                        return;
                    };
                    let Some(at) = normal[from..].find(next) else {
                        return;
                    };
                    from += at;
                    next
                }
            };
            let Some(at) = whole.find(word) else {
                return;
            };
            let start = from + at;
            self.note(token, start..start + word.len());
            if self.is_complete() {
                return;
            }
            current = Some(whole);
            if word == whole {
                from += whole.len();
                current = None;
            }
        }
    }

    /// Finds the position of each character of `tokens` in the normal form, for kinds of tokens
    /// that contain all characters of the text in order, except white space. A run of white space
    /// in the normal form is one separator in `tokens`.
    fn follow_chars(&mut self, tokens: &[u8], normal: &str, check: &mut dyn FnMut()) {
        let tokens = str::from_utf8(tokens).expect("tokens are cut between characters");
        let mut chars = normal.char_indices().peekable();
        for (n, (start, c)) in tokens.char_indices().enumerate() {
            if n % CHECK_EVERY == 0 {
                check();
            }
            let mut at = None;
            if c.is_whitespace() {
                while let Some((space, _)) = chars.next_if(|&(_, c)| is_space(c)) {
                    at.get_or_insert(space);
                }
            } else {
                while chars.next_if(|&(_, c)| is_space(c)).is_some() {}
                at = chars.next().map(|(at, _)| at);
            }
            let Some(at) = at else {
                continue;
            };
            let end = chars.peek().map_or(normal.len(), |&(next, _)| next);
            self.note(start..start + c.len_utf8(), at..end);
            if self.is_complete() {
                return;
            }
        }
    }

    /// Finds the first occurrence of each feature's text in the normal form. This method is for
    /// keywords, whose tokens are not in text order.
    fn search(
        &mut self,
        tokens: &[u8],
        features: &[Range<usize>],
        normal: &str,
        check: &mut dyn FnMut(),
    ) {
        for (found, feature) in self.found.iter_mut().zip(features) {
            check();
            let word = str::from_utf8(&tokens[feature.clone()]).unwrap_or_default();
            let part = normal.find(word).map(|at| at..at + word.len());
            *found = [part.clone(), part];
        }
    }
}

/// Splits tokens into words. Returns each word and its byte range.
fn words(tokens: &[u8]) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut start = 0;
    let all = tokens.split(|&byte| byte == SEPARATOR).map(move |word| {
        let token = start..start + word.len();
        start = token.end + 1;
        let word = str::from_utf8(word).expect("tokens are cut between characters");
        (token, word)
    });
    all.filter(|(_, word)| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::normalized;
    use crate::options::Tokens;
    use crate::test_texts::{any_text, any_tokens, set_options};
    use proptest::prelude::*;

    /// Returns each feature of a text, and the text at the feature's span.
    fn placed(text: &str, options: &TextOptions) -> Vec<(String, String)> {
        let list = FeatureList::by_hash(text, options, &mut || ());
        let entries: Vec<_> = list.entries().iter().collect();
        let spans = feature_spans(&list, text, options, &entries, &mut || ());
        let visible = if options.html {
            html_text(text, &mut || ())
        } else {
            text.to_owned()
        };
        let chars: Vec<char> = visible.chars().collect();
        let mut all: Vec<_> = (entries.iter().zip(spans))
            .map(|(entry, span)| {
                let CharSpan { start, length } = span.expect("each feature has a span");
                let there = chars[start..start + length].iter().collect();
                (start, list.feature(entry).text, there)
            })
            .collect();
        all.sort();
        all.into_iter()
            .map(|(_, feature, there)| (feature, there))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// The text at the span of a feature contains the characters of the feature.
        #[test]
        fn features_stand_at_their_spans(
            text in any_text(),
            tokens in any_tokens(),
            shingle in 1_usize..4,
        ) {
            let plain = |text: &str| -> String {
                let normal = normalized(text);
                normal.chars().filter(|c| !c.is_whitespace()).collect()
            };
            for (feature, there) in placed(&text, &set_options(tokens, shingle)) {
                let (there, feature) = (plain(&there), plain(&feature));
                match tokens {
                    // Text between words may be skipped.
                    Tokens::Word => {
                        let mut rest = there.chars();
                        prop_assert!(feature.chars().all(|c| rest.any(|r| r == c)), "{there:?}");
                    }
                    _ => prop_assert!(there.contains(&feature), "{there:?} {feature:?}"),
                }
            }
        }
    }

    #[test]
    fn words_of_a_text() {
        let found = placed("The cat — the CAT — sat.", &set_options(Tokens::Word, 2));
        let expected = [
            ("the cat", "The cat"),
            ("cat the", "cat — the"),
            ("cat sat", "CAT — sat"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        let found = placed(
            "<p>Fish &amp; <b>ch</b>ips",
            &TextOptions {
                html: true,
                ..set_options(Tokens::Word, 1)
            },
        );
        assert_eq!(found[1], ("chips".to_owned(), "chips".to_owned()));
    }

    #[test]
    fn chinese_words() {
        for tokens in [Tokens::Jieba, Tokens::JiebaSearch, Tokens::JiebaTfidf] {
            let text = "我来到北京清华大学，清华大学在北京。我来到北京";
            for (feature, there) in placed(text, &set_options(tokens, 1)) {
                assert_eq!(feature, there, "{tokens:?}");
            }
        }
        let text = "清华大学，华大，清华大学 0 清华";
        let search = set_options(Tokens::JiebaSearch, 2);
        for (feature, there) in placed(text, &search) {
            let (first, last) = feature.split_once(' ').unwrap();
            assert!(
                there.contains(first) && there.contains(last),
                "{feature}: {there}"
            );
        }
        let found = placed("　各级　人民政府", &set_options(Tokens::Char, 3));
        assert_eq!(found[1], ("级 人".to_owned(), "级　人".to_owned()));
    }
}
