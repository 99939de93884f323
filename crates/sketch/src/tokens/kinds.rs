//! Table of the kinds of tokens, with the name, the stored code and other properties of each kind.
//! Other modules and tests get these properties only from this table.

use std::fmt;

use crate::named_option::{NamedOption, UnknownName, described_option};
use crate::shingle::{LINE_SEPARATOR, SEPARATOR};

/// Maximum number of keywords that a user can request for a text. [`Tokens::parse`] rejects a
/// greater number.
pub const MAX_KEYWORDS: usize = 10_000;

/// Properties of a kind of tokens. The function that makes the tokens is chosen in
/// [`FeatureExtractor::extract`](super::FeatureExtractor::extract).
struct TokenKind {
    /// Name of the kind in SQL.
    name: &'static str,
    /// Code of the kind in stored sets of features. It never changes.
    code: u8,
    /// Byte between the tokens of a shingle; `None` for characters, which are concatenated.
    separator: Option<u8>,
    /// True if the dictionary of jieba must be loaded before a text is split.
    needs_dictionary: bool,
    /// Order of these tokens in a text, which decides how their positions are found.
    token_order: TokenOrder,
    /// Returns the estimated number of bytes of text for each distinct feature. `spaced` is true if
    /// the text has spaces between words. `shingle` is the number of tokens in a feature.
    bytes_per_feature: fn(spaced: bool, shingle: usize) -> usize,
}

/// Order and overlap of tokens in the normal form of a text, which decide how their positions are
/// found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenOrder {
    /// The tokens follow each other without gaps: the tokens and the separators between them are
    /// the whole text, in order. Each run of white space is one space or separator.
    Characters,
    /// The tokens are words in text order. Each word begins after the end of the previous word.
    Words,
    /// The tokens are long words and shorter words within them. The long words are the tokens of
    /// the kind that this variant contains, and are in text order. The shorter words precede the
    /// long word that contains them.
    PartsOf(Tokens),
    /// The tokens have no order in the text, and are not combined into shingles.
    Keywords,
}

described_option! {
    /// Kind of tokens into which a text is split ([`crate::tokens`]).
    pub enum Tokens ("tokens", TokenKind) {
        /// Words by the word-break rules of UAX 29.
        Word => TokenKind {
            name: "word",
            code: 0,
            separator: Some(SEPARATOR),
            needs_dictionary: false,
            token_order: TokenOrder::Words,
            // English has one word in six bytes of text, Chinese one in three.
            bytes_per_feature: |spaced, _| if spaced { 6 } else { 3 },
        },
        /// Single characters.
        Char => TokenKind {
            name: "char",
            code: 1,
            separator: None,
            needs_dictionary: false,
            token_order: TokenOrder::Characters,
            bytes_per_feature: |spaced, shingle| match spaced {
                // A text has few distinct characters and pairs of characters.
                _ if shingle < 3 => 8,
                true => 1,
                false => 3,
            },
        },
        /// Lines that are not blank.
        Line => TokenKind {
            name: "line",
            code: 2,
            separator: Some(LINE_SEPARATOR),
            needs_dictionary: false,
            token_order: TokenOrder::Characters,
            bytes_per_feature: |_, _| 40,
        },
        /// Chinese words by jieba.
        Jieba => TokenKind {
            name: "jieba",
            code: 3,
            separator: Some(SEPARATOR),
            needs_dictionary: true,
            token_order: TokenOrder::Words,
            bytes_per_feature: |_, _| 6,
        },
        /// Chinese words by jieba, and the shorter words within each word.
        JiebaSearch => TokenKind {
            name: "jieba_search",
            code: 4,
            separator: Some(SEPARATOR),
            needs_dictionary: true,
            token_order: TokenOrder::PartsOf(Tokens::Jieba),
            bytes_per_feature: |_, _| 6,
        },
        /// Keywords: the words by jieba with the highest TF-IDF in the text. Each keyword is a
        /// feature by itself, without shingles. The weight of a keyword is multiplied by its
        /// inverse document frequency.
        JiebaTfidf => TokenKind {
            name: "jieba_tfidf",
            code: 5,
            separator: Some(SEPARATOR),
            needs_dictionary: true,
            token_order: TokenOrder::Keywords,
            bytes_per_feature: |_, _| 120,
        },
    }
}

impl Tokens {
    /// Returns true if the dictionary of jieba must be loaded before a text is split into these
    /// tokens.
    #[must_use]
    pub const fn need_dictionary(self) -> bool {
        self.description().needs_dictionary
    }

    /// Returns true for keywords, which have no order in the text.
    #[must_use]
    pub const fn are_keywords(self) -> bool {
        matches!(self.description().token_order, TokenOrder::Keywords)
    }

    /// Parses the name of a kind of tokens. Returns the kind and the number of keywords. The name
    /// of a kind of keywords may be followed by a colon and the number, as in `jieba_tfidf:50`.
    /// Without a number, the returned number is 0.
    ///
    /// # Errors
    ///
    /// If the name is unknown, or the number of keywords is not from 1 to [`MAX_KEYWORDS`].
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

    /// Returns the code of this kind of tokens in stored sets of features.
    pub(crate) fn code(self) -> u8 {
        self.description().code
    }

    /// Returns the kind of tokens with this code in stored sets of features, or `None` if there is
    /// none.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        let mut all = Self::NAMES.iter().map(|(_, tokens)| *tokens);
        all.find(|tokens| tokens.code() == code)
    }

    /// Returns the byte between the tokens of a shingle, or `None` for characters.
    pub(crate) fn separator(self) -> Option<u8> {
        self.description().separator
    }

    pub(crate) fn token_order(self) -> TokenOrder {
        self.description().token_order
    }

    /// Estimates the number of bytes of text for each distinct feature. `spaced` is true if the
    /// text has spaces between words. `shingle` is the number of tokens in a feature.
    pub(crate) fn bytes_per_feature(self, spaced: bool, shingle: usize) -> usize {
        (self.description().bytes_per_feature)(spaced, shingle)
    }
}

/// Error of [`Tokens::parse`]: the name of a kind of tokens is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokensError {
    /// No kind of tokens has this name.
    UnknownName(UnknownName),
    /// The number after the colon, in a name such as `jieba_tfidf:50`, is not from 1 to
    /// [`MAX_KEYWORDS`]. Contains the name before the colon.
    KeywordNumber(&'static str),
}

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName(error) => error.fmt(f),
            Self::KeywordNumber(name) => write!(
                f,
                "the number of keywords after \"{name}:\" must be from 1 to {MAX_KEYWORDS}"
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
