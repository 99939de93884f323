//! Options that functions of a text have as named parameters, and their errors.
use neardup_blocktree::bands::MAX_BANDS;
use neardup_sketch::TextOptions;
use neardup_sketch::minhash::{MAX_HASHES, MIN_HASHES, Scheme};
use neardup_sketch::options::{
    MAX_SHINGLE, NamedOption, Normalize, Tokens, TokensError, UnknownName, Weight,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Options as passed by the caller.
pub struct Given<'a> {
    /// Name of the tokens.
    pub tokens: &'a str,
    /// Tokens in a feature, by [`shingle`].
    pub shingle: usize,
    /// Name of the weight. `None` for a set.
    pub weight: Option<&'a str>,
    /// True for an HTML page.
    pub html: bool,
    /// Name of the treatment of accents.
    pub accents: &'a str,
    /// Name of the treatment of digits.
    pub digits: &'a str,
}

impl Given<'_> {
    /// Parses the options.
    ///
    /// # Errors
    ///
    /// For an unknown name.
    pub fn parse(&self) -> PyResult<TextOptions> {
        let (tokens, keywords) = tokens_of(self.tokens)?;
        Ok(TextOptions {
            tokens,
            shingle: self.shingle,
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

/// Returns the option with this name.
///
/// # Errors
///
/// If no option has this name.
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

/// Reads the name of tokens, and the number of keywords, which is 0 by default.
fn tokens_of(name: &str) -> PyResult<(Tokens, usize)> {
    Tokens::parse(name.as_bytes()).map_err(|error| match error {
        TokensError::UnknownName(error) => unknown(&error, name),
        error => PyValueError::new_err(format!("unknown value for tokens: {name:?}; {error}")),
    })
}

/// Checked parameters of a hash family.
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
    /// Reads a family from the parameters `hashes`, `seed` and `scheme`.
    ///
    /// # Errors
    ///
    /// If a name is unknown, or the scheme does not allow the seed.
    pub fn parse(hashes: usize, seed: i64, scheme: &str) -> PyResult<Self> {
        let scheme: Scheme = named(scheme)?;
        if scheme != Scheme::Neardup1 && u32::try_from(seed).is_err() {
            return Err(out_of_range(
                "seed",
                &seed,
                &format!(
                    "seeds of scheme {} are from 0 to {}",
                    scheme.name(),
                    u32::MAX
                ),
            ));
        }
        Ok(Self {
            scheme,
            hashes,
            seed: seed as u64,
        })
    }
}

/// Reads the parameter `shingle`.
pub fn shingle(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let meaning = "the number of consecutive tokens in a feature";
    number("shingle", value, 1..=MAX_SHINGLE, meaning)
}

/// Reads the parameter `hashes`.
pub fn hashes(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let meaning = "the number of values in a signature";
    number("hashes", value, MIN_HASHES..=MAX_HASHES, meaning)
}

/// Reads the parameter `seed`.
pub fn seed(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|error: PyErr| {
        let bounds = "it is a number of 64 bits, from -2**63 to 2**63 - 1";
        or_out_of_range(error, "seed", value, bounds)
    })
}

/// Reads the parameter `n` of sentences.
pub fn sentences(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let range = 1..=neardup_sketch::sentences::MAX_SENTENCES;
    number("n", value, range, "a number of sentences")
}

/// Reads the parameter `bands`.
pub fn bands(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    number("bands", value, 1..=MAX_BANDS, "the number of keys")
}

/// Reads the parameter `rows`.
pub fn rows(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let meaning = "the number of values or bits in a key";
    number("rows", value, 1..=MAX_ROWS, meaning)
}

/// Maximum number of rows of any value: the bits of the widest fingerprint.
const MAX_ROWS: usize = 256;

/// Reads the parameter `threads`.
pub fn threads(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    number(
        "threads",
        value,
        1..=MAX_THREADS,
        "the number of threads that compute",
    )
}

/// Maximum number of threads of one call.
const MAX_THREADS: usize = 1024;

/// Reads the parameter `similarity`, whose range the caller checks.
pub fn similarity(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|error: PyErr| {
        let bounds = "it is from 0 to 1; write 80 % as 0.8";
        or_out_of_range(error, "similarity", value, bounds)
    })
}

/// Reads the bits of a signed number.
pub fn bigint(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|error: PyErr| {
        let bounds = "it is from -2**63 to 2**63 - 1; for an unsigned number there is Fingerprint";
        or_out_of_range(error, "the bigint", value, bounds)
    })
}

/// Reads an integer. Any number outside the range is a ValueError.
pub fn number(
    parameter: &str,
    value: &Bound<'_, PyAny>,
    range: RangeInclusive<usize>,
    meaning: &str,
) -> PyResult<usize> {
    let bounds = format!("it is {meaning}, from {} to {}", range.start(), range.end());
    let given = (value.extract::<i64>())
        .map_err(|error| or_out_of_range(error, parameter, value, &bounds))?;
    let number = usize::try_from(given)
        .ok()
        .filter(|number| range.contains(number));
    number.ok_or_else(|| out_of_range(parameter, &given, &bounds))
}

/// Replaces an OverflowError by an error for a number out of range. Keeps other errors.
pub fn or_out_of_range(
    error: PyErr,
    parameter: &str,
    value: &Bound<'_, PyAny>,
    bounds: &str,
) -> PyErr {
    if !error.is_instance_of::<PyOverflowError>(value.py()) {
        return error;
    }
    // Python does not print integers with more than a few thousand digits.
    match value.str() {
        Ok(shown) if shown.len().is_ok_and(|digits| digits <= 70) => {
            out_of_range(parameter, &shown, bounds)
        }
        _ => PyValueError::new_err(format!("{parameter} is out of range: {bounds}")),
    }
}

fn out_of_range(parameter: &str, value: &dyn Display, bounds: &str) -> PyErr {
    PyValueError::new_err(format!("{parameter} {value} is out of range: {bounds}"))
}

/// Reads the items of any iterable except a text. Returns `None` for None.
pub fn items<'py, T: FromPyObjectOwned<'py>>(
    value: &Bound<'py, PyAny>,
    parameter: &str,
    of: &str,
) -> PyResult<Option<Vec<T>>> {
    if value.is_none() {
        return Ok(None);
    }
    let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    let wrong = |found: &str| {
        PyTypeError::new_err(format!(
            "{parameter} must be an iterable of {of}, not {found}"
        ))
    };
    let iterator = match is_text {
        false => value.try_iter().ok(),
        true => None,
    };
    let Some(iterator) = iterator else {
        return Err(wrong(&value.get_type().name()?.to_cow()?));
    };
    let items = iterator.map(|item| {
        let item = item?;
        item.extract::<T>().map_err(|error| {
            let error: PyErr = error.into();
            match (
                error.is_instance_of::<PyTypeError>(item.py()),
                item.get_type().name(),
            ) {
                (true, Ok(name)) => wrong(&format!("of {name}")),
                _ => error,
            }
        })
    });
    items.collect::<PyResult<Vec<T>>>().map(Some)
}
