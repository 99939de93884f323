//! Kinds of tokens: the list that names, stored codes, positions and tests are derived from.

use std::fmt;

use crate::named_option::{NamedOption, UnknownName, described_option};
use crate::shingle::{LINE_SEPARATOR, SEPARATOR};

/// Maximum number of keywords.
pub const MAX_KEYWORDS: usize = 10_000;

/// Description of a kind of tokens. An arm of
/// [`FeatureExtractor::extract`](super::FeatureExtractor::extract) chooses the function that makes
/// the tokens.
struct TokenKind {
    /// Name in SQL.
    name: &'static str,
    /// Code in stored sets of features, which never changes.
    code: u8,
    /// Byte between the tokens of a shingle; characters have none.
    separator: Option<u8>,
    /// True if a dictionary must be loaded first.
    needs_dictionary: bool,
    placement: Placement,
    /// Estimated bytes of text for each distinct feature. The parameters are whether the text has
    /// spaces between words, and the number of tokens in a shingle.
    bytes_per_feature: fn(spaced: bool, shingle: usize) -> usize,
}

/// Way to find the tokens in the normal form of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The tokens have all characters of the text, with one space for each run of white space.
    Characters,
    /// Each word begins after the end of the previous word.
    Words,
    /// Words of these tokens. Each word is preceded by the shorter words that it contains.
    PartsOf(Tokens),
    /// The tokens have no order, and are not combined into shingles.
    Keywords,
}

described_option! {
    /// Kind of tokens ([`crate::tokens`]).
    pub enum Tokens ("tokens", TokenKind) {
        /// Words by UAX 29.
        Word => TokenKind {
            name: "word",
            code: 0,
            separator: Some(SEPARATOR),
            needs_dictionary: false,
            placement: Placement::Words,
            // English has a word in six bytes, Chinese one in three.
            bytes_per_feature: |spaced, _| if spaced { 6 } else { 3 },
        },
        /// Characters.
        Char => TokenKind {
            name: "char",
            code: 1,
            separator: None,
            needs_dictionary: false,
            placement: Placement::Characters,
            bytes_per_feature: |spaced, shingle| match spaced {
                // There are few distinct characters and pairs.
                _ if shingle < 3 => 8,
                true => 1,
                false => 3,
            },
        },
        /// Lines.
        Line => TokenKind {
            name: "line",
            code: 2,
            separator: Some(LINE_SEPARATOR),
            needs_dictionary: false,
            placement: Placement::Characters,
            bytes_per_feature: |_, _| 40,
        },
        /// Chinese words by jieba.
        Jieba => TokenKind {
            name: "jieba",
            code: 3,
            separator: Some(SEPARATOR),
            needs_dictionary: true,
            placement: Placement::Words,
            bytes_per_feature: |_, _| 6,
        },
        /// Chinese words by jieba, and the shorter words within each.
        JiebaSearch => TokenKind {
            name: "jieba_search",
            code: 4,
            separator: Some(SEPARATOR),
            needs_dictionary: true,
            placement: Placement::PartsOf(Tokens::Jieba),
            bytes_per_feature: |_, _| 6,
        },
        /// Keywords: the words by jieba with the highest TF-IDF. Each is a feature without
        /// shingles. Weights are multiplied by the inverse document frequency.
        JiebaTfidf => TokenKind {
            name: "jieba_tfidf",
            code: 5,
            separator: Some(SEPARATOR),
            needs_dictionary: true,
            placement: Placement::Keywords,
            bytes_per_feature: |_, _| 120,
        },
    }
}

impl Tokens {
    /// Returns true if a dictionary must be loaded first.
    #[must_use]
    pub const fn need_dictionary(self) -> bool {
        self.description().needs_dictionary
    }

    /// Returns true for keywords, which have no order.
    #[must_use]
    pub const fn are_keywords(self) -> bool {
        matches!(self.description().placement, Placement::Keywords)
    }

    /// Parses a name. The name of keywords may be followed by a colon and their number, as in
    /// `jieba_tfidf:50`. The number is 0 if it is missing.
    ///
    /// # Errors
    ///
    /// If the name is unknown, or the number is not from 1 to [`MAX_KEYWORDS`].
    pub fn parse(name: &[u8]) -> Result<(Self, usize), TokensError> {
        for &(known, tokens) in Self::NAMES {
            let number = (name.strip_prefix(known.as_bytes())).and_then(|it| it.strip_prefix(b":"));
            if let Some(number) = number
                && tokens.are_keywords()
            {
                let number = str::from_utf8(number).ok().and_then(|it| it.parse().ok());
                return match number {
                    Some(number @ 1..=MAX_KEYWORDS) => Ok((tokens, number)),
                    _ => Err(TokensError::KeywordNumber(known)),
                };
            }
        }
        match Self::from_name(name) {
            Ok(tokens) => Ok((tokens, 0)),
            Err(error) => Err(TokensError::UnknownName(error)),
        }
    }

    /// Code in stored sets of features.
    pub(crate) fn code(self) -> u8 {
        self.description().code
    }

    /// Returns the tokens with this code in stored sets of features.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        let mut all = Self::NAMES.iter().map(|(_, tokens)| *tokens);
        all.find(|tokens| tokens.code() == code)
    }

    /// Byte between the tokens of a shingle.
    pub(crate) fn separator(self) -> Option<u8> {
        self.description().separator
    }

    pub(crate) fn placement(self) -> Placement {
        self.description().placement
    }

    /// Estimates the bytes of text for each distinct feature.
    pub(crate) fn bytes_per_feature(self, spaced: bool, shingle: usize) -> usize {
        (self.description().bytes_per_feature)(spaced, shingle)
    }
}

/// Error in a name of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokensError {
    /// No tokens have this name.
    UnknownName(UnknownName),
    /// The number of keywords after this name is not from 1 to [`MAX_KEYWORDS`].
    KeywordNumber(&'static str),
}

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName(error) => error.fmt(f),
            Self::KeywordNumber(name) => write!(
                f,
                "after \"{name}:\" stands the number of keywords, from 1 to {MAX_KEYWORDS}"
            ),
        }
    }
}

impl std::error::Error for TokensError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct() {
        for &(name, tokens) in Tokens::NAMES {
            assert_eq!(Tokens::from_code(tokens.code()), Some(tokens), "{name}");
        }
        assert_eq!(Tokens::from_code(Tokens::NAMES.len() as u8), None);
    }

    #[test]
    fn names_are_read_with_numbers() {
        assert_eq!(Tokens::parse(b"word"), Ok((Tokens::Word, 0)));
        assert_eq!(Tokens::parse(b"jieba_tfidf"), Ok((Tokens::JiebaTfidf, 0)));
        let fifty = Tokens::parse(b"jieba_tfidf:50");
        assert_eq!(fifty, Ok((Tokens::JiebaTfidf, 50)));
        for name in ["", "words", "word:5", "jieba:5", "jieba_tfidf50"] {
            let error = Tokens::parse(name.as_bytes());
            assert!(matches!(error, Err(TokensError::UnknownName(_))), "{name}");
        }
        for number in ["", "0", "-1", "10001", "5x"] {
            let error = Tokens::parse(format!("jieba_tfidf:{number}").as_bytes());
            assert_eq!(
                error,
                Err(TokensError::KeywordNumber("jieba_tfidf")),
                "{number}"
            );
        }
    }
}
