//! Tokens: the units by which two texts are compared, such as words and punctuation signs.
//!
//! Tokens are the segments of [UAX 29] other than white space: words, numbers, single punctuation
//! signs and single Chinese characters. White space is not a token, because equal spaces would
//! align words that do not correspond. `spans` compares the white space between tokens.
//!
//! [UAX 29]: https://www.unicode.org/reports/tr29/#Word_Boundaries

use std::collections::HashMap;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::TooLong;
use crate::host::{Host, push};

/// Maximum number of bytes of a text. For a longer text, a comparison returns [`TooLong::Bytes`].
pub const MAX_BYTES: usize = 1 << 24;
/// Maximum number of tokens of a text, enough for about 3 MB of English. For a text with more
/// tokens, a comparison returns [`TooLong::Tokens`].
pub const MAX_TOKENS: usize = 1 << 19;

/// Number of tokens, or of other segments of a text, between two calls of [`Host::check`].
const CHECK_EVERY: usize = 1 << 12;
/// Number of bytes that the hash table of [`numbers`] takes for each token. Includes the old table,
/// which exists until a larger table is filled.
const TABLE_BYTES: usize = 90;

/// A text and the positions of its tokens.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    /// Start and end of each token, as byte offsets in the text.
    ranges: Vec<(u32, u32)>,
}

impl<'a> Tokens<'a> {
    /// Divides a text into tokens. Returns an error if the text has more bytes than [`MAX_BYTES`]
    /// or more tokens than [`MAX_TOKENS`].
    pub fn new(text: &'a str, host: &mut dyn Host) -> Result<Self, TooLong> {
        if text.len() > MAX_BYTES {
            return Err(TooLong::Bytes(text.len()));
        }
        let mut ranges = Vec::new();
        let mut start = 0;
        for (n, segment) in text.split_word_bounds().enumerate() {
            if n.is_multiple_of(CHECK_EVERY) {
                host.check();
            }
            let end = start + segment.len();
            if !is_blank(segment) {
                if ranges.len() == MAX_TOKENS {
                    return Err(TooLong::Tokens);
                }
                // A text has less than 2^32 bytes.
                push(host, &mut ranges, (start as u32, end as u32));
            }
            start = end;
        }
        Ok(Self { text, ranges })
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the byte range of token `n`.
    pub fn range(&self, n: usize) -> Range<usize> {
        let (start, end) = self.ranges[n];
        start as usize..end as usize
    }

    /// Returns the text of token `n`.
    pub fn get(&self, n: usize) -> &'a str {
        &self.text[self.range(n)]
    }

    /// Returns the number of characters of the tokens in a range, without the white space between
    /// them.
    pub fn chars(&self, tokens: Range<usize>) -> usize {
        tokens.map(|n| self.get(n).chars().count()).sum()
    }

    /// Returns the white space before token `n`, or after the last token if `n` is the number of
    /// tokens.
    pub fn gap(&self, n: usize) -> &'a str {
        let start = n.checked_sub(1).map_or(0, |before| self.range(before).end);
        let end = match n == self.len() {
            true => self.text.len(),
            false => self.range(n).start,
        };
        &self.text[start..end]
    }
}

/// Returns true if a text consists of white space or is empty.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// Returns a number for each token of two texts. Equal tokens have equal numbers.
pub(crate) fn numbers(a: &Tokens, b: &Tokens, host: &mut dyn Host) -> [Vec<u32>; 2] {
    host.reserve((a.len() + b.len()) * TABLE_BYTES);
    let mut table: HashMap<&str, u32> = HashMap::new();
    [a, b].map(|tokens| {
        let mut all = Vec::new();
        for n in 0..tokens.len() {
            if n.is_multiple_of(CHECK_EVERY) {
                host.check();
            }
            // There are at most 2^20 tokens.
            let next = table.len() as u32;
            let number = *table.entry(tokens.get(n)).or_insert(next);
            push(host, &mut all, number);
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<&str> {
        let tokens = Tokens::new(text, &mut ()).unwrap();
        (0..tokens.len()).map(|n| tokens.get(n)).collect()
    }

    #[test]
    fn words_signs_and_chinese_characters() {
        assert_eq!(
            shown(" It's 3.14,\n\tnot  \u{3000}一二. "),
            ["It's", "3.14", ",", "not", "一", "二", "."]
        );
        assert_eq!(shown(" \n "), [""; 0]);
    }

    #[test]
    fn gaps() {
        let tokens = Tokens::new(" a, b\n", &mut ()).unwrap();
        let gaps: Vec<_> = (0..=tokens.len()).map(|n| tokens.gap(n)).collect();
        assert_eq!(gaps, [" ", "", " ", "\n"]);
        assert_eq!(Tokens::new(" ", &mut ()).unwrap().gap(0), " ");
    }

    #[test]
    fn long_texts_are_refused() {
        let too_long = |text: &str| Tokens::new(text, &mut ()).err();
        let most = ",".repeat(MAX_TOKENS);
        assert_eq!(too_long(&most), None);
        assert_eq!(too_long(&(most + ",")), Some(TooLong::Tokens));
        let most = " ".repeat(MAX_BYTES);
        assert_eq!(too_long(&most), None);
        assert_eq!(too_long(&(most + " ")), Some(TooLong::Bytes(MAX_BYTES + 1)));
    }
}
