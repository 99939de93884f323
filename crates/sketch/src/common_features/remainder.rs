//! Finds the text that is left after the features of a set are removed from it.

use std::borrow::Cow;
use std::ops::Range;

use super::{FeatureSet, RareFeatures};
use crate::check::SharedCheck;
use crate::feature_list::sort;
use crate::feature_sink::FeatureSink;
use crate::feature_spans::find_spans;
use crate::html::html_text;
use crate::memory::{GrowString, GrowVec};
use crate::options::TextOptions;
use crate::tokens::FeatureExtractor;

/// Character that [`FeatureSet::remainder`] puts between two parts of a text.
pub const REMAINDER_SEPARATOR: char = '\n';

/// Sink that collects the tokens of a text, and the positions of features in these tokens.
#[derive(Default)]
struct Occurrences {
    /// Bytes of the tokens so far, with separators.
    tokens: Vec<u8>,
    /// Offset in `tokens` that corresponds to the start of the caller's buffer of tokens. The
    /// caller passes each feature as a byte range of this buffer, and `base` converts it to a range
    /// of `tokens`. `base` grows when the caller drops bytes from the start of the buffer.
    base: usize,
    /// Byte ranges (start, end) of the features in `tokens`. Most overlapping features are merged
    /// into one range.
    ranges: Vec<(usize, usize)>,
}

impl FeatureSink for Occurrences {
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let mut end = 0;
        for feature in features {
            end = end.max(feature.end);
            let range = (self.base + feature.start, self.base + feature.end);
            match self.ranges.last_mut() {
                // Most features overlap the previous one.
                Some(last) if (last.0..=last.1).contains(&range.0) => last.1 = last.1.max(range.1),
                _ => self.ranges.grow_push(range),
            }
        }
        self.keep(bytes, end);
    }

    fn bytes_dropped(&mut self, len: usize) {
        self.base += len;
        if self.tokens.len() < self.base {
            self.tokens.grow_to(self.base, b' ');
        }
    }
}

impl Occurrences {
    /// Appends the first `end` bytes of `bytes` to `tokens`, without the bytes that `tokens`
    /// already has. `bytes` is the buffer of tokens that the sink received.
    fn keep(&mut self, bytes: &[u8], end: usize) {
        let known = self.tokens.len() - self.base;
        if end > known {
            self.tokens.grow_by(&bytes[known..end]);
        }
    }
}

/// Sink that collects all tokens of a text, and the positions of the features that are not in
/// `set`.
struct RareOccurrences<'a> {
    set: &'a FeatureSet,
    found: Occurrences,
}

impl FeatureSink for RareOccurrences<'_> {
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let mut end = 0;
        let features = features.inspect(|feature| end = end.max(feature.end));
        let (set, sink) = (self.set, &mut self.found);
        RareFeatures { set, sink }.add_all(bytes, features);
        self.found.keep(bytes, end);
    }

    fn bytes_dropped(&mut self, len: usize) {
        self.found.bytes_dropped(len);
    }
}

impl FeatureSet {
    /// Returns the parts of `text` that consist of features outside the set, joined with line ends
    /// between them. If `html` is true, `text` is an HTML page, and the parts are taken from the
    /// text that a browser would show. Returns `None` if all features of the text are in the set.
    /// If no feature of the text is in the set, returns the text from the first token to the last.
    ///
    /// Memory: twice the size of the normalized text, and about 100 bytes for each part. Calls the
    /// cancellation check `check` regularly.
    #[must_use]
    pub fn remainder(&self, text: &str, html: bool, check: &mut dyn FnMut()) -> Option<String> {
        let visible = match html {
            true => Cow::Owned(html_text(text, check)),
            false => Cow::Borrowed(text),
        };
        let parts = self.remaining_parts(&visible, check);
        let mut joined = String::new();
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                joined.grow_char(REMAINDER_SEPARATOR);
            }
            joined.grow_str(&visible[part.clone()]);
        }
        (!parts.is_empty()).then_some(joined)
    }

    /// Returns the byte ranges of the parts that [`FeatureSet::remainder`] joins, in text order.
    /// `visible` is a plain text, or the visible text of an HTML page.
    #[must_use]
    pub fn remaining_parts(&self, visible: &str, check: &mut dyn FnMut()) -> Vec<Range<usize>> {
        let options = self.options();
        let mut sink = RareOccurrences {
            set: self,
            found: Occurrences::default(),
        };
        {
            let check = SharedCheck::new(check);
            let mut extractor = FeatureExtractor::default();
            extractor.extract(visible, &options, &mut sink, &mut || check.call());
        }
        let Occurrences {
            tokens, mut ranges, ..
        } = sink.found;
        sort(&mut ranges, |a, b| a.cmp(b), check);
        // The ranges of keywords are not merged, because keywords are not adjacent in the text.
        if !options.tokens.are_keywords() {
            ranges.dedup_by(|next, last| {
                // One separator may be between two tokens.
                let meets = next.0 <= last.1 + 1;
                if meets {
                    last.1 = last.1.max(next.1);
                }
                meets
            });
        }
        parts(visible, &options, &tokens, &ranges, check)
    }
}

/// Returns the byte ranges of the parts of `text` that correspond to `ranges`, which are byte
/// ranges of `tokens`. `tokens` holds the tokens of `text`, which were made with `options`. The
/// parts are in text order and do not overlap.
fn parts(
    text: &str,
    options: &TextOptions,
    tokens: &[u8],
    ranges: &[(usize, usize)],
    check: &mut dyn FnMut(),
) -> Vec<Range<usize>> {
    let mut features = Vec::new();
    features.grow_all(ranges.iter().map(|&(start, end)| start..end));
    let mut spans = find_spans(text, options, tokens, &features, check);
    sort(
        &mut spans,
        |a, b| a.map(|span| span.start).cmp(&b.map(|span| span.start)),
        check,
    );
    let mut parts = Vec::new();
    // Number of characters and number of bytes of `text` before the current position.
    let (mut chars, mut bytes) = (0, 0);
    for span in spans.into_iter().flatten() {
        check();
        let mut skip = |count: usize| {
            let mut rest = text[bytes..].char_indices();
            bytes += rest.nth(count).map_or(text.len() - bytes, |(at, _)| at);
            bytes
        };
        // The previous part may already contain a part of this feature.
        let start = span.start.max(chars);
        let end = (span.start + span.length).max(start);
        let part = skip(start - chars)..skip(end - start);
        chars = end;
        if !part.is_empty() {
            parts.grow_push(part);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features;
    use crate::options::Tokens;
    use crate::test_texts::{any_text, any_tokens, set_options};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(texts: &[&str], options: &TextOptions) -> FeatureSet {
        let hashes: BTreeSet<u64> = (texts.iter())
            .flat_map(|text| features(text, options, &mut || ()))
            .map(|feature| feature.hash)
            .collect();
        let stored = FeatureSet::stored(options, hashes.into_iter());
        FeatureSet::from_stored(&stored).expect("its own form")
    }

    fn remainder(set: &FeatureSet, text: &str) -> Option<String> {
        set.remainder(text, false, &mut || ())
    }

    #[test]
    fn frames_go() {
        let words = set_options(Tokens::Word, 3);
        let frame = set(
            &[
                "Home | News | Sport | Contact us now",
                "All rights reserved, of course",
            ],
            &words,
        );
        let page = "Home | News | Sport | Contact us now\n Rain is — at last — expected.\n\
                    All rights reserved, of course.";
        // Features that cross the edge of the frame keep the nearest words of the frame.
        let found = remainder(&frame, page).unwrap();
        assert_eq!(found, "us now\n Rain is — at last — expected.\nAll rights");
        assert_eq!(remainder(&frame, "home news SPORT contact"), None);
        assert_eq!(remainder(&frame, "..."), None);
        assert_eq!(remainder(&frame, " a b c. "), Some("a b c".to_owned()));
        // A frame in the middle of the page, which occurs twice.
        let single = set_options(Tokens::Word, 1);
        let frame = set(&["read more"], &single);
        let found = remainder(&frame, "One. Read more. Two, three. READ MORE! Four").unwrap();
        assert_eq!(found, "One\nTwo, three\nFour");
        let page = "<p>One <b>read</b> more</p><p>T&uuml;r";
        let found = frame.remainder(page, true, &mut || ()).unwrap();
        assert_eq!(found, "One\nTür");
    }

    #[test]
    fn chinese() {
        for (tokens, shingle) in [
            (Tokens::Char, 3),
            (Tokens::Jieba, 1),
            (Tokens::JiebaSearch, 1),
        ] {
            let frame = set(&["版权所有"], &set_options(tokens, shingle));
            let found = remainder(&frame, "图书馆重新开放 版权所有").unwrap();
            assert!(found.starts_with("图书馆重新开放"), "{tokens:?} {found}");
            assert!(!found.ends_with("所有"), "{tokens:?} {found}");
        }
    }

    proptest! {
        /// The remainder contains each feature that is not in the set. If no feature of the text is
        /// in the set, the remainder is a part of the unchanged text.
        #[test]
        fn keeps_all_that_is_compared(
            text in any_text(),
            tokens in any_tokens(),
            shingle in 1_usize..4,
            part in 0_u64..4,
        ) {
            let options = set_options(tokens, shingle);
            let all = features(&text, &options, &mut || ());
            let (common, rare): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|feature| feature.hash % 4 < part);
            let mut hashes: Vec<u64> = common.iter().map(|feature| feature.hash).collect();
            hashes.sort_unstable();
            let stored = FeatureSet::stored(&options, hashes.into_iter());
            let set = FeatureSet::from_stored(&stored).unwrap();
            let Some(left) = remainder(&set, &text) else {
                prop_assert!(rare.is_empty());
                return Ok(());
            };
            let kept: BTreeSet<String> =
                features(&left, &options, &mut || ()).into_iter().map(|f| f.text).collect();
            // Characters keep the separators around them, which may be cut at the ends.
            if tokens == Tokens::Word {
                for feature in &rare {
                    prop_assert!(kept.contains(&feature.text), "{:?} {left:?}", feature.text);
                }
            }
            if common.is_empty() && tokens == Tokens::Word {
                prop_assert!(text.contains(&left));
            }
        }
    }
}
