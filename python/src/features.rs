//! Fingerprints and signatures of ready-made features.
use neardup_sketch::foreign_schemes::SimhashScheme;
use neardup_sketch::hash::feature_hash;
use neardup_sketch::minhash_fingerprint::FingerprintBuilder;
use neardup_sketch::{WeightError, simhash128_features as simhash128};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::compute::{run, with_family};
use crate::fingerprints::{Fingerprint, Fingerprint128};
use crate::options::{Family, named};
use crate::signature::MinHashSignature;

/// Bytes of all features.
fn bytes(features: &[PyBackedStr]) -> usize {
    features.iter().map(|feature| feature.len()).sum()
}

/// Checks that there is a weight for each of `values` features; each weighs 1 if none are given.
fn weights(values: usize, weights: Option<Vec<f64>>) -> PyResult<Vec<f64>> {
    let weights = weights.unwrap_or_else(|| vec![1.0; values]);
    if weights.len() != values {
        return Err(PyValueError::new_err(format!(
            "there are {values} features and {} weights: give one weight for each feature, or none",
            weights.len()
        )));
    }
    Ok(weights)
}

fn bad_weight(error: WeightError) -> PyErr {
    PyValueError::new_err(format!(
        "weight {} is {}: a weight is a finite number of zero or more",
        error.index + 1,
        error.weight
    ))
}

/// The fingerprint of ready-made features, each with a weight (1 by default), as neardup or another
/// program makes it: `scheme` is 'neardup', 'python_simhash', 'simhash_py', 'yanyiwu_simhash' or
/// 'md5_middle'. None if there are none.
#[pyfunction]
#[pyo3(
    name = "simhash_features",
    signature = (features, weights = None, scheme = "neardup")
)]
pub fn simhash_features(
    py: Python<'_>,
    features: Vec<PyBackedStr>,
    weights: Option<Vec<f64>>,
    scheme: &str,
) -> PyResult<Option<Fingerprint>> {
    let scheme: SimhashScheme = named(scheme)?;
    let weights = self::weights(features.len(), weights)?;
    let found = run(py, bytes(&features), |_| {
        let hashes = features
            .iter()
            .map(|feature| scheme.hash(feature.as_bytes()));
        scheme.simhash64(hashes.zip(weights))
    })?;
    Ok(found.map_err(bad_weight)?.map(Fingerprint::from))
}

/// The fingerprint of the hashes of features, signed or unsigned numbers of 64 bits. Otherwise as
/// simhash_features.
#[pyfunction]
#[pyo3(signature = (hashes, weights = None, scheme = "neardup"))]
pub fn simhash_hashes(
    py: Python<'_>,
    hashes: Vec<Bound<'_, PyAny>>,
    weights: Option<Vec<f64>>,
    scheme: &str,
) -> PyResult<Option<Fingerprint>> {
    let scheme: SimhashScheme = named(scheme)?;
    let weights = self::weights(hashes.len(), weights)?;
    let hashes = hashes
        .iter()
        .map(crate::compare::bits64)
        .collect::<PyResult<Vec<u64>>>()?;
    let found = run(py, 8 * hashes.len(), |_| {
        scheme.simhash64(hashes.into_iter().zip(weights))
    })?;
    Ok(found.map_err(bad_weight)?.map(Fingerprint::from))
}

/// The 128-bit fingerprint of ready-made features, each with a weight (1 by default); None if there
/// are none.
#[pyfunction]
#[pyo3(signature = (features, weights = None))]
pub fn simhash128_features(
    py: Python<'_>,
    features: Vec<PyBackedStr>,
    weights: Option<Vec<f64>>,
) -> PyResult<Option<Fingerprint128>> {
    let weights = self::weights(features.len(), weights)?;
    let found = run(py, bytes(&features), |_| {
        simhash128(
            features
                .iter()
                .map(|feature| feature.as_bytes())
                .zip(weights),
        )
    })?;
    Ok(found.map_err(bad_weight)?.map(Fingerprint128::from))
}

/// The fingerprint of a set of ready-made features by minhash64; None if there are none.
#[pyfunction]
pub fn minhash64_features(
    py: Python<'_>,
    features: Vec<PyBackedStr>,
) -> PyResult<Option<Fingerprint>> {
    let found = of_set::<1>(py, &features)?;
    Ok(found.map(|[word]| Fingerprint::from(word)))
}

/// The fingerprint of a set of ready-made features by minhash128; None if there are none.
#[pyfunction]
pub fn minhash128_features(
    py: Python<'_>,
    features: Vec<PyBackedStr>,
) -> PyResult<Option<Fingerprint128>> {
    let found = of_set::<2>(py, &features)?;
    Ok(found.map(|[high, low]| Fingerprint128::from(u128::from(high) << 64 | u128::from(low))))
}

fn of_set<const W: usize>(py: Python<'_>, features: &[PyBackedStr]) -> PyResult<Option<[u64; W]>> {
    run(py, bytes(features), |check| {
        let hashes: Vec<u64> = (features.iter())
            .map(|feature| feature_hash(feature.as_bytes()))
            .collect();
        let mut minima = FingerprintBuilder::<W>::default();
        minima.add(&hashes);
        minima.finish(check)
    })
}

/// The MinHash signature of a set of ready-made features; None if there are none. `hashes`, `seed`
/// and `scheme` are those of minhash.
#[pyfunction]
#[pyo3(signature = (features, hashes = 128, seed = 0, scheme = "neardup1"))]
pub fn minhash_features(
    py: Python<'_>,
    features: Vec<PyBackedStr>,
    hashes: i64,
    seed: i64,
    scheme: &str,
) -> PyResult<Option<MinHashSignature>> {
    let family = Family::parse(hashes, seed, scheme)?;
    let values = run(py, bytes(&features), |_| {
        let features = features.iter().map(|feature| feature.as_bytes());
        with_family(family, |family| family.signature(features))
    })?;
    Ok(values.map(|values| MinHashSignature::of_family(family, values)))
}
