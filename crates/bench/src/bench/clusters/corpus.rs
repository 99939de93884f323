//! Documents of `cargo xtask bench --clusters`: generated texts. Three in ten are near-duplicates
//! of an earlier document, which is known.
use super::super::generated_rows::random;
use super::super::text::texts;

/// Identifier of the random stream ([`random`]) that decides which documents are near-duplicates.
/// `generated_rows.rs` uses other streams for fingerprints.
const COPIES: u64 = 16;
/// Identifier of the random stream that chooses the original of a near-duplicate.
const ORIGINALS: u64 = 17;
/// Identifier of the random stream for the lengths of documents, in words.
const LENGTHS: u64 = 18;
/// Identifier of the random stream for the words of documents.
const WORDS: u64 = 19;
/// Identifier of the random stream that decides which originals share words with an earlier
/// original.
const RELATIVES: u64 = 20;
/// Identifier of the random stream that chooses the words that near-duplicates replace, and the new
/// words.
const CHANGES: u64 = 21;

/// Size, in bytes, of a generated text from which the words of the documents are drawn.
const BYTES: usize = 3_000_000;
/// Minimum and maximum number of words in a document.
const LENGTH: [u64; 2] = [60, 240];
/// Number of words of an original for each word that a near-duplicate may replace. A near-duplicate
/// of an original of `n` words replaces 1 to `n / REPLACED` words. It keeps nine in ten of the
/// three-word shingles of its original. Two near-duplicates of one original share eight in ten of
/// their shingles.
const REPLACED: u64 = 60;

/// Generator of the documents of this benchmark. A document depends only on its number, so every
/// run has the same documents, and a small corpus is a prefix of a large one.
pub struct Corpus {
    words: Vec<String>,
}

impl Corpus {
    /// Makes the list of words to draw from. Words are as frequent as in English texts, and keep
    /// capitals and commas.
    pub fn new() -> Self {
        let text = texts::spaced(texts::LATIN, BYTES);
        let words = text.split_whitespace().map(str::to_owned).collect();
        Self { words }
    }

    /// Returns the text of document `number`, which has 60 to 240 words. One in ten originals
    /// takes the first half of its words from an earlier original. Other originals are unrelated.
    pub fn text(&self, number: u64) -> String {
        let original = original(number);
        let mut words: Vec<&str> = (0..length(original))
            .map(|i| self.word(original, i))
            .collect();
        if original != number {
            let most = length(original) / REPLACED;
            for change in 0..=random(CHANGES, number << 4) % most {
                let draw = random(CHANGES, (number << 4) + 1 + change);
                let index = draw as usize % words.len();
                words[index] = self.drawn(draw >> 16);
            }
        }
        words.join(" ")
    }

    /// Returns the word at position `index` of the original document `original`.
    fn word(&self, original: u64, index: u64) -> &str {
        match relative(original) {
            Some(relative) if index < length(original) / 2 => self.word(relative, index),
            _ => self.drawn(random(WORDS, (original << 8) + index)),
        }
    }

    fn drawn(&self, draw: u64) -> &str {
        &self.words[draw as usize % self.words.len()]
    }
}

/// Returns the original of a near-duplicate. For an original, returns its own number.
pub fn original(number: u64) -> u64 {
    match number > 0 && random(COPIES, number) % 10 < 3 {
        true => original(random(ORIGINALS, number) % number),
        false => number,
    }
}

/// Returns the earlier original from which this original takes the first half of its words. Returns
/// `None` if it takes none, as nine in ten originals do.
fn relative(original_number: u64) -> Option<u64> {
    let draw = random(RELATIVES, original_number);
    let shares = original_number > 0 && draw.is_multiple_of(10);
    shares.then(|| original((draw >> 8) % original_number))
}

fn length(original: u64) -> u64 {
    LENGTH[0] + random(LENGTHS, original) % (LENGTH[1] - LENGTH[0] + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn shingles(text: &str) -> BTreeSet<Vec<&str>> {
        let words: Vec<&str> = text.split(' ').collect();
        words.windows(3).map(<[&str]>::to_vec).collect()
    }

    #[test]
    fn copies_and_only_copies_are_alike() {
        let corpus = Corpus::new();
        let copies = (0..2000).filter(|&number| original(number) != number);
        assert!((500..700).contains(&copies.clone().count()));
        let jaccard = |a: u64, b: u64| {
            let (a, b) = (corpus.text(a), corpus.text(b));
            let (a, b) = (shingles(&a), shingles(&b));
            a.intersection(&b).count() as f64 / a.union(&b).count() as f64
        };
        for copy in copies.take(100) {
            assert!(jaccard(copy, original(copy)) > 0.88, "{copy}");
        }
        let related: Vec<(u64, u64)> = (0..2000)
            .filter(|&number| original(number) == number)
            .filter_map(|number| Some((number, relative(number)?)))
            .collect();
        assert!(related.len() > 50);
        for (a, b) in related {
            assert!((0.05..0.6).contains(&jaccard(a, b)), "{a} {b}");
        }
    }
}
