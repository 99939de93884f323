//! What can be chosen on the way from a text to its features, and by which names.

use std::fmt;

/// Longest shingle.
pub const MAX_SHINGLE: usize = 100;

/// Most keywords.
pub const MAX_KEYWORDS: usize = 10_000;

/// How a text becomes features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextOptions {
    /// What the text is cut into.
    pub tokens: Tokens,
    /// Consecutive tokens in a feature, 1 to [`MAX_SHINGLE`].
    pub shingle: usize,
    /// What a feature weighs.
    pub weight: Weight,
    /// What differences of spelling do not count.
    pub normalize: Normalize,
    /// Whether the text is an HTML page, of which only the visible text counts.
    pub html: bool,
    /// Number of keywords, up to [`MAX_KEYWORDS`], where [`Tokens::JiebaTfidf`] chooses some; 0 for as
    /// many as suit the length of the text.
    pub keywords: usize,
}

impl TextOptions {
    /// What a simhash is made of by default: pairs of words, weighted by the square root of their
    /// number.
    pub const SIMHASH: Self = Self {
        tokens: Tokens::Word,
        shingle: 2,
        weight: Weight::Sqrt,
        normalize: Normalize::DEFAULT,
        html: false,
        keywords: 0,
    };

    /// What sets of features are made of by default, for MinHash and the Jaccard similarity: three
    /// words in a row.
    pub const SET: Self = Self {
        tokens: Tokens::Word,
        shingle: 3,
        weight: Weight::Set,
        normalize: Normalize::DEFAULT,
        html: false,
        keywords: 0,
    };
}

impl Default for TextOptions {
    fn default() -> Self {
        Self::SIMHASH
    }
}

/// What a text is cut into ([`crate::tokens`]).
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
    /// The same, and within each the shorter words that it is made of.
    JiebaSearch,
    /// Of the words by jieba those that tell most about the text, which stand alone: there are no
    /// shingles of them. Weights are multiplied by the words' inverse document frequency.
    JiebaTfidf,
}

impl Tokens {
    /// Whether they are found by jieba, whose dictionary has to be loaded.
    #[must_use]
    pub const fn need_dictionary(self) -> bool {
        matches!(self, Self::Jieba | Self::JiebaSearch | Self::JiebaTfidf)
    }
}

/// What a feature weighs, by the number of its occurrences ([`crate::weight`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// The number itself.
    Tf,
    /// Its square root.
    Sqrt,
    /// 1 and its natural logarithm.
    Log,
    /// 1.
    Set,
}

/// What is made alike beyond the normal form that every text gets ([`crate::normalize`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Normalize {
    /// Accents.
    pub accents: Accents,
    /// Digits.
    pub digits: Digits,
}

impl Normalize {
    /// Nothing.
    pub const DEFAULT: Self = Self {
        accents: Accents::Keep,
        digits: Digits::Keep,
    };
}

/// What happens to accents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accents {
    /// They count.
    #[default]
    Keep,
    /// They go: `café` is `cafe`.
    Remove,
}

/// What happens to decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Digits {
    /// They count.
    #[default]
    Keep,
    /// Each becomes `0`: `2024` is `1999`.
    Zero,
}

/// A choice that is made by name.
pub trait Choice: Copy + PartialEq + 'static {
    /// What is chosen, as the parameter is called.
    const PARAMETER: &str;
    /// All that can be chosen.
    const NAMES: &[(&str, Self)];

    /// The choice of this name.
    ///
    /// # Errors
    ///
    /// If there is none.
    fn named(name: &[u8]) -> Result<Self, UnknownName> {
        Self::NAMES
            .iter()
            .find(|(known, _)| known.as_bytes() == name)
            .map(|(_, choice)| *choice)
            .ok_or_else(|| UnknownName {
                parameter: Self::PARAMETER,
                known: Self::NAMES.iter().map(|(name, _)| *name).collect(),
            })
    }

    /// The name of this choice.
    fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, choice)| *choice == self)
            .map_or("", |(name, _)| name)
    }
}

/// A name that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The parameter that it was given for.
    pub parameter: &'static str,
    /// The names that it takes.
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

impl Choice for Tokens {
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

impl Choice for Weight {
    const PARAMETER: &str = "weight";
    const NAMES: &[(&str, Self)] = &[
        ("tf", Self::Tf),
        ("sqrt", Self::Sqrt),
        ("log", Self::Log),
        ("set", Self::Set),
    ];
}

impl Choice for Accents {
    const PARAMETER: &str = "accents";
    const NAMES: &[(&str, Self)] = &[("keep", Self::Keep), ("remove", Self::Remove)];
}

impl Choice for Digits {
    const PARAMETER: &str = "digits";
    const NAMES: &[(&str, Self)] = &[("keep", Self::Keep), ("zero", Self::Zero)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_choices_match() {
        fn check<T: Choice + std::fmt::Debug>() {
            for &(name, choice) in T::NAMES {
                assert_eq!(T::named(name.as_bytes()), Ok(choice));
                assert_eq!(choice.name(), name);
            }
            assert!(T::named(b"").is_err());
        }
        check::<Tokens>();
        check::<Weight>();
        check::<Accents>();
        check::<Digits>();
    }

    #[test]
    fn unknown_names_list_the_known() {
        let error = Weight::named(b"SQRT").unwrap_err();
        assert_eq!(
            error.to_string(),
            "weight must be one of: tf, sqrt, log, set"
        );
    }
}
