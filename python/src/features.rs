//! Fingerprints and signatures of features that the caller passes.
use neardup_sketch::foreign_schemes::SimhashScheme;
use neardup_sketch::hash::feature_hash;
use neardup_sketch::minhash_fingerprint::FingerprintBuilder;
use neardup_sketch::{WeightError, simhash128_features as simhash128};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyFrozenSet, PySet};

use crate::compute::{run, with_family};
use crate::fingerprints::{Fingerprint, Fingerprint128};
use crate::options::{self, Family, items, named, or_out_of_range};
use crate::signature::MinHashSignature;

/// Features of a caller: strings from any iterable.
pub struct Features {
    values: Vec<PyBackedStr>,
    /// False for a set, whose order is not meaningful.
    is_ordered: bool,
}

impl Features {
    /// Returns the total size of the features in bytes.
    fn bytes(&self) -> usize {
        self.values.iter().map(|feature| feature.len()).sum()
    }
}

/// Reads the parameter `features`. Returns `None` for None.
pub fn features(value: &Bound<'_, PyAny>) -> PyResult<Option<Features>> {
    let values = items(value, "features", "str")?;
    Ok(values.map(|values| Features {
        values,
        is_ordered: !is_set(value),
    }))
}

fn is_set(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>()
}

/// Reads the parameter `hashes`, and whether it is ordered. Returns `None` for None.
fn feature_hashes(value: &Bound<'_, PyAny>) -> PyResult<Option<(Vec<u64>, bool)>> {
    let hashes: Option<Vec<Bound<'_, PyAny>>> = items(value, "hashes", "int")?;
    let Some(hashes) = hashes else {
        return Ok(None);
    };
    let hashes = hashes.iter().map(crate::compare::bits64);
    Ok(Some((hashes.collect::<PyResult<_>>()?, !is_set(value))))
}

/// Reads the parameter `weights`. Returns `None` for None.
fn weight_list(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<f64>>> {
    let weights: Option<Vec<Bound<'_, PyAny>>> = items(value, "weights", "float")?;
    let Some(weights) = weights else {
        return Ok(None);
    };
    let weight = |(index, weight): (usize, &Bound<'_, PyAny>)| {
        weight.extract::<f64>().map_err(|error| {
            let parameter = format!("weight {}", index + 1);
            or_out_of_range(
                error,
                &parameter,
                weight,
                "it is a number of double precision",
            )
        })
    };
    let weights = weights.iter().enumerate().map(weight);
    weights.collect::<PyResult<_>>().map(Some)
}

/// Checks that there is a weight for each of `values` features. Without weights each weighs 1.
fn checked_weights(
    values: usize,
    is_ordered: bool,
    weights: Option<Vec<f64>>,
) -> PyResult<Vec<f64>> {
    let Some(weights) = weights else {
        return Ok(vec![1.0; values]);
    };
    if !is_ordered {
        return Err(PyTypeError::new_err(
            "features with weights must be in an order: pass a list, not a set",
        ));
    }
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

/// Fingerprint of features, each with a weight (1 by default), as made by neardup or another
/// program: `scheme` is 'neardup', 'python_simhash', 'simhash_py', 'yanyiwu_simhash' or
/// 'md5_middle'. None if there are no features, or for None.
#[pyfunction]
#[pyo3(
    name = "simhash_features",
    signature = (features, weights = None, scheme = "neardup")
)]
pub fn simhash_features(
    py: Python<'_>,
    #[pyo3(from_py_with = features)] features: Option<Features>,
    #[pyo3(from_py_with = weight_list)] weights: Option<Vec<f64>>,
    scheme: &str,
) -> PyResult<Option<Fingerprint>> {
    let scheme: SimhashScheme = named(scheme)?;
    let Some(features) = features else {
        return Ok(None);
    };
    let weights = checked_weights(features.values.len(), features.is_ordered, weights)?;
    let found = run(py, features.bytes(), |_| {
        let values = features.values.iter();
        let hashes = values.map(|feature| scheme.hash(feature.as_bytes()));
        scheme.simhash64(hashes.zip(weights))
    })?;
    Ok(found.map_err(bad_weight)?.map(Fingerprint::from))
}

/// Fingerprint of the hashes of features, which are signed or unsigned 64-bit numbers. Otherwise
/// like simhash_features.
#[pyfunction]
#[pyo3(signature = (hashes, weights = None, scheme = "neardup"))]
pub fn simhash_hashes(
    py: Python<'_>,
    #[pyo3(from_py_with = feature_hashes)] hashes: Option<(Vec<u64>, bool)>,
    #[pyo3(from_py_with = weight_list)] weights: Option<Vec<f64>>,
    scheme: &str,
) -> PyResult<Option<Fingerprint>> {
    let scheme: SimhashScheme = named(scheme)?;
    let Some((hashes, is_ordered)) = hashes else {
        return Ok(None);
    };
    let weights = checked_weights(hashes.len(), is_ordered, weights)?;
    let found = run(py, 8 * hashes.len(), |_| {
        scheme.simhash64(hashes.into_iter().zip(weights))
    })?;
    Ok(found.map_err(bad_weight)?.map(Fingerprint::from))
}

/// 128-bit fingerprint of features, each with a weight (1 by default). None if there are no
/// features, or for None.
#[pyfunction]
#[pyo3(signature = (features, weights = None))]
pub fn simhash128_features(
    py: Python<'_>,
    #[pyo3(from_py_with = features)] features: Option<Features>,
    #[pyo3(from_py_with = weight_list)] weights: Option<Vec<f64>>,
) -> PyResult<Option<Fingerprint128>> {
    let Some(features) = features else {
        return Ok(None);
    };
    let weights = checked_weights(features.values.len(), features.is_ordered, weights)?;
    let found = run(py, features.bytes(), |_| {
        let values = features.values.iter();
        simhash128(values.map(|feature| feature.as_bytes()).zip(weights))
    })?;
    Ok(found.map_err(bad_weight)?.map(Fingerprint128::from))
}

/// Fingerprint of a set of features by minhash64. None if there are no features, or for None.
#[pyfunction]
pub fn minhash64_features(
    py: Python<'_>,
    #[pyo3(from_py_with = features)] features: Option<Features>,
) -> PyResult<Option<Fingerprint>> {
    let found = of_set::<1>(py, features)?;
    Ok(found.map(|[word]| Fingerprint::from(word)))
}

/// Fingerprint of a set of features by minhash128. None if there are no features, or for None.
#[pyfunction]
pub fn minhash128_features(
    py: Python<'_>,
    #[pyo3(from_py_with = features)] features: Option<Features>,
) -> PyResult<Option<Fingerprint128>> {
    let found = of_set::<2>(py, features)?;
    Ok(found.map(|[high, low]| Fingerprint128::from(u128::from(high) << 64 | u128::from(low))))
}

fn of_set<const W: usize>(
    py: Python<'_>,
    features: Option<Features>,
) -> PyResult<Option<[u64; W]>> {
    let Some(features) = features else {
        return Ok(None);
    };
    run(py, features.bytes(), |check| {
        let hashes: Vec<u64> = (features.values.iter())
            .map(|feature| feature_hash(feature.as_bytes()))
            .collect();
        let mut minima = FingerprintBuilder::<W>::default();
        minima.add(&hashes);
        minima.finish(check)
    })
}

/// MinHash signature of a set of features. None if there are no features, or for None. For
/// `hashes`, `seed` and `scheme` see minhash.
#[pyfunction]
#[pyo3(signature = (features, hashes = 128, seed = 0, scheme = "neardup1"))]
pub fn minhash_features(
    py: Python<'_>,
    #[pyo3(from_py_with = features)] features: Option<Features>,
    #[pyo3(from_py_with = options::hashes)] hashes: usize,
    #[pyo3(from_py_with = options::seed)] seed: i64,
    scheme: &str,
) -> PyResult<Option<MinHashSignature>> {
    let family = Family::parse(hashes, seed, scheme)?;
    let Some(features) = features else {
        return Ok(None);
    };
    let values = run(py, features.bytes(), |_| {
        let values = features.values.iter().map(|feature| feature.as_bytes());
        with_family(family, |family| family.signature(values))
    })?;
    Ok(values.map(|values| MinHashSignature::from_family(family, values)))
}
