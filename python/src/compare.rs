//! Functions of two values: distances and similarities, and the radius for a similarity.
use neardup_sketch::minhash_fingerprint;
use pyo3::PyClass;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyInt;

use crate::fingerprints::{Fingerprint, Fingerprint128, Fingerprint256, distance};
use crate::options;
use crate::signature::MinHashSignature;

/// Returns the 64 bits of a signed or unsigned number.
pub fn bits64(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let signed = value.extract::<i64>().map(|value| value as u64);
    signed.or_else(|_| value.extract::<u64>()).map_err(|_| {
        PyValueError::new_err(format!(
            "{value} is no number of 64 bits, signed or unsigned"
        ))
    })
}

/// Returns the number of differing bits of two fingerprints of one width or two numbers, and the
/// width. Returns `None` if one of them is None.
fn bits(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Option<(u32, u32)>> {
    fn of<'a, T: PyClass<Frozen = True> + Sync, const N: usize>(
        a: &'a Bound<'_, PyAny>,
        b: &'a Bound<'_, PyAny>,
        bytes: impl Fn(&'a T) -> &'a [u8; N],
    ) -> Option<(u32, u32)> {
        let (a, b) = (a.cast::<T>().ok()?, b.cast::<T>().ok()?);
        Some((distance(bytes(a.get()), bytes(b.get())), 8 * N as u32))
    }
    // A None is replaced by the other value, so that wrong types are still detected.
    let is_null = a.is_none() || b.is_none();
    let (a, b) = match (a.is_none(), b.is_none()) {
        (true, true) => return Ok(None),
        (true, false) => (b, b),
        (false, true) => (a, a),
        (false, false) => (a, b),
    };
    let mut found = of(a, b, |value: &Fingerprint| &value.0)
        .or_else(|| of(a, b, |value: &Fingerprint128| &value.0))
        .or_else(|| of(a, b, |value: &Fingerprint256| &value.0));
    if found.is_none() && a.is_instance_of::<PyInt>() && b.is_instance_of::<PyInt>() {
        found = Some(((bits64(a)? ^ bits64(b)?).count_ones(), 64));
    }
    match found {
        Some(_) if is_null => Ok(None),
        Some(found) => Ok(Some(found)),
        None => Err(PyTypeError::new_err(format!(
            "{} and {} have no distance: both are fingerprints of one width, or both numbers",
            a.get_type().name()?,
            b.get_type().name()?
        ))),
    }
}

/// Number of bits in which two fingerprints of one width, or two signed or unsigned 64-bit
/// numbers, differ; the operator `<~>` of SQL. None if one of them is None.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn hamming_distance(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    Ok(bits(a, b)?.map(|(distance, _)| distance))
}

/// Jaccard similarity, 0 to 1, that two fingerprints by minhash64 or minhash128, or two
/// signatures, estimate. Other fingerprints have no such estimate. None if one of them is None.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn fingerprint_similarity(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let [signature_a, signature_b] = [a, b].map(|value| value.cast::<MinHashSignature>().ok());
    match (signature_a, signature_b) {
        (Some(a), Some(b)) => return Ok(a.get().similarity(Some(b.get()))),
        (Some(_), None) if b.is_none() => return Ok(None),
        (None, Some(_)) if a.is_none() => return Ok(None),
        _ => (),
    }
    let found = bits(a, b)?;
    Ok(found.map(|(distance, width)| minhash_fingerprint::similarity(distance, width)))
}

/// Estimated Jaccard similarity of two signatures, 0 to 1: the share of equal values. None if
/// their numbers of values, seeds or schemes differ, or if one of them is None.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn minhash_similarity(
    a: Option<&MinHashSignature>,
    b: Option<&MinHashSignature>,
) -> Option<f64> {
    a?.similarity(b)
}

/// Estimated Jaccard distance of two signatures, 0 to 1: the operator `<%>` of SQL. None in the
/// same cases as minhash_similarity.
#[pyfunction]
#[pyo3(signature = (a, b, /))]
pub fn minhash_distance(a: Option<&MinHashSignature>, b: Option<&MinHashSignature>) -> Option<f64> {
    a?.distance(b)
}

/// Maximum distance at which two fingerprints made by `function`, 'minhash64' or 'minhash128',
/// have a fingerprint_similarity of at least `similarity`.
#[pyfunction]
pub fn neardup_radius(
    function: &str,
    #[pyo3(from_py_with = options::similarity)] similarity: f64,
) -> PyResult<i32> {
    let bits = match function {
        "minhash64" => 64,
        "minhash128" => 128,
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no radius for a similarity with function {function:?}: make the \
                 fingerprints by minhash64 or minhash128"
            )));
        }
    };
    if !(0.0..=1.0).contains(&similarity) {
        return Err(PyValueError::new_err(format!(
            "similarity {similarity} is out of range: it is from 0 to 1; write 80 % as 0.8"
        )));
    }
    Ok(minhash_fingerprint::radius(similarity, bits))
}
