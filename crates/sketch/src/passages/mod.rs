//! Passages: runs of tokens that texts have in common.
//!
//! [`crate::Sketcher::passages`] chooses hashes of a text by winnowing (Schleimer, Wilkerson,
//! Aiken, "Winnowing: Local Algorithms for Document Fingerprinting", SIGMOD 2003), so that two
//! texts that share a run of [`PassageLength`] tokens share a hash. [`SharedPassages`] finds the
//! runs that two texts share, with their places.
//!
//! # Definition of the hashes
//!
//! A text is cut into tokens, and each `shingle` consecutive ones have a hash: the features and
//! their hashes ([`crate::hash::feature_hash`]) that all functions of a text use. A window is
//! `length - shingle + 1` consecutive hashes, which `length` consecutive tokens have. The set has
//! the least hash of each window, as an unsigned number. A text with fewer hashes than a window has
//! the least of all; so one of fewer tokens than a shingle has the hash of all its tokens, and one
//! without tokens the empty set.
//!
//! # Guarantee
//!
//! A run of `length` tokens that two texts share is a window of equal hashes in both, and its least
//! hash is in both sets. Which of several equal hashes is meant makes no difference to a set of
//! hashes, so the rules for ties, and robust winnowing, are not needed. Of random hashes a share of
//! 2 / (w + 1) is chosen, w being the number of hashes in a window; a share of 1 / w at least is
//! needed for the guarantee.
//!
//! A longer window's least hash is that of one of the windows in it, so the set of a greater length
//! is a part of that of a smaller one.
//!
//! Where hashes are left out (a set of common features), the least of the others counts. Then a run
//! that two texts share gives a hash to both if one of its hashes is not left out.

mod minima;
mod runs;
mod shared;
mod suffix_automaton;
mod text;
mod token_list;

use std::fmt;

use crate::options::TextOptions;
pub(crate) use minima::WindowMinima;
pub use shared::{SharedPassage, SharedPassages};

/// Greatest [`PassageLength`].
pub const MAX_LENGTH: usize = 10_000;

/// Number of tokens of the shortest passages that are found with certainty, 1 to [`MAX_LENGTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassageLength(usize);

impl PassageLength {
    /// Checks a length for texts whose tokens and shingles are made as `options` say.
    ///
    /// # Errors
    ///
    /// If it is out of range or less than a shingle, or if the tokens are in no order.
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

    /// The number of tokens.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

/// Error: passages of a length are not defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassageError {
    /// The length is not from 1 to [`MAX_LENGTH`].
    OutOfRange,
    /// The length is less than the number of tokens of a shingle.
    ShorterThanShingle,
    /// The tokens are keywords, of which none follows another.
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
