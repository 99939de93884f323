//! Places of features in the text that they are made of.

use std::borrow::Cow;
use std::ops::Range;

use crate::html::html_text;
use crate::memory::GrowVec;
use crate::normalize::traced::TracedText;
use crate::options::{TextOptions, Tokens};
use crate::shingle::SEPARATOR;
use crate::tokens::is_space;

/// Tokens between two calls of `check`.
const CHECK_EVERY: usize = 1 << 14;
/// Bytes by which a word of `jieba_search` may begin before the end of the one before: the shorter
/// words of a word come before it.
const LOOK_BACK: usize = 100;

/// Place of the first occurrence of a feature in the text: in the visible text of an HTML page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of characters before it.
    pub start: usize,
    /// Number of characters from its first token to the end of its last.
    pub length: usize,
}

/// Finds the places of features. `tokens` are those of the text in its order, with separators, and
/// `features` the ranges of them to be found.
pub(crate) fn find_places(
    text: &str,
    options: &TextOptions,
    tokens: &[u8],
    features: &[Range<usize>],
    check: &mut dyn FnMut(),
) -> Vec<Option<Place>> {
    let visible = if options.html {
        Cow::Owned(html_text(text, check))
    } else {
        Cow::Borrowed(text)
    };
    let traced = TracedText::new(&visible, options.normalize, check);
    drop(visible);
    let mut parts = Parts::new(features);
    let normal = traced.normal.as_str();
    match options.tokens {
        Tokens::Char | Tokens::Line => parts.follow_chars(tokens, normal, check),
        Tokens::Word | Tokens::Jieba => parts.follow_words(tokens, normal, 0, check),
        Tokens::JiebaSearch => parts.follow_words(tokens, normal, LOOK_BACK, check),
        Tokens::JiebaTfidf => parts.search(tokens, features, normal, check),
    }
    let mut places = Vec::new();
    places.grow_all(parts.found.iter().map(|part| {
        let original = match *part {
            (Some(start), Some(end)) if start < end => traced.original(start..end),
            _ => return None,
        };
        Some(Place {
            start: original.start,
            length: original.len(),
        })
    }));
    places
}

/// Ends of features in the tokens, and in the normal form as far as they are found.
struct Parts {
    /// Where features begin in the tokens, and which; in ascending order.
    starts: Vec<(usize, usize)>,
    /// Where they end, likewise.
    ends: Vec<(usize, usize)>,
    /// Start and end of each feature in the normal form.
    found: Vec<(Option<usize>, Option<usize>)>,
    next_start: usize,
    next_end: usize,
}

impl Parts {
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
        found.grow_to(features.len(), (None, None));
        Self {
            starts: sorted(|range| range.start),
            ends: sorted(|range| range.end),
            found,
            next_start: 0,
            next_end: 0,
        }
    }

    /// Notes that a token, a range of the tokens, is this range of the normal form. Tokens are
    /// passed in order.
    fn note(&mut self, token: Range<usize>, normal: Range<usize>) {
        while let Some(&(at, feature)) = self.starts.get(self.next_start)
            && at <= token.start
        {
            if at == token.start {
                self.found[feature].0 = Some(normal.start);
            }
            self.next_start += 1;
        }
        while let Some(&(at, feature)) = self.ends.get(self.next_end)
            && at <= token.end
        {
            if at == token.end {
                self.found[feature].1 = Some(normal.end);
            }
            self.next_end += 1;
        }
    }

    fn is_complete(&self) -> bool {
        self.next_end == self.ends.len()
    }

    /// Finds each word of the tokens behind the end of the one before, or `look_back` bytes before
    /// that.
    fn follow_words(
        &mut self,
        tokens: &[u8],
        normal: &str,
        look_back: usize,
        check: &mut dyn FnMut(),
    ) {
        let (mut start, mut from) = (0, 0);
        for (n, word) in tokens.split(|&byte| byte == SEPARATOR).enumerate() {
            if n % CHECK_EVERY == 0 {
                check();
            }
            let token = start..start + word.len();
            start = token.end + 1;
            if word.is_empty() {
                continue;
            }
            let text = str::from_utf8(word).expect("tokens are cut between characters");
            let rest = &normal[normal.floor_char_boundary(from.max(look_back) - look_back)..];
            let Some(at) = rest.find(text) else {
                // A text without any boundary for a megabyte is cut into pieces elsewhere: later
                // places are not known.
                return;
            };
            let at = normal.len() - rest.len() + at;
            from = at + word.len();
            self.note(token, at..from);
            if self.is_complete() {
                return;
            }
        }
    }

    /// Follows tokens that keep all characters: each run of white space is one separator.
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

    /// Finds the first occurrence of each feature by itself.
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
            let at = normal.find(word);
            *found = (at, at.map(|at| at + word.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature_list::FeatureList;
    use crate::normalize::normalized;
    use crate::options::Weight;
    use crate::test_texts::any_text;
    use proptest::prelude::*;

    fn options(tokens: Tokens, shingle: usize) -> TextOptions {
        TextOptions {
            tokens,
            shingle,
            weight: Weight::Set,
            ..TextOptions::SIMHASH
        }
    }

    /// The features of a text with what stands at their places.
    fn placed(text: &str, options: &TextOptions) -> Vec<(String, String)> {
        let list = FeatureList::by_hash(text, options, &mut || ());
        let entries: Vec<_> = list.entries().iter().collect();
        let places = list.places(text, options, &entries, &mut || ());
        let visible = if options.html {
            html_text(text, &mut || ())
        } else {
            text.to_owned()
        };
        let chars: Vec<char> = visible.chars().collect();
        let mut all: Vec<_> = (entries.iter().zip(places))
            .map(|(entry, place)| {
                let Place { start, length } = place.expect("each feature has a place");
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

        /// At the place of a feature stand characters of which it is a part.
        #[test]
        fn features_stand_at_their_places(
            text in any_text(),
            tokens in prop::sample::select(vec![Tokens::Word, Tokens::Char, Tokens::Line]),
            shingle in 1_usize..4,
        ) {
            let plain = |text: &str| -> String {
                let normal = normalized(text);
                normal.chars().filter(|c| !c.is_whitespace()).collect()
            };
            for (feature, there) in placed(&text, &options(tokens, shingle)) {
                let (there, feature) = (plain(&there), plain(&feature));
                match tokens {
                    // Between words may stand what is no word.
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
        let found = placed("The cat — the CAT — sat.", &options(Tokens::Word, 2));
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
                ..options(Tokens::Word, 1)
            },
        );
        assert_eq!(found[1], ("chips".to_owned(), "chips".to_owned()));
    }

    #[test]
    fn chinese_words() {
        for tokens in [Tokens::Jieba, Tokens::JiebaSearch, Tokens::JiebaTfidf] {
            let text = "我来到北京清华大学，清华大学在北京。我来到北京";
            for (feature, there) in placed(text, &options(tokens, 1)) {
                assert_eq!(feature, there, "{tokens:?}");
            }
        }
        let found = placed("　各级　人民政府", &options(Tokens::Char, 3));
        assert_eq!(found[1], ("级 人".to_owned(), "级　人".to_owned()));
    }
}
