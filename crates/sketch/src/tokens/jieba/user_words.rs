//! Words that users add to jieba's dictionary, as a parsed list.

use std::collections::BTreeMap;
use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use super::{is_han, is_jieba};
use crate::normalize::normalized;

/// Maximum number of characters of a user word; [`UserWords::parse`] rejects a longer one. The
/// limit bounds the time for each character of a text, because jieba looks for all words that start
/// at each character.
pub const MAX_WORD_CHARS: usize = 32;
/// Maximum frequency of a user word; [`UserWords::parse`] rejects a higher one. The most frequent
/// word of jieba's dictionary has a frequency of about 300,000.
pub const MAX_FREQUENCY: u32 = 100_000_000;
/// Maximum length of a list of user words, in bytes. [`UserWords::parse`] rejects a longer list.
pub const MAX_LIST: usize = 4 << 20;

/// Words to add to jieba's dictionary, in their normal form ([`crate::normalize`]), each with an
/// optional frequency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserWords {
    words: BTreeMap<String, Option<u32>>,
}

impl UserWords {
    /// Parses a list of words separated by commas, each optionally followed by its frequency. If a
    /// word is repeated, its last entry counts.
    ///
    /// ```
    /// use neardup_sketch::tokens::jieba::UserWords;
    ///
    /// let words = UserWords::parse("云计算 7, 创新办").unwrap();
    /// assert_eq!(words.hash(), UserWords::parse("创新办,云计算 7").unwrap().hash());
    /// ```
    ///
    /// # Errors
    ///
    /// If an entry is invalid ([`EntryError`]), or the list is longer than [`MAX_LIST`].
    pub fn parse(list: &str) -> Result<Self, UserWordError> {
        if list.len() > MAX_LIST {
            return Err(UserWordError::TooLong);
        }
        let mut words = BTreeMap::new();
        for entry in list
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let wrong = |error| UserWordError::Entry {
                entry: entry.to_owned(),
                error,
            };
            let mut parts = entry.split_whitespace();
            let word = normalized(parts.next().unwrap_or_default());
            let frequency = match parts.next() {
                None => None,
                Some(number) => match number.parse() {
                    Ok(frequency @ 1..=MAX_FREQUENCY) => Some(frequency),
                    _ => return Err(wrong(EntryError::Frequency)),
                },
            };
            if parts.next().is_some() {
                return Err(wrong(EntryError::Parts));
            }
            if !word.chars().all(is_jieba) || !word.chars().any(is_han) {
                return Err(wrong(EntryError::Characters));
            }
            if word.chars().count() > MAX_WORD_CHARS {
                return Err(wrong(EntryError::Length));
            }
            words.insert(word, frequency);
        }
        Ok(Self { words })
    }

    /// Returns a hash of the words and their frequencies: the 64-bit XXH3 of a text with a line for
    /// each word, in byte order. If the word has a frequency, a space and the frequency follow it
    /// in the line. Users store the hash, so it never changes for the same list.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        for (word, frequency) in self.iter() {
            hash.update(word.as_bytes());
            if let Some(frequency) = frequency {
                hash.update(b" ");
                hash.update(frequency.to_string().as_bytes());
            }
            hash.update(b"\n");
        }
        hash.digest()
    }

    /// Iterates over the user words in byte order, with the frequency of each, if it has one.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Option<u32>)> {
        self.words
            .iter()
            .map(|(word, frequency)| (word.as_str(), *frequency))
    }
}

/// Error of [`UserWords::parse`]: the list of user words is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserWordError {
    /// The list is longer than [`MAX_LIST`] bytes.
    TooLong,
    /// An entry of the list is invalid.
    Entry {
        /// The invalid entry, as in the list.
        entry: String,
        /// Reason why the entry is invalid.
        error: EntryError,
    },
}

/// Reason why an entry of a list of user words is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// The frequency is not a number from 1 to [`MAX_FREQUENCY`].
    Frequency,
    /// The entry has more parts than a word and a frequency.
    Parts,
    /// The word has no Chinese character, or it has a character that jieba never joins into a word.
    Characters,
    /// The word has more than [`MAX_WORD_CHARS`] characters.
    Length,
}

impl fmt::Display for EntryError {
    /// Writes the error as an English sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frequency => write!(f, "A frequency is a number from 1 to {MAX_FREQUENCY}."),
            Self::Parts => write!(f, "An entry is a word, or a word and its frequency."),
            Self::Characters => write!(
                f,
                "A word must have a Chinese character. All other characters must be Chinese \
                 characters, ASCII letters, digits or + # & . _ % -."
            ),
            Self::Length => write!(f, "A word has at most {MAX_WORD_CHARS} characters."),
        }
    }
}

impl fmt::Display for UserWordError {
    /// Writes the error as an English sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "The list has more than {MAX_LIST} bytes."),
            Self::Entry { entry, error } => write!(f, "\"{entry}\": {error}"),
        }
    }
}

impl std::error::Error for UserWordError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let words = UserWords::parse(" 云计算, Ｔ恤 7 ,,卡拉OK 100,云计算 3\n").unwrap();
        let words: Vec<_> = words.iter().collect();
        assert_eq!(
            words,
            [("t恤", Some(7)), ("云计算", Some(3)), ("卡拉ok", Some(100))]
        );
        assert_eq!(UserWords::parse(" , "), Ok(UserWords::default()));
    }

    #[test]
    fn the_hash_is_that_of_the_list() {
        let hash = |list: &str| UserWords::parse(list).unwrap().hash();
        let lines = |lines: &str| crate::hash::feature_hash(lines.as_bytes());
        assert_eq!(
            hash(" 云计算, Ｔ恤 7 ,,卡拉OK 100,云计算 3\n"),
            lines("t恤 7\n云计算 3\n卡拉ok 100\n")
        );
        assert_eq!(hash("创新办,云计算"), hash("云计算, 创新办,"));
        assert_ne!(hash("云计算"), hash("云计算 1"));
        // Stored values.
        assert_eq!(hash(""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash("云计算 5,创新办"), lines("云计算 5\n创新办\n"));
    }

    #[test]
    fn bad_entries_are_named() {
        let error_of = |list: &str| match UserWords::parse(list) {
            Err(UserWordError::Entry { entry, error }) => (entry, error),
            other => panic!("{other:?}"),
        };
        let expect = |list: &str, entry: &str, expected| {
            assert_eq!(error_of(list), (entry.to_owned(), expected))
        };
        expect("中国, 北京 0", "北京 0", EntryError::Frequency);
        expect("北京 x", "北京 x", EntryError::Frequency);
        expect("北京 100000001", "北京 100000001", EntryError::Frequency);
        expect("北京 5 ns", "北京 5 ns", EntryError::Parts);
        expect("word", "word", EntryError::Characters);
        expect("中·国", "中·国", EntryError::Characters);
        expect("カラ中", "カラ中", EntryError::Characters);
        let long = "长".repeat(33);
        expect(&long, &long, EntryError::Length);
        assert!(UserWords::parse(&"长".repeat(32)).is_ok());
        assert_eq!(
            UserWords::parse(&" ".repeat(MAX_LIST + 1)),
            Err(UserWordError::TooLong)
        );
    }
}
