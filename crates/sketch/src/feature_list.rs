//! List of the features of a text, for display. A feature is one token or several consecutive
//! tokens, for example words, characters or lines.
//!
//! The tokens of the text are stored once, in text order, and a feature is a range of them. So a
//! distinct feature of any length takes 24 bytes. The text of a feature is copied when it is read.

use std::cmp::Ordering;
use std::ops::Range;

use crate::check::SharedCheck;
use crate::feature_sink::FeatureSink;
use crate::hash::feature_hash;
use crate::memory::{self, GrowVec, copied};
use crate::options::TextOptions;
use crate::tokens::{FeatureExtractor, jieba};

/// Feature of a text with its number of occurrences and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Text of the feature: its tokens with separators between them. The hash of the feature is the
    /// hash of this text.
    pub text: String,
    /// Number of occurrences in the text.
    pub count: u64,
    /// Weight, in units of 2^-[`crate::weight::FRACTION_BITS`].
    pub weight: u64,
    /// 64-bit hash of the feature ([`crate::hash::feature_hash`]).
    pub hash: u64,
}

/// Distinct feature of a [`FeatureList`]: a byte range of the list's tokens.
#[derive(Clone, Copy)]
pub(crate) struct FeatureEntry {
    hash: u64,
    /// Byte offset of the first occurrence in the list's tokens.
    pub start: u64,
    len: u32,
    count: u32,
}

impl FeatureEntry {
    /// Returns the 64-bit hash of the feature.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the byte range of the first occurrence in the list's tokens.
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// Distinct features of a text, in a sorted list.
pub struct FeatureList {
    /// Tokens of the text in text order, with separators between them.
    tokens: Vec<u8>,
    entries: Vec<FeatureEntry>,
    weight: fn(u64) -> u64,
    /// True if the features are keywords, whose weights are multiplied by their inverse document
    /// frequency.
    keywords: bool,
}

impl FeatureList {
    /// Lists the distinct features of a text. The order is by weight, the heaviest first, then by
    /// the bytes of the features. Calls `check` every few 100 kB.
    ///
    /// Memory: the text in its normal form, 24 bytes for each distinct feature, and up to twice as
    /// much again while features are collected.
    pub fn new(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Self {
        let mut list = Self::by_hash(text, options, check);
        let mut entries = std::mem::take(&mut list.entries);
        sort(&mut entries, |a, b| list.by_weight(a, b), check);
        list.entries = entries;
        list
    }

    /// Lists the distinct features of a text in the order of their hashes, then of their bytes.
    pub(crate) fn by_hash(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Self {
        let check = SharedCheck::new(check);
        let mut gatherer = FeatureGatherer {
            tokens: Vec::new(),
            base: 0,
            entries: Vec::new(),
            merge_at: MERGE_AT,
            check: &check,
        };
        FeatureExtractor::default().extract(text, options, &mut gatherer, &mut || check.call());
        gatherer.merge();
        let FeatureGatherer {
            tokens, entries, ..
        } = gatherer;
        Self {
            tokens,
            entries,
            weight: options.weight.function(),
            keywords: options.tokens.are_keywords(),
        }
    }

    /// Returns the number of distinct features.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the text has no features.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the feature at position `at` of the list, or `None` after the last one.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Feature> {
        self.entries.get(at).map(|entry| self.feature(entry))
    }

    /// Returns the tokens of the text in text order, with separators between them.
    pub(crate) fn tokens(&self) -> &[u8] {
        &self.tokens
    }

    pub(crate) fn entries(&self) -> &[FeatureEntry] {
        &self.entries
    }

    pub(crate) fn feature(&self, entry: &FeatureEntry) -> Feature {
        let text = str::from_utf8(self.bytes(entry)).expect("features are cut between characters");
        Feature {
            text: copied(text),
            count: entry.count.into(),
            weight: self.weight(entry),
            hash: entry.hash,
        }
    }

    pub(crate) fn bytes(&self, entry: &FeatureEntry) -> &[u8] {
        bytes(&self.tokens, entry)
    }

    pub(crate) fn weight(&self, entry: &FeatureEntry) -> u64 {
        let weight = (self.weight)(entry.count.into());
        if self.keywords {
            jieba::keyword_weight(entry.hash, weight)
        } else {
            weight
        }
    }

    /// Compares two features by weight, the heaviest first, then by their bytes.
    fn by_weight(&self, a: &FeatureEntry, b: &FeatureEntry) -> Ordering {
        (self.weights(a, b)).then_with(|| self.bytes(a).cmp(self.bytes(b)))
    }

    /// Compares two features by weight, the heaviest first, then by their first occurrences.
    pub(crate) fn by_weight_and_position(&self, a: &FeatureEntry, b: &FeatureEntry) -> Ordering {
        self.weights(a, b).then(a.start.cmp(&b.start))
    }

    fn weights(&self, a: &FeatureEntry, b: &FeatureEntry) -> Ordering {
        // Computing weights takes time, and most features occur once.
        if a.count == b.count && !self.keywords {
            Ordering::Equal
        } else {
            self.weight(b).cmp(&self.weight(a))
        }
    }

    /// Compares feature `a` of this list with feature `b` of the list `other`, by hash, then by
    /// bytes.
    pub(crate) fn order(&self, a: &FeatureEntry, other: &Self, b: &FeatureEntry) -> Ordering {
        (a.hash.cmp(&b.hash)).then_with(|| self.bytes(a).cmp(other.bytes(b)))
    }
}

/// Returns the distinct features of a text with their texts, the heaviest first.
///
/// ```
/// use neardup_sketch::{TextOptions, features};
///
/// let found = features("A rose is a rose", &TextOptions::SIMHASH, &mut || ());
/// assert_eq!((found[0].text.as_str(), found[0].count), ("a rose", 2));
/// ```
pub fn features(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Vec<Feature> {
    let list = FeatureList::new(text, options, check);
    let mut features = Vec::new();
    features.grow_all(list.entries.iter().map(|entry| list.feature(entry)));
    features
}

fn bytes<'a>(tokens: &'a [u8], entry: &FeatureEntry) -> &'a [u8] {
    &tokens[entry.range()]
}

/// Number of comparisons between two calls of `check`.
const COMPARISONS: usize = 1 << 16;

/// Sorts the elements by `order`, and calls `check` regularly. The sort is not stable.
pub(crate) fn sort<T>(
    elements: &mut [T],
    mut order: impl FnMut(&T, &T) -> Ordering,
    check: &mut dyn FnMut(),
) {
    let mut left = COMPARISONS;
    elements.sort_unstable_by(|a, b| {
        left -= 1;
        if left == 0 {
            left = COMPARISONS;
            check();
        }
        order(a, b)
    });
}

/// Number of entries at which [`FeatureGatherer::merge`] is called for the first time. It merges
/// the entries of equal features into one entry.
const MERGE_AT: usize = 1 << 16;

/// Sink that collects the distinct features of a text and counts their occurrences.
struct FeatureGatherer<'a> {
    tokens: Vec<u8>,
    /// Offset in `tokens` that corresponds to the start of the caller's buffer of tokens. The
    /// caller passes each feature as a byte range of this buffer, and `base` converts it to a range
    /// of `tokens`.
    base: usize,
    /// Collected features. The entries at the start come from the last merge: they are sorted, and
    /// each feature has one entry. After them, each entry is one occurrence of a feature.
    entries: Vec<FeatureEntry>,
    /// Number of entries at which [`FeatureGatherer::merge`] is called the next time.
    merge_at: usize,
    check: &'a SharedCheck<'a>,
}

impl FeatureGatherer<'_> {
    /// Merges the entries of equal features into one entry, which has their total count.
    fn merge(&mut self) {
        let tokens = &self.tokens;
        let text = |entry: &FeatureEntry| bytes(tokens, entry);
        let order = |a: &FeatureEntry, b: &FeatureEntry| {
            let order = (a.hash.cmp(&b.hash)).then_with(|| text(a).cmp(text(b)));
            // Of equal features, the first occurrence comes first, so the merged entry gets the
            // position of the first occurrence.
            order.then(a.start.cmp(&b.start))
        };
        sort(&mut self.entries, order, &mut || self.check.call());
        self.entries.dedup_by(|same, first| {
            let repeated = same.hash == first.hash && text(same) == text(first);
            if repeated {
                first.count = first.count.saturating_add(same.count);
            }
            repeated
        });
    }
}

impl FeatureSink for FeatureGatherer<'_> {
    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let mut end = 0;
        for feature in features {
            end = end.max(feature.end);
            let Ok(len) = u32::try_from(feature.len()) else {
                memory::raise();
            };
            self.entries.grow_push(FeatureEntry {
                hash: feature_hash(&bytes[feature.clone()]),
                start: (self.base + feature.start) as u64,
                len,
                count: 1,
            });
        }
        let known = self.tokens.len() - self.base;
        if end > known {
            self.tokens.grow_by(&bytes[known..end]);
        }
        if self.entries.len() >= self.merge_at {
            self.merge();
            self.merge_at = MERGE_AT.max(2 * self.entries.len());
        }
    }

    fn bytes_dropped(&mut self, len: usize) {
        self.base += len;
        // The last byte is the separator after the last feature, which no feature contains.
        if self.tokens.len() < self.base {
            self.tokens.grow_to(self.base, b' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Tokens;
    use crate::test_texts::{any_text, any_tokens};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Sink that counts the occurrences of each feature by its text.
    struct Texts(BTreeMap<Vec<u8>, u64>);

    impl FeatureSink for Texts {
        fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
            for feature in features {
                *self.0.entry(bytes[feature].to_vec()).or_default() += 1;
            }
        }
    }

    proptest! {
        #[test]
        fn equals_the_occurrences(
            text in any_text(),
            tokens in any_tokens(),
            shingle in prop_oneof![8 => 1_usize..7, 1 => 1_usize..100],
            repeat in prop_oneof![9 => Just(1_usize), 1 => 1_usize..3000],
        ) {
            let text = if text.len() * repeat < 300_000 { text.repeat(repeat) } else { text };
            let options = TextOptions { tokens, shingle, ..TextOptions::SIMHASH };
            let mut expected = Texts(BTreeMap::new());
            FeatureExtractor::default().extract(&text, &options, &mut expected, &mut || ());
            let list = FeatureList::new(&text, &options, &mut || ());
            let found: Vec<Feature> = (0..list.len()).filter_map(|at| list.get(at)).collect();
            prop_assert!(found.is_sorted_by(|a, b| (b.weight, &a.text) < (a.weight, &b.text)));
            for feature in &found {
                prop_assert_eq!(feature.hash, feature_hash(feature.text.as_bytes()));
                let count = expected.0.remove(feature.text.as_bytes());
                prop_assert_eq!(count, Some(feature.count));
            }
            prop_assert!(expected.0.is_empty());
        }
    }

    #[test]
    fn long_tokens_stand_once() {
        let line = "x".repeat(50_000) + "\n";
        let text: String = (0..200).map(|n| format!("{n}{line}")).collect();
        let options = TextOptions {
            tokens: Tokens::Line,
            shingle: 100,
            ..TextOptions::SIMHASH
        };
        let list = FeatureList::new(&text, &options, &mut || ());
        assert_eq!(list.len(), 101);
        assert!(list.tokens.len() <= text.len(), "{}", list.tokens.len());
    }
}
