//! Finds the keywords of a text: the words with the highest TF-IDF.
//!
//! Like jieba's `extract_tags`, this module weights words by their frequency in the text times
//! their inverse document frequency ([`super::idf`]). Stop words and words of fewer than two
//! characters are not keywords. The arithmetic is in integers. Of words of equal weight, the one
//! with the smaller hash comes first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::idf::{IDF_BITS, idf};
use super::{Dictionary, TokenizeMode, tokenize};
use crate::feature_counts::{Counted, FeatureCount, FeatureCounter};
use crate::feature_sink::FeatureSink;
use crate::hash::feature_hash;
use crate::memory::{Grow, copied};

/// Stop words of jieba, which are never keywords. All are English, in the order of their bytes.
const STOP_WORDS: [&str; 31] = [
    "all", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "has", "have", "if",
    "in", "is", "it", "not", "of", "on", "one", "or", "that", "the", "then", "this", "to", "we",
    "which", "with", "you",
];

/// Minimum number of characters of a keyword.
const MIN_CHARS: usize = 2;

/// Returns the default number of keywords for a text of `bytes` bytes: one for each 120 bytes (40
/// Chinese characters), from 5 to 200.
pub(crate) fn default_number(bytes: usize) -> usize {
    (bytes / 120).clamp(5, 200)
}

/// Keyword of a text, which is identified by the hash of the word. Keywords are ordered by weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Keyword {
    /// TF-IDF of the word: the weight for the word's number of occurrences, multiplied by the
    /// word's inverse document frequency.
    pub weight: u64,
    /// [`feature_hash`] of the word, in reversed order: of two keywords of equal weight, the
    /// keyword with the smaller hash is the greater one.
    hash: Reverse<u64>,
    /// Number of occurrences of the word in the text.
    pub count: u64,
}

impl Keyword {
    /// Returns the [`feature_hash`] of the word.
    pub fn hash(&self) -> u64 {
        self.hash.0
    }
}

/// Calls `each` for each occurrence of a word in `text` that can be a keyword.
fn each_candidate(
    dictionary: &Dictionary,
    text: &str,
    check: &mut dyn FnMut(),
    mut each: impl FnMut(&str),
) {
    let each = &mut |word: &str| {
        if is_keyword(word) {
            each(word);
        }
    };
    let mode = TokenizeMode::Default;
    tokenize(dictionary, mode, text, &mut String::new(), each, check);
}

/// Returns true if `word` can be a keyword: it has enough characters and is not a stop word.
fn is_keyword(word: &str) -> bool {
    word.chars().nth(MIN_CHARS - 1).is_some() && STOP_WORDS.binary_search(&word).is_err()
}

/// Returns the TF-IDF of the word whose [`feature_hash`] is `hash`: `weight` multiplied by the
/// word's inverse document frequency. `weight` is the weight for the word's number of occurrences.
pub(crate) fn keyword_weight(hash: u64, weight: u64) -> u64 {
    ((u128::from(weight) * u128::from(idf(hash))) >> IDF_BITS) as u64
}

/// Returns the `number` heaviest keywords of `text`, the heaviest first. `weigh` maps a word's
/// number of occurrences to a weight. Takes as much memory as a [`FeatureCounter`] of all words.
/// Calls the cancellation check `check` every few 10 kB.
pub(crate) fn keywords(
    dictionary: &Dictionary,
    text: &str,
    number: usize,
    weigh: fn(u64) -> u64,
    check: &mut dyn FnMut(),
) -> Vec<Keyword> {
    let mut counts = FeatureCounter::<1>::default();
    counts.reset(text.len() / 8);
    each_candidate(dictionary, text, check, |word| {
        counts.add_all(word.as_bytes(), std::iter::once(0..word.len()));
    });
    let mut heaviest = BinaryHeap::new();
    let consider = |counted: Counted<1>| {
        for FeatureCount {
            hash: [hash],
            count,
        } in counted.iter()
        {
            let weight = keyword_weight(hash, weigh(count));
            let keyword = Keyword {
                weight,
                hash: Reverse(hash),
                count,
            };
            if heaviest.len() < number {
                heaviest.ensure_room(1);
                heaviest.push(Reverse(keyword));
            } else if let Some(mut lightest) = heaviest.peek_mut()
                && keyword > lightest.0
            {
                *lightest = Reverse(keyword);
            }
        }
    };
    counts.drain(consider, check);
    // Collecting into a vector reuses the memory of the heap, so it needs no allocation.
    heaviest
        .into_sorted_vec()
        .into_iter()
        .map(|keyword| keyword.0)
        .collect()
}

/// Returns the keywords of `text` like [`keywords`], but each with its word, in the order of first
/// occurrence. Splits the text twice.
pub(crate) fn keyword_words(
    dictionary: &Dictionary,
    text: &str,
    number: usize,
    weigh: fn(u64) -> u64,
    check: &mut dyn FnMut(),
) -> Vec<(String, Keyword)> {
    let found = keywords(dictionary, text, number, weigh, check);
    let mut wanted: HashMap<u64, Keyword> = HashMap::new();
    wanted.ensure_room(found.len());
    wanted.extend(found.into_iter().map(|k| (k.hash(), k)));
    let mut words = Vec::new();
    words.ensure_room(wanted.len());
    each_candidate(dictionary, text, check, |word| {
        if !wanted.is_empty()
            && let Some(keyword) = wanted.remove(&feature_hash(word.as_bytes()))
        {
            words.push((copied(word), keyword));
        }
    });
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_found() {
        assert!(STOP_WORDS.is_sorted());
        for word in ["the", "all", "you", "好", "x", ""] {
            assert!(!is_keyword(word), "{word}");
        }
        assert!(is_keyword("他们") && is_keyword("ok"));
    }

    #[test]
    fn number_of_keywords() {
        assert_eq!(
            [0, 600, 719, 720, 7800, 24_000, 1 << 30].map(default_number),
            [5, 5, 5, 6, 65, 200, 200]
        );
    }
}
