//! Converts the tokens of two texts to numbers, in text order. Equal tokens have equal numbers.

use std::collections::HashMap;
use std::ops::Range;

use crate::feature_sink::FeatureSink;
use crate::hash::feature_hash;
use crate::memory::{Grow, GrowVec};
use crate::options::TextOptions;
use crate::tokens::FeatureExtractor;

/// Value in `next` of [`TokenNumbers`] for the last token with a hash.
const NO_NEXT: u32 = u32::MAX;

/// Assigns numbers to distinct tokens, from 0. Tokens are compared by their bytes.
#[derive(Default)]
pub(super) struct TokenNumbers {
    /// Bytes of the distinct tokens, concatenated.
    bytes: Vec<u8>,
    /// End of each distinct token in `bytes`, by its number.
    ends: Vec<usize>,
    /// Number of the first token with each hash.
    first: HashMap<u64, u32>,
    /// For each token, the number of the next token with the same hash, or [`NO_NEXT`].
    next: Vec<u32>,
}

impl TokenNumbers {
    /// Returns the bytes of the token with this number.
    fn token(&self, number: u32) -> &[u8] {
        let end = self.ends[number as usize];
        let start = number
            .checked_sub(1)
            .map_or(0, |before| self.ends[before as usize]);
        &self.bytes[start..end]
    }

    /// Returns the number of `token`. A new token gets the next number.
    fn number(&mut self, token: &[u8]) -> u32 {
        let new = self.ends.len() as u32;
        let hash = feature_hash(token);
        if let Some(&first) = self.first.get(&hash) {
            let mut number = first;
            loop {
                if self.token(number) == token {
                    return number;
                }
                match self.next[number as usize] {
                    NO_NEXT => break,
                    next => number = next,
                }
            }
            self.next[number as usize] = new;
        } else {
            self.first.ensure_room(1);
            self.first.insert(hash, new);
        }
        self.bytes.grow_by(token);
        self.ends.grow_push(self.bytes.len());
        self.next.grow_push(NO_NEXT);
        new
    }
}

/// Tokens of one text, in text order.
pub(super) struct TokenList {
    /// Bytes of the tokens, each followed by the separator, as [`crate::feature_spans`] expects.
    pub bytes: Vec<u8>,
    /// Start of each token in `bytes`, and the length of `bytes`.
    starts: Vec<usize>,
    /// Byte after each token. `None` for characters, which have no separator.
    separator: Option<u8>,
    /// Number of each token, assigned by [`TokenNumbers`].
    pub numbers: Vec<u32>,
}

impl TokenList {
    /// Splits `text` into tokens, and assigns their numbers by `numbers`. Calls the cancellation
    /// check `check` every few 100 kB.
    pub fn new(
        text: &str,
        options: &TextOptions,
        numbers: &mut TokenNumbers,
        check: &mut dyn FnMut(),
    ) -> Self {
        let list = Self {
            bytes: Vec::new(),
            starts: Vec::new(),
            separator: options.tokens.separator(),
            numbers: Vec::new(),
        };
        let single = TextOptions {
            shingle: 1,
            ..*options
        };
        let mut gatherer = TokenGatherer { list, numbers };
        FeatureExtractor::default().extract(text, &single, &mut gatherer, check);
        let mut list = gatherer.list;
        list.starts.grow_push(list.bytes.len());
        list
    }

    /// Returns the range of bytes in `bytes` of the consecutive tokens at the positions `tokens`,
    /// without the last separator.
    pub fn range(&self, tokens: Range<usize>) -> Range<usize> {
        let separator = usize::from(self.separator.is_some());
        self.starts[tokens.start]..self.starts[tokens.end] - separator
    }
}

/// Sink that appends the tokens of a text to a [`TokenList`].
struct TokenGatherer<'a> {
    list: TokenList,
    numbers: &'a mut TokenNumbers,
}

impl FeatureSink for TokenGatherer<'_> {
    const IN_ORDER: bool = true;

    fn add_all(&mut self, bytes: &[u8], features: impl Iterator<Item = Range<usize>>) {
        let list = &mut self.list;
        for feature in features {
            let token = &bytes[feature];
            list.numbers.grow_push(self.numbers.number(token));
            list.starts.grow_push(list.bytes.len());
            list.bytes.grow_by(token);
            if let Some(separator) = list.separator {
                list.bytes.grow_push(separator);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Tokens;

    #[test]
    fn equal_tokens_have_equal_numbers() {
        let mut numbers = TokenNumbers::default();
        let options = TextOptions::PASSAGES;
        let a = TokenList::new("A rose is a ROSE", &options, &mut numbers, &mut || ());
        let b = TokenList::new("is that a rose", &options, &mut numbers, &mut || ());
        assert_eq!(a.numbers, [0, 1, 2, 0, 1]);
        assert_eq!(b.numbers, [2, 3, 0, 1]);
        assert_eq!(a.bytes, b"a rose is a rose ");
        assert_eq!(&a.bytes[a.range(1..3)], b"rose is");
        let chars = TextOptions {
            tokens: Tokens::Char,
            ..options
        };
        let list = TokenList::new("Ab  A", &chars, &mut numbers, &mut || ());
        assert_eq!(list.numbers[0], list.numbers[3]);
        assert_eq!(&list.bytes[list.range(1..4)], b"b a");
    }

    /// Different tokens with equal hashes have different numbers.
    #[test]
    fn hashes_alone_do_not_decide() {
        let mut numbers = TokenNumbers::default();
        let [a, b] = [numbers.number(b"a"), numbers.number(b"b")];
        // As if all tokens had the hash of "c".
        numbers.first.insert(feature_hash(b"c"), a);
        numbers.next[a as usize] = b;
        let c = numbers.number(b"c");
        assert!(c != a && c != b);
        assert_eq!(numbers.number(b"c"), c);
        assert_eq!(numbers.next[b as usize], c);
    }
}
