//! Options for turning a text into features, and their names in SQL.

pub use crate::named_option::{NamedOption, UnknownName};
pub use crate::tokens::kinds::{MAX_KEYWORDS, Tokens, TokensError};
pub use crate::weight::Weight;

/// Maximum number of consecutive tokens in a feature ([`TextOptions::shingle`]). The SQL functions
/// reject a greater number.
pub const MAX_SHINGLE: usize = 100;

/// Options for turning a text into features, such as the arguments of the SQL functions.
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
    /// Kind of the tokens into which the text is divided.
    pub tokens: Tokens,
    /// Number of consecutive tokens in a feature, 1 to [`MAX_SHINGLE`].
    pub shingle: usize,
    /// Function from the number of occurrences of a feature to its weight.
    pub weight: Weight,
    /// Spelling differences to ignore beyond case, width and composition.
    pub normalize: Normalize,
    /// True if the text is an HTML page. Then only the visible text of the page is used.
    pub html: bool,
    /// Number of keywords that [`Tokens::JiebaTfidf`] takes from a text, up to [`MAX_KEYWORDS`]. If
    /// 0, the number depends on the length of the text.
    pub keywords: usize,
}

impl TextOptions {
    /// Defaults for a simhash: a feature is two consecutive words, weighted by the square root of
    /// its number of occurrences.
    pub const SIMHASH: Self = Self {
        tokens: Tokens::Word,
        shingle: 2,
        weight: Weight::Sqrt,
        normalize: Normalize::DEFAULT,
        html: false,
        keywords: 0,
    };

    /// Defaults for MinHash and the Jaccard similarity: a feature is three consecutive words, and
    /// all features have the same weight.
    pub const SET: Self = Self {
        tokens: Tokens::Word,
        shingle: 3,
        weight: Weight::Set,
        normalize: Normalize::DEFAULT,
        html: false,
        keywords: 0,
    };

    /// Defaults for passages: a feature is eight consecutive words, and all features have the same
    /// weight.
    pub const PASSAGES: Self = Self {
        shingle: 8,
        ..Self::SET
    };

    /// Returns the SQL name of the kind of tokens. If `keywords` is not 0, the name ends with this
    /// number, as in `jieba_tfidf:50`.
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

/// Spelling differences to ignore in addition to those that the normal form removes
/// ([`crate::normalize`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Normalize {
    /// Whether differences in accents are ignored.
    pub accents: Accents,
    /// Whether differences in decimal digits are ignored.
    pub digits: Digits,
}

impl Normalize {
    /// Keeps accents and digits, so only the differences that the normal form removes are ignored.
    pub const DEFAULT: Self = Self {
        accents: Accents::Keep,
        digits: Digits::Keep,
    };
}

/// Whether accents are kept or removed before a text is divided into tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accents {
    /// Accents are kept.
    #[default]
    Keep,
    /// Accents are removed: `café` becomes `cafe`.
    Remove,
}

/// Whether decimal digits are kept or replaced by `0` before a text is divided into tokens.
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
