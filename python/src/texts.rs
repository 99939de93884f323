//! Functions of a text: fingerprints, signatures, exact similarities, and keys.
use neardup_sketch::html;
use neardup_sketch::tokens::jieba::{Dictionary, UserWords};
use neardup_sketch::{Sketcher, TextOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::compute::{Texts, run, run_many, texts, with_family};
use crate::fingerprints::{Fingerprint, Fingerprint128};
use crate::options::{self, Family, Given, named};
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

/// Runs `compute` with a sketcher of these options over each of several texts.
fn sketch_many<T: Send>(
    py: Python<'_>,
    options: TextOptions,
    texts: &Texts,
    threads: usize,
    compute: impl Fn(&mut Sketcher, &str, &mut dyn FnMut()) -> Option<T> + Sync,
) -> PyResult<Vec<Option<T>>> {
    run_many(py, texts, threads, |text, check| {
        Sketcher::with_thread_local(options, |sketcher| compute(sketcher, text, check))
    })
}

macro_rules! simhashes {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident, $many:ident => $method:ident -> $class:ident;
    )*) => {$(
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
            py: Python<'_>, body: Option<PyBackedStr>, tokens: &str,
            #[pyo3(from_py_with = options::shingle)] shingle: usize, weight: &str,
            html: bool, accents: &str, digits: &str,
        ) -> PyResult<Option<$class>> {
            let weight = Some(weight);
            let options = Given { tokens, shingle, weight, html, accents, digits }.parse()?;
            let Some(body) = body else {
                return Ok(None);
            };
            let found = sketch(py, options, body.len(), |sketcher, check| {
                sketcher.$method(&body, check)
            })?;
            Ok(found.map($class::from))
        }

        #[doc = concat!("A list with the result of ", stringify!($name), " for each of several ")]
        /// texts, of any iterable.
        ///
        /// The interpreter's lock is released, and `threads` threads compute. The other parameters
        #[doc = concat!("are those of ", stringify!($name), ".")]
        #[pyfunction]
        #[pyo3(signature = (
            texts, tokens = "word", shingle = 2, weight = "sqrt", html = false, accents = "keep",
            digits = "keep", *, threads = 1
        ))]
        #[expect(clippy::too_many_arguments, reason = "as in SQL")]
        pub fn $many(
            py: Python<'_>, #[pyo3(from_py_with = texts)] texts: Texts, tokens: &str,
            #[pyo3(from_py_with = options::shingle)] shingle: usize, weight: &str,
            html: bool, accents: &str, digits: &str,
            #[pyo3(from_py_with = options::threads)] threads: usize,
        ) -> PyResult<Vec<Option<$class>>> {
            let weight = Some(weight);
            let options = Given { tokens, shingle, weight, html, accents, digits }.parse()?;
            sketch_many(py, options, &texts, threads, |sketcher, text, check| {
                sketcher.$method(text, check).map($class::from)
            })
        }
    )*};
}

simhashes! {
    /// Fingerprint of a text. Similar texts have fingerprints that differ in few bits. None if the
    /// text has no feature, or for None.
    simhash, simhash_many => simhash64 -> Fingerprint;
    /// 128-bit fingerprint of a text: like simhash, but distances are less affected by chance.
    simhash128, simhash128_many => simhash128 -> Fingerprint128;
}

macro_rules! minhashes {
    ($($(#[doc = $doc:literal])* $name:ident, $many:ident -> $class:ident;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// Has the parameters of simhash except the weight.
        #[pyfunction]
        #[pyo3(signature = (
            body, tokens = "word", shingle = 3, html = false, accents = "keep", digits = "keep"
        ))]
        pub fn $name(
            py: Python<'_>, body: Option<PyBackedStr>, tokens: &str,
            #[pyo3(from_py_with = options::shingle)] shingle: usize, html: bool,
            accents: &str, digits: &str,
        ) -> PyResult<Option<$class>> {
            let weight = None;
            let options = Given { tokens, shingle, weight, html, accents, digits }.parse()?;
            let Some(body) = body else {
                return Ok(None);
            };
            let found = sketch(py, options, body.len(), |sketcher, check| {
                sketcher.$name(&body, check)
            })?;
            Ok(found.map($class::from))
        }

        #[doc = concat!("A list with the result of ", stringify!($name), " for each of several ")]
        /// texts, of any iterable.
        ///
        /// The interpreter's lock is released, and `threads` threads compute. The other parameters
        #[doc = concat!("are those of ", stringify!($name), ".")]
        #[pyfunction]
        #[pyo3(signature = (
            texts, tokens = "word", shingle = 3, html = false, accents = "keep", digits = "keep",
            *, threads = 1
        ))]
        #[expect(clippy::too_many_arguments, reason = "as in SQL")]
        pub fn $many(
            py: Python<'_>, #[pyo3(from_py_with = texts)] texts: Texts, tokens: &str,
            #[pyo3(from_py_with = options::shingle)] shingle: usize, html: bool,
            accents: &str, digits: &str,
            #[pyo3(from_py_with = options::threads)] threads: usize,
        ) -> PyResult<Vec<Option<$class>>> {
            let weight = None;
            let options = Given { tokens, shingle, weight, html, accents, digits }.parse()?;
            sketch_many(py, options, &texts, threads, |sketcher, text, check| {
                sketcher.$name(text, check).map($class::from)
            })
        }
    )*};
}

minhashes! {
    /// Fingerprint of a text's set of features, whose distance estimates the Jaccard similarity J:
    /// 32 * (1 - J) bits are expected to differ. None if the text has no feature, or for None.
    minhash64, minhash64_many -> Fingerprint;
    /// 128-bit fingerprint of a text's set of features: 64 * (1 - J) bits are expected to differ.
    /// None if the text has no feature, or for None.
    minhash128, minhash128_many -> Fingerprint128;
}

/// MinHash signature of a text's set of features. None if it has none, or for None.
///
/// Has the parameters of simhash except the weight; `hashes`, the number of values, 16 to 1024;
/// `seed`; `scheme`, 'neardup1', 'datasketch1' or 'datasketch2'.
#[pyfunction]
#[pyo3(signature = (
    body, tokens = "word", shingle = 3, html = false, accents = "keep", digits = "keep",
    hashes = 128, seed = 0, scheme = "neardup1"
))]
#[expect(clippy::too_many_arguments, reason = "as in SQL")]
pub fn minhash(
    py: Python<'_>,
    body: Option<PyBackedStr>,
    tokens: &str,
    #[pyo3(from_py_with = options::shingle)] shingle: usize,
    html: bool,
    accents: &str,
    digits: &str,
    #[pyo3(from_py_with = options::hashes)] hashes: usize,
    #[pyo3(from_py_with = options::seed)] seed: i64,
    scheme: &str,
) -> PyResult<Option<MinHashSignature>> {
    let options = (Given {
        tokens,
        shingle,
        weight: None,
        html,
        accents,
        digits,
    })
    .parse()?;
    let family = Family::parse(hashes, seed, scheme)?;
    let Some(body) = body else {
        return Ok(None);
    };
    let values = sketch(py, options, body.len(), |sketcher, check| {
        with_family(family, |family| sketcher.signature(&body, family, check))
    })?;
    Ok(values.map(|values| MinHashSignature::from_family(family, values)))
}

/// A list with the result of minhash for each of several texts, of any iterable.
///
/// The interpreter's lock is released, and `threads` threads compute. For the other parameters see
/// minhash.
#[pyfunction]
#[pyo3(signature = (
    texts, tokens = "word", shingle = 3, html = false, accents = "keep", digits = "keep",
    hashes = 128, seed = 0, scheme = "neardup1", *, threads = 1
))]
#[expect(clippy::too_many_arguments, reason = "as in SQL")]
pub fn minhash_many(
    py: Python<'_>,
    #[pyo3(from_py_with = texts)] texts: Texts,
    tokens: &str,
    #[pyo3(from_py_with = options::shingle)] shingle: usize,
    html: bool,
    accents: &str,
    digits: &str,
    #[pyo3(from_py_with = options::hashes)] hashes: usize,
    #[pyo3(from_py_with = options::seed)] seed: i64,
    scheme: &str,
    #[pyo3(from_py_with = options::threads)] threads: usize,
) -> PyResult<Vec<Option<MinHashSignature>>> {
    let options = (Given {
        tokens,
        shingle,
        weight: None,
        html,
        accents,
        digits,
    })
    .parse()?;
    let family = Family::parse(hashes, seed, scheme)?;
    sketch_many(py, options, &texts, threads, |sketcher, text, check| {
        let values = with_family(family, |family| sketcher.signature(text, family, check));
        values.map(|values| MinHashSignature::from_family(family, values))
    })
}

macro_rules! similarities {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// Has the parameters of simhash except the weight.
        #[pyfunction]
        #[pyo3(signature = (
            a, b, tokens = "word", shingle = 3, html = false, accents = "keep", digits = "keep"
        ))]
        #[expect(clippy::too_many_arguments, reason = "as in SQL")]
        pub fn $name(
            py: Python<'_>, a: Option<PyBackedStr>, b: Option<PyBackedStr>, tokens: &str,
            #[pyo3(from_py_with = options::shingle)] shingle: usize,
            html: bool, accents: &str, digits: &str,
        ) -> PyResult<Option<f64>> {
            let weight = None;
            let options = Given { tokens, shingle, weight, html, accents, digits }.parse()?;
            let (Some(a), Some(b)) = (a, b) else {
                return Ok(None);
            };
            sketch(py, options, a.len() + b.len(), |sketcher, check| {
                sketcher.$name(&a, &b, check)
            })
        }
    )*};
}

similarities! {
    /// Exact Jaccard similarity of two texts' sets of features, 0 to 1; None if neither has any,
    /// or if one is None.
    jaccard_similarity;
    /// Exact share of the first text's features that the second has too, 0 to 1; None if the first
    /// has none, or if one is None.
    containment;
}

/// Text of an HTML page as a reader sees it: without scripts, styles, markup and hidden parts.
/// None for None.
#[pyfunction]
pub fn html_text(py: Python<'_>, html: Option<PyBackedStr>) -> PyResult<Option<String>> {
    let Some(html) = html else {
        return Ok(None);
    };
    run(py, html.len(), |check| html::html_text(&html, check)).map(Some)
}

/// Hash of the `n` longest sentences of a text, as a bigint. It is equal for copies that differ
/// only in their surroundings. None if the text has no word, or for None.
#[pyfunction]
#[pyo3(signature = (body, n = 3))]
pub fn longest_sentences_hash(
    py: Python<'_>,
    body: Option<PyBackedStr>,
    #[pyo3(from_py_with = options::sentences)] n: usize,
) -> PyResult<Option<i64>> {
    let Some(body) = body else {
        return Ok(None);
    };
    let hash = run(py, body.len(), |check| {
        neardup_sketch::longest_sentences_hash(&body, n, check)
    })?;
    Ok(hash.map(|hash| hash as i64))
}

/// Number of characters of a text in its compared form; `neardup_text_length` of SQL. None for
/// None.
#[pyfunction]
#[pyo3(signature = (body, html = false, accents = "keep"))]
pub fn text_length(
    py: Python<'_>,
    body: Option<PyBackedStr>,
    html: bool,
    accents: &str,
) -> PyResult<Option<u64>> {
    let accents = named(accents)?;
    let Some(body) = body else {
        return Ok(None);
    };
    let length = run(py, body.len(), |check| {
        neardup_sketch::text_length(&body, html, accents, check) as u64
    })?;
    Ok(Some(length))
}

/// Sets the Chinese words that jieba knows in addition to its dictionary, for this process. The
/// list has the form of the server's setting `neardup.jieba_user_words`, '云计算 7, 创新办'.
///
/// Returns their hash, which is also the result of `neardup_jieba_words_hash()` in SQL for the
/// same words.
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
