//! Keys of near-duplicates for joins in other engines.
use neardup_blocktree::approximate_keys::{BandKeysError, FingerprintBandKeys, SignatureBandKeys};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::compare::bits64;
use crate::fingerprints::{Fingerprint, Fingerprint128, Fingerprint256};
use crate::options;
use crate::signature::MinHashSignature;

/// Returns the error for impossible numbers of bands and rows.
fn refused(error: BandKeysError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns the keys of a fingerprint, given as bytes, the most significant first.
fn fingerprint_keys<const N: usize>(bytes: &[u8], bands: usize, rows: usize) -> PyResult<Vec<i64>> {
    let (words, _) = bytes.as_chunks::<8>();
    let words: [u64; N] = std::array::from_fn(|word| u64::from_be_bytes(words[word]));
    let keys = FingerprintBandKeys::<N>::new(bands, rows).map_err(refused)?;
    Ok(keys.keys(&words).collect())
}

/// Approximate keys of a signature, a fingerprint or a 64-bit number: the same as by
/// `neardup_band_keys` of SQL. `bands` is the number of keys, and `rows` the number of values or
/// bits in each. None for None.
///
/// Two signatures of Jaccard similarity s share a key with probability 1 - (1 - s**rows)**bands,
/// and two fingerprints at distance d with about 1 - (1 - p)**bands, where p is comb(width - rows,
/// d) / comb(width, d).
#[pyfunction]
#[pyo3(signature = (value, /, bands, rows))]
pub fn neardup_band_keys(
    value: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = options::bands)] bands: usize,
    #[pyo3(from_py_with = options::rows)] rows: usize,
) -> PyResult<Option<Vec<i64>>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(signature) = value.cast::<MinHashSignature>() {
        let signature = signature.get();
        let values = signature.minima();
        let keys = SignatureBandKeys::new(values.len(), bands, rows).map_err(refused)?;
        return Ok(Some(keys.keys(values, signature.scheme_hash()).collect()));
    }
    let keys = if let Ok(value) = value.cast::<Fingerprint>() {
        fingerprint_keys::<1>(&value.get().0, bands, rows)
    } else if let Ok(value) = value.cast::<Fingerprint128>() {
        fingerprint_keys::<2>(&value.get().0, bands, rows)
    } else if let Ok(value) = value.cast::<Fingerprint256>() {
        fingerprint_keys::<4>(&value.get().0, bands, rows)
    } else if value.is_instance_of::<PyInt>() {
        fingerprint_keys::<1>(&bits64(value)?.to_be_bytes(), bands, rows)
    } else {
        return Err(PyTypeError::new_err(format!(
            "{} has no keys: pass a signature, a fingerprint or a number",
            value.get_type().name()?
        )));
    };
    keys.map(Some)
}
