//! Passages: runs of tokens that texts have in common.
//!
//! [`crate::Sketcher::passages`] chooses hashes of a text by winnowing (Schleimer, Wilkerson,
//! Aiken, "Winnowing: Local Algorithms for Document Fingerprinting", SIGMOD 2003). Two texts that
//! share a run of [`PassageLength`] tokens then share a hash. [`SharedPassages`] finds the runs
//! that two texts share, with their positions.
//!
//! # Definition of the hashes
//!
//! A text is split into tokens. Each run of `shingle` consecutive tokens is a feature with a hash
//! ([`crate::hash::feature_hash`]), as in all functions of a text. A window is `length - shingle +
//! 1` consecutive hashes, which cover `length` consecutive tokens. The set of hashes of the text
//! contains the minimum of each window, compared as unsigned numbers. If a text has fewer hashes
//! than a window, the set contains the minimum of all its hashes. So a text of fewer tokens than a
//! shingle has the hash of all its tokens, and a text without tokens has the empty set.
//!
//! # Guarantee
//!
//! A run of `length` tokens that two texts share is a window of equal hashes in both texts, so the
//! sets of both texts contain the minimum of this window. Winnowing also has rules for ties (and
//! robust winnowing), which choose among equal hashes. A set of hashes does not need such rules.
//! With w hashes in a window, winnowing chooses a share of 2 / (w + 1) of random hashes. Any method
//! with this guarantee chooses at least 1 / w.
//!
//! The minimum of a longer window is the minimum of one of the windows in it. So the set of a
//! greater length is a subset of the set of a smaller length.
//!
//! If the features of a set of common features are left out, the set of hashes contains the minimum
//! of the other hashes in each window. Two texts that share a run of `length` tokens then share a
//! hash if at least one feature of the run is not left out.

mod minima;
mod runs;
mod shared;
mod suffix_automaton;
mod text;
mod token_list;
mod token_sequence;

use std::fmt;

use crate::options::TextOptions;
pub(crate) use minima::WindowMinima;
pub use shared::{SharedPassage, SharedPassages};
pub use token_sequence::TokenSequence;

/// Maximum [`PassageLength`], in tokens. [`PassageLength::new`] rejects a greater length.
pub const MAX_LENGTH: usize = 10_000;

/// Minimum length of a passage in tokens, from 1 to [`MAX_LENGTH`]. All passages of at least this
/// length that two texts share are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassageLength(usize);

impl PassageLength {
    /// Checks `length`, a number of tokens, for texts whose tokens and shingles are made with
    /// `options`.
    ///
    /// # Errors
    ///
    /// If the length is outside 1 to [`MAX_LENGTH`], or is less than `options.shingle`, or if the
    /// tokens are keywords, which are not in text order.
    pub fn new(length: i64, options: &TextOptions) -> Result<Self, PassageError> {
        if options.tokens.are_keywords() {
            return Err(PassageError::Unordered);
        }
        let length = usize::try_from(length)
            .ok()
            .filter(|length| (1..=MAX_LENGTH).contains(length))
            .ok_or(PassageError::OutOfRange)?;
        if length < options.shingle {
            return Err(PassageError::ShorterThanShingle);
        }
        Ok(Self(length))
    }

    /// Returns the length in tokens.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

/// Error of [`PassageLength::new`]: passages of this length are not defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassageError {
    /// The passage length is not from 1 to [`MAX_LENGTH`].
    OutOfRange,
    /// The passage length is less than the number of tokens of a shingle.
    ShorterThanShingle,
    /// The tokens are keywords, which are not in text order.
    Unordered,
}

impl fmt::Display for PassageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange => write!(f, "length must be from 1 to {MAX_LENGTH}"),
            Self::ShorterThanShingle => f.write_str("length must be at least shingle"),
            Self::Unordered => f.write_str("tokens must be in the order of the text"),
        }
    }
}

impl std::error::Error for PassageError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Tokens;

    #[test]
    fn lengths_are_checked() {
        let words = TextOptions::PASSAGES;
        assert_eq!(
            PassageLength::new(24, &words).map(PassageLength::get),
            Ok(24)
        );
        assert_eq!(PassageLength::new(8, &words).map(PassageLength::get), Ok(8));
        let error = |length, options: &TextOptions| PassageLength::new(length, options).err();
        assert_eq!(error(7, &words), Some(PassageError::ShorterThanShingle));
        for length in [i64::MIN, -1, 0, 10_001, i64::MAX] {
            assert_eq!(error(length, &words), Some(PassageError::OutOfRange));
        }
        let keywords = TextOptions {
            tokens: Tokens::JiebaTfidf,
            ..words
        };
        assert_eq!(error(24, &keywords), Some(PassageError::Unordered));
    }
}
