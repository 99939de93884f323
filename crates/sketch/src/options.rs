//! Options for turning a text into features, and their names in SQL.

pub use crate::named_option::{NamedOption, UnknownName};
pub use crate::tokens::kinds::{MAX_KEYWORDS, Tokens, TokensError};
pub use crate::weight::Weight;

/// Maximum number of tokens in a shingle.
pub const MAX_SHINGLE: usize = 100;

/// Options for turning a text into features.
///
/// ```
/// use neardup_sketch::options::{NamedOption, TextOptions, Tokens};
///
/// let characters = TextOptions {
///     tokens: Tokens::from_name(b"char").unwrap(),
///     shingle: 5,
///     ..TextOptions::SIMHASH
/// };
/// assert_eq!(characters.tokens, Tokens::Char);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextOptions {
    /// Kind of tokens.
    pub tokens: Tokens,
    /// Number of consecutive tokens in a feature, 1 to [`MAX_SHINGLE`].
    pub shingle: usize,
    /// Weight of a feature.
    pub weight: Weight,
    /// Spelling differences to ignore.
    pub normalize: Normalize,
    /// True if the text is an HTML page. Then only the visible text counts.
    pub html: bool,
    /// Number of keywords for [`Tokens::JiebaTfidf`], up to [`MAX_KEYWORDS`]. If 0, the number
    /// depends on the length of the text.
    pub keywords: usize,
}

impl TextOptions {
    /// Defaults of a simhash: pairs of words, weighted by the square root of their count.
    pub const SIMHASH: Self = Self {
        tokens: Tokens::Word,
        shingle: 2,
        weight: Weight::Sqrt,
        normalize: Normalize::DEFAULT,
        html: false,
        keywords: 0,
    };

    /// Defaults of MinHash and the Jaccard similarity: the set of triples of words.
    pub const SET: Self = Self {
        tokens: Tokens::Word,
        shingle: 3,
        weight: Weight::Set,
        normalize: Normalize::DEFAULT,
        html: false,
        keywords: 0,
    };

    /// Defaults of passages: hashes of eight consecutive words.
    pub const PASSAGES: Self = Self {
        shingle: 8,
        ..Self::SET
    };

    /// Returns the name of the tokens, with the number of keywords if given, as in
    /// `jieba_tfidf:50`.
    #[must_use]
    pub fn tokens_name(&self) -> String {
        let tokens = self.tokens.name();
        match self.keywords {
            0 => tokens.to_owned(),
            number => format!("{tokens}:{number}"),
        }
    }
}

impl Default for TextOptions {
    fn default() -> Self {
        Self::SIMHASH
    }
}

/// Spelling differences to ignore beyond the normal form ([`crate::normalize`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Normalize {
    /// Treatment of accents.
    pub accents: Accents,
    /// Treatment of decimal digits.
    pub digits: Digits,
}

impl Normalize {
    /// Ignores no differences beyond the normal form.
    pub const DEFAULT: Self = Self {
        accents: Accents::Keep,
        digits: Digits::Keep,
    };
}

/// Treatment of accents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accents {
    /// Accents are kept.
    #[default]
    Keep,
    /// Accents are removed: `café` becomes `cafe`.
    Remove,
}

/// Treatment of decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Digits {
    /// Digits are kept.
    #[default]
    Keep,
    /// Each digit becomes `0`: `2024` equals `1999`.
    Zero,
}

impl NamedOption for Accents {
    const PARAMETER: &str = "accents";
    const NAMES: &[(&str, Self)] = &[("keep", Self::Keep), ("remove", Self::Remove)];
}

impl NamedOption for Digits {
    const PARAMETER: &str = "digits";
    const NAMES: &[(&str, Self)] = &[("keep", Self::Keep), ("zero", Self::Zero)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_match() {
        fn check<T: NamedOption + std::fmt::Debug>() {
            for &(name, value) in T::NAMES {
                assert_eq!(T::from_name(name.as_bytes()), Ok(value));
                assert_eq!(value.name(), name);
            }
            assert!(T::from_name(b"").is_err());
        }
        check::<Tokens>();
        check::<Weight>();
        check::<Accents>();
        check::<Digits>();
    }

    #[test]
    fn unknown_names_list_the_known() {
        let error = Weight::from_name(b"SQRT").unwrap_err();
        assert_eq!(
            error.to_string(),
            "weight must be one of: tf, sqrt, log, set"
        );
    }
}
