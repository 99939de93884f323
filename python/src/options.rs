//! The options that functions of a text have as named parameters, and their errors.
use neardup_sketch::TextOptions;
use neardup_sketch::minhash::{MAX_HASHES, MIN_HASHES, Scheme};
use neardup_sketch::options::{
    MAX_SHINGLE, NamedOption, Normalize, Tokens, TokensError, UnknownName, Weight,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Options as they are given.
pub struct Given<'a> {
    /// Name of the tokens.
    pub tokens: &'a str,
    /// Tokens in a feature.
    pub shingle: i64,
    /// Name of the weight, `None` for a set.
    pub weight: Option<&'a str>,
    /// True for an HTML page.
    pub html: bool,
    /// Name of the treatment of accents.
    pub accents: &'a str,
    /// Name of the treatment of digits.
    pub digits: &'a str,
}

impl Given<'_> {
    /// The options.
    ///
    /// # Errors
    ///
    /// For an unknown name, or a number out of range.
    pub fn parse(&self) -> PyResult<TextOptions> {
        let (tokens, keywords) = tokens_of(self.tokens)?;
        let shingle = usize::try_from(self.shingle).ok();
        let shingle = shingle.filter(|shingle| (1..=MAX_SHINGLE).contains(shingle));
        let out_of_range = || {
            PyValueError::new_err(format!(
                "shingle {} is out of range: it is the number of consecutive tokens in a feature, \
                 from 1 to {MAX_SHINGLE}",
                self.shingle
            ))
        };
        Ok(TextOptions {
            tokens,
            shingle: shingle.ok_or_else(out_of_range)?,
            weight: self.weight.map_or(Ok(Weight::Set), named)?,
            normalize: Normalize {
                accents: named(self.accents)?,
                digits: named(self.digits)?,
            },
            html: self.html,
            keywords,
        })
    }
}

/// The option of a name.
///
/// # Errors
///
/// If there is none.
pub fn named<T: NamedOption>(name: &str) -> PyResult<T> {
    T::from_name(name.as_bytes()).map_err(|error| unknown(&error, name))
}

fn unknown(error: &UnknownName, name: &str) -> PyErr {
    PyValueError::new_err(format!(
        "unknown value for {}: {name:?}; known are: {}",
        error.parameter,
        error.known.join(", ")
    ))
}

/// Reads the name of tokens; the number of keywords is 0 if none is given.
fn tokens_of(name: &str) -> PyResult<(Tokens, usize)> {
    Tokens::parse(name.as_bytes()).map_err(|error| match error {
        TokensError::UnknownName(error) => unknown(&error, name),
        error => PyValueError::new_err(format!("unknown value for tokens: {name:?}; {error}")),
    })
}

/// Parameters of a hash family, checked.
#[derive(Clone, Copy)]
pub struct Family {
    /// Scheme of the functions.
    pub scheme: Scheme,
    /// Number of functions.
    pub hashes: usize,
    /// Seed.
    pub seed: u64,
}

impl Family {
    /// The family of the parameters `hashes`, `seed` and `scheme`.
    ///
    /// # Errors
    ///
    /// For an unknown name, or a number out of range.
    pub fn parse(hashes: i64, seed: i64, scheme: &str) -> PyResult<Self> {
        let scheme: Scheme = named(scheme)?;
        let known = |hashes: &usize| (MIN_HASHES..=MAX_HASHES).contains(hashes);
        let Some(hashes) = usize::try_from(hashes).ok().filter(known) else {
            return Err(PyValueError::new_err(format!(
                "hashes {hashes} is out of range: it is the number of values in a signature, from \
                 {MIN_HASHES} to {MAX_HASHES}"
            )));
        };
        if scheme != Scheme::Neardup1 && u32::try_from(seed).is_err() {
            return Err(PyValueError::new_err(format!(
                "seed {seed} is out of range: seeds of scheme {} are from 0 to {}",
                scheme.name(),
                u32::MAX
            )));
        }
        Ok(Self {
            scheme,
            hashes,
            seed: seed as u64,
        })
    }
}
