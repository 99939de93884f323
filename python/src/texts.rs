//! Functions of a text: fingerprints, signatures, exact similarities, and keys.
use neardup_sketch::tokens::jieba::{Dictionary, UserWords};
use neardup_sketch::{Sketcher, TextOptions};
use neardup_sketch::{html, sentences};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::compute::{run, with_family};
use crate::fingerprints::{Fingerprint, Fingerprint128};
use crate::options::{Family, Given, named};
use crate::signature::MinHashSignature;

/// Runs `compute` with a sketcher of these options over texts of `bytes` bytes.
fn sketch<R: Send>(
    py: Python<'_>,
    options: TextOptions,
    bytes: usize,
    compute: impl FnOnce(&mut Sketcher, &mut dyn FnMut()) -> R + Send,
) -> PyResult<R> {
    // The first text in Chinese loads the dictionary.
    let bytes = if options.tokens.need_dictionary() {
        usize::MAX
    } else {
        bytes
    };
    run(py, bytes, |check| {
        Sketcher::with_thread_local(options, |sketcher| compute(sketcher, check))
    })
}

macro_rules! simhashes {
    ($($(#[doc = $doc:literal])* $name:ident => $method:ident -> $class:ident;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// Parameters: `tokens`, 'word', 'char', 'line', 'jieba', 'jieba_search' or 'jieba_tfidf';
        /// `shingle`, tokens in a feature, 1 to 100; `weight`, of a feature by its number of
        /// occurrences, 'tf', 'sqrt', 'log' or 'set'; `html`, True for an HTML page; `accents`,
        /// 'keep' or 'remove'; `digits`, 'keep' or 'zero'.
        #[pyfunction]
        #[pyo3(signature = (
            body, tokens = "word", shingle = 2, weight = "sqrt", html = false, accents = "keep",
            digits = "keep"
        ))]
        #[expect(clippy::too_many_arguments, reason = "as in SQL")]
        pub fn $name(
            py: Python<'_>, body: PyBackedStr, tokens: &str, shingle: i64, weight: &str,
            html: bool, accents: &str, digits: &str,
        ) -> PyResult<Option<$class>> {
            let weight = Some(weight);
            let options = Given { tokens, shingle, weight, html, accents, digits }.parse()?;
            let found = sketch(py, options, body.len(), |sketcher, check| {
                sketcher.$method(&body, check)
            })?;
            Ok(found.map($class::from))
        }
    )*};
}

simhashes! {
    /// The fingerprint of a text: similar texts have fingerprints that differ in few bits. None if
    /// the text has no feature.
    simhash => simhash64 -> Fingerprint;
    /// The 128-bit fingerprint of a text: as simhash, with less chance in the distances.
    simhash128 => simhash128 -> Fingerprint128;
}

macro_rules! minhashes {
    ($($(#[doc = $doc:literal])* $name:ident -> $class:ident;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// The parameters are those of simhash, without a weight.
        #[pyfunction]
        #[pyo3(signature = (
            body, tokens = "word", shingle = 3, html = false, accents = "keep", digits = "keep"
        ))]
        pub fn $name(
            py: Python<'_>, body: PyBackedStr, tokens: &str, shingle: i64, html: bool,
            accents: &str, digits: &str,
        ) -> PyResult<Option<$class>> {
            let weight = None;
            let options = Given { tokens, shingle, weight, html, accents, digits }.parse()?;
            let found = sketch(py, options, body.len(), |sketcher, check| {
                sketcher.$name(&body, check)
            })?;
            Ok(found.map($class::from))
        }
    )*};
}

minhashes! {
    /// The fingerprint of a text's set of features, whose distance estimates the Jaccard
    /// similarity J: 32 * (1 - J) bits are expected to differ. None if the text has no feature.
    minhash64 -> Fingerprint;
    /// The 128-bit fingerprint of a text's set of features: 64 * (1 - J) bits are expected to
    /// differ. None if the text has no feature.
    minhash128 -> Fingerprint128;
}

/// The MinHash signature of a text's set of features; None if it has none.
///
/// The parameters are those of simhash, without a weight; `hashes`, the number of values, 16 to
/// 1024; `seed`; `scheme`, 'neardup1', 'datasketch1' or 'datasketch2'.
#[pyfunction]
#[pyo3(signature = (
    body, tokens = "word", shingle = 3, html = false, accents = "keep", digits = "keep",
    hashes = 128, seed = 0, scheme = "neardup1"
))]
#[expect(clippy::too_many_arguments, reason = "as in SQL")]
pub fn minhash(
    py: Python<'_>,
    body: PyBackedStr,
    tokens: &str,
    shingle: i64,
    html: bool,
    accents: &str,
    digits: &str,
    hashes: i64,
    seed: i64,
    scheme: &str,
) -> PyResult<Option<MinHashSignature>> {
    let weight = None;
    let options = Given {
        tokens,
        shingle,
        weight,
        html,
        accents,
        digits,
    }
    .parse()?;
    let family = Family::parse(hashes, seed, scheme)?;
    let values = sketch(py, options, body.len(), |sketcher, check| {
        with_family(family, |family| sketcher.signature(&body, family, check))
    })?;
    Ok(values.map(|values| MinHashSignature::of_family(family, values)))
}

macro_rules! similarities {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// The parameters are those of simhash, without a weight.
        #[pyfunction]
        #[pyo3(signature = (
            a, b, tokens = "word", shingle = 3, html = false, accents = "keep", digits = "keep"
        ))]
        #[expect(clippy::too_many_arguments, reason = "as in SQL")]
        pub fn $name(
            py: Python<'_>, a: PyBackedStr, b: PyBackedStr, tokens: &str, shingle: i64,
            html: bool, accents: &str, digits: &str,
        ) -> PyResult<Option<f64>> {
            let weight = None;
            let options = Given { tokens, shingle, weight, html, accents, digits }.parse()?;
            sketch(py, options, a.len() + b.len(), |sketcher, check| {
                sketcher.$name(&a, &b, check)
            })
        }
    )*};
}

similarities! {
    /// Exact Jaccard similarity of two texts' sets of features, 0 to 1; None if neither has any.
    jaccard_similarity;
    /// Exact share of the first text's features that the second has too, 0 to 1; None if the first
    /// has none.
    containment;
}

/// The text of an HTML page as a reader sees it: without scripts, styles, markup and what is
/// hidden.
#[pyfunction]
pub fn html_text(py: Python<'_>, html: PyBackedStr) -> PyResult<String> {
    run(py, html.len(), |check| html::html_text(&html, check))
}

/// Hash of the `n` longest sentences of a text, as a bigint: equal for copies that differ in what
/// frames them only. None if the text has no word.
#[pyfunction]
#[pyo3(signature = (body, n = 3))]
pub fn longest_sentences_hash(py: Python<'_>, body: PyBackedStr, n: i64) -> PyResult<Option<i64>> {
    let most = sentences::MAX_SENTENCES;
    let number = usize::try_from(n).ok().filter(|n| (1..=most).contains(n));
    let number = number.ok_or_else(|| {
        PyValueError::new_err(format!(
            "n {n} is out of range: it is a number of sentences, from 1 to {most}"
        ))
    })?;
    let hash = run(py, body.len(), |check| {
        neardup_sketch::longest_sentences_hash(&body, number, check)
    })?;
    Ok(hash.map(|hash| hash as i64))
}

/// Number of characters of a text in the form that is compared; `neardup_text_length` of SQL.
#[pyfunction]
#[pyo3(signature = (body, html = false, accents = "keep"))]
pub fn text_length(py: Python<'_>, body: PyBackedStr, html: bool, accents: &str) -> PyResult<u64> {
    let accents = named(accents)?;
    run(py, body.len(), |check| {
        neardup_sketch::text_length(&body, html, accents, check) as u64
    })
}

/// Sets the Chinese words that jieba knows besides its dictionary, for this process: a list as in
/// the server's setting `neardup.jieba_user_words`, '云计算 7, 创新办'.
///
/// Returns their hash, which `neardup_jieba_words_hash()` gives in SQL if the words are the same.
#[pyfunction]
#[pyo3(signature = (words, /))]
pub fn set_jieba_user_words(py: Python<'_>, words: PyBackedStr) -> PyResult<String> {
    let words =
        UserWords::parse(&words).map_err(|error| PyValueError::new_err(error.to_string()))?;
    run(py, usize::MAX, |_| {
        Dictionary::with_words(&words);
    })?;
    Ok(format!("{:016x}", words.hash()))
}
