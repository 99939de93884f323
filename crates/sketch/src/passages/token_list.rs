//! Converts the tokens of two texts to numbers, in text order. Equal tokens have equal numbers.

use std::collections::HashMap;

use super::token_sequence::TokenSequence;
use crate::hash::feature_hash;
use crate::memory::{Grow, GrowVec};
use crate::options::TextOptions;

/// Number of tokens that are numbered between two calls of the cancellation check `check`.
const TOKENS_PER_CHECK: usize = 1 << 14;

/// End of a chain in `next` of [`TokenNumbers`]: no later token has the same hash.
const NO_NEXT: u32 = u32::MAX;

/// Assigns numbers to distinct tokens, from 0. Tokens are compared by their bytes.
#[derive(Default)]
pub(super) struct TokenNumbers {
    /// Bytes of the distinct tokens, concatenated.
    bytes: Vec<u8>,
    /// For each token number, the offset in `bytes` after the token's last byte.
    ends: Vec<usize>,
    /// For each hash of a token, the number of the first token with this hash.
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

/// Tokens of one text, in text order, with their numbers.
pub(super) struct TokenList {
    pub tokens: TokenSequence,
    /// Number of each token, assigned by [`TokenNumbers`].
    pub numbers: Vec<u32>,
}

impl TokenList {
    /// Splits `text` into tokens, and gets the number of each token from `numbers`, which is shared
    /// by both texts. Calls the cancellation check `check` every few 100 kB.
    pub fn new(
        text: &str,
        options: &TextOptions,
        numbers: &mut TokenNumbers,
        check: &mut dyn FnMut(),
    ) -> Self {
        let tokens = TokenSequence::new(text, options, check);
        let mut list = Vec::new();
        for n in 0..tokens.len() {
            if n.is_multiple_of(TOKENS_PER_CHECK) {
                check();
            }
            list.grow_push(numbers.number(&tokens.bytes()[tokens.range(n..n + 1)]));
        }
        Self {
            tokens,
            numbers: list,
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
        assert_eq!(a.tokens.bytes(), b"a rose is a rose ");
        let chars = TextOptions {
            tokens: Tokens::Char,
            ..options
        };
        let list = TokenList::new("Ab  A", &chars, &mut numbers, &mut || ());
        assert_eq!(list.numbers[0], list.numbers[3]);
        assert_eq!(&list.tokens.bytes()[list.tokens.range(1..4)], b"b a");
    }

    /// Different tokens with equal hashes have different numbers.
    #[test]
    fn hashes_alone_do_not_decide() {
        let mut numbers = TokenNumbers::default();
        let [a, b] = [numbers.number(b"a"), numbers.number(b"b")];
        // Makes the tokens look as if all had the hash of "c".
        numbers.first.insert(feature_hash(b"c"), a);
        numbers.next[a as usize] = b;
        let c = numbers.number(b"c");
        assert!(c != a && c != b);
        assert_eq!(numbers.number(b"c"), c);
        assert_eq!(numbers.next[b as usize], c);
    }
}
