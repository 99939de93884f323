//! Options for turning a text into features, and their names in SQL.

use std::fmt;

/// Longest shingle.
pub const MAX_SHINGLE: usize = 100;

/// Most keywords.
pub const MAX_KEYWORDS: usize = 10_000;

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
    /// Consecutive tokens in a feature, 1 to [`MAX_SHINGLE`].
    pub shingle: usize,
    /// Weight of a feature.
    pub weight: Weight,
    /// Differences of spelling to ignore.
    pub normalize: Normalize,
    /// True if the text is an HTML page, of which only the visible text counts.
    pub html: bool,
    /// Number of keywords for [`Tokens::JiebaTfidf`], up to [`MAX_KEYWORDS`]; 0 for a number that
    /// depends on the length of the text.
    pub keywords: usize,
}

impl TextOptions {
    /// Defaults of a simhash: pairs of words, weighted by the square root of their number.
    pub const SIMHASH: Self = Self {
        tokens: Tokens::Word,
        shingle: 2,
        weight: Weight::Sqrt,
        normalize: Normalize::DEFAULT,
        html: false,
        keywords: 0,
    };

    /// Defaults of MinHash and the Jaccard similarity: the set of three consecutive words.
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
}

impl Default for TextOptions {
    fn default() -> Self {
        Self::SIMHASH
    }
}

/// Kind of tokens ([`crate::tokens`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Words by UAX 29.
    Word,
    /// Characters.
    Char,
    /// Lines.
    Line,
    /// Chinese words by jieba.
    Jieba,
    /// Chinese words by jieba, and the shorter words within each.
    JiebaSearch,
    /// Keywords: the words by jieba of the highest TF-IDF, each a feature of its own without
    /// shingles. Weights are multiplied by the inverse document frequency.
    JiebaTfidf,
}

impl Tokens {
    /// Returns true for tokens by jieba, whose dictionary has to be loaded.
    #[must_use]
    pub const fn need_dictionary(self) -> bool {
        matches!(self, Self::Jieba | Self::JiebaSearch | Self::JiebaTfidf)
    }
}

/// Weight of a feature as a function of its number of occurrences ([`crate::weight`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// The number of occurrences.
    Tf,
    /// Its square root.
    Sqrt,
    /// 1 and its natural logarithm.
    Log,
    /// 1.
    Set,
}

/// Differences of spelling to ignore beyond the normal form ([`crate::normalize`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Normalize {
    /// Accents.
    pub accents: Accents,
    /// Digits.
    pub digits: Digits,
}

impl Normalize {
    /// None.
    pub const DEFAULT: Self = Self {
        accents: Accents::Keep,
        digits: Digits::Keep,
    };
}

/// Treatment of accents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accents {
    /// They count.
    #[default]
    Keep,
    /// They are removed: `café` is `cafe`.
    Remove,
}

/// Treatment of decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Digits {
    /// They count.
    #[default]
    Keep,
    /// Each becomes `0`: `2024` is `1999`.
    Zero,
}

/// Option whose values have names in SQL.
pub trait NamedOption: Copy + PartialEq + 'static {
    /// Name of the parameter.
    const PARAMETER: &str;
    /// Names of all values.
    const NAMES: &[(&str, Self)];

    /// The value of this name.
    ///
    /// # Errors
    ///
    /// If there is none.
    fn from_name(name: &[u8]) -> Result<Self, UnknownName> {
        Self::NAMES
            .iter()
            .find(|(known, _)| known.as_bytes() == name)
            .map(|(_, value)| *value)
            .ok_or_else(|| UnknownName {
                parameter: Self::PARAMETER,
                known: Self::NAMES.iter().map(|(name, _)| *name).collect(),
            })
    }

    /// The name of this value.
    fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(name, _)| name)
    }
}

/// Error: a parameter does not take a value of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Names of its values.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} must be one of: {}",
            self.parameter,
            self.known.join(", ")
        )
    }
}

impl std::error::Error for UnknownName {}

impl NamedOption for Tokens {
    const PARAMETER: &str = "tokens";
    const NAMES: &[(&str, Self)] = &[
        ("word", Self::Word),
        ("char", Self::Char),
        ("line", Self::Line),
        ("jieba", Self::Jieba),
        ("jieba_search", Self::JiebaSearch),
        ("jieba_tfidf", Self::JiebaTfidf),
    ];
}

impl NamedOption for Weight {
    const PARAMETER: &str = "weight";
    const NAMES: &[(&str, Self)] = &[
        ("tf", Self::Tf),
        ("sqrt", Self::Sqrt),
        ("log", Self::Log),
        ("set", Self::Set),
    ];
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
