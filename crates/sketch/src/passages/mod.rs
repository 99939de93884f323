//! Passages: runs of tokens that texts have in common.
//!
//! [`crate::Sketcher::passages`] chooses hashes of a text by winnowing (Schleimer, Wilkerson,
//! Aiken, "Winnowing: Local Algorithms for Document Fingerprinting", SIGMOD 2003), so that two
//! texts that share a run of [`PassageLength`] tokens share a hash. [`SharedPassages`] finds the
//! runs that two texts share, with their positions.
//!
//! # Definition of the hashes
//!
//! A text is cut into tokens, and each `shingle` consecutive tokens have a hash. These are the
//! features and hashes ([`crate::hash::feature_hash`]) that all functions of a text use. A window
//! is `length - shingle + 1` consecutive hashes, which cover `length` consecutive tokens. The set
//! contains the minimum of each window, as an unsigned number. If a text has fewer hashes than a
//! window, the set contains the minimum of all hashes. So a text of fewer tokens than a shingle
//! has the hash of all its tokens, and a text without tokens has the empty set.
//!
//! # Guarantee
//!
//! A run of `length` tokens that two texts share is a window of equal hashes in both, so both sets
//! contain its minimum. Winnowing also has rules for ties (and robust winnowing), which choose
//! among equal hashes. A set of hashes does not need them. With w hashes in a window, a share of 2
//! / (w + 1) of random hashes is chosen; the guarantee needs a share of at least 1 / w.
//!
//! The minimum of a longer window is the minimum of one of the windows in it. So the set of a
//! greater length is a subset of the set of a smaller length.
//!
//! If hashes are left out (a set of common features), the minimum of the other hashes counts. Then
//! a run that two texts share gives both a hash if one of its hashes is not left out.

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

/// Minimum number of tokens of the passages found with certainty, 1 to [`MAX_LENGTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassageLength(usize);

impl PassageLength {
    /// Checks a length for texts whose tokens and shingles are made with `options`.
    ///
    /// # Errors
    ///
    /// If the length is out of range or below a shingle, or if tokens are not in text order.
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
