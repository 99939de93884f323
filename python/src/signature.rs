//! Class `MinHashSignature`.
use neardup_blocktree::bands::scheme_hash;
use neardup_sketch::minhash::{MAX_HASHES, MIN_HASHES, Scheme, matches, merge};
use neardup_sketch::options::NamedOption;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};

use crate::options::{self, Family, number};

/// Number of bits of a value in the binary form.
const BITS: u8 = 32;
/// Size of the binary form before the values.
const HEAD: usize = 12;

/// Value of the SQL type `minhash_signature`: the minima of many hash functions over a set of
/// features, with their scheme and seed.
///
/// Made from its values, or from its text or binary form, which contain the seed and scheme. `len`
/// is the number of values. `str` and `bytes` return the forms that the server reads.
#[pyclass(frozen, eq, hash, module = "neardup")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MinHashSignature {
    scheme: Scheme,
    seed: u64,
    values: Vec<u32>,
}

impl MinHashSignature {
    /// Creates a signature from the values of a hash family.
    pub fn from_family(family: Family, values: Vec<u32>) -> Self {
        Self {
            scheme: family.scheme,
            seed: family.seed,
            values,
        }
    }

    /// Returns the values.
    pub fn minima(&self) -> &[u32] {
        &self.values
    }

    /// Returns the hash of the scheme and seed that is part of each key.
    pub fn scheme_hash(&self) -> u64 {
        scheme_hash(self.scheme.code(), self.seed)
    }

    /// Returns the number of equal values, or `None` unless both were made in the same way.
    fn matches(&self, other: &Self) -> Option<usize> {
        let comparable = self.scheme == other.scheme
            && self.seed == other.seed
            && self.values.len() == other.values.len();
        comparable.then(|| matches(&self.values, &other.values))
    }

    fn parse(text: &str) -> PyResult<Self> {
        let parts: Vec<&str> = text.splitn(4, '/').collect();
        let parsed = match parts[..] {
            [scheme, hashes, seed, digits]
                if hashes.parse() == Ok(digits.len() / 8)
                    && digits.len() % 8 == 0
                    && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                let values = digits.as_bytes().chunks_exact(8).map(|digits| {
                    let digits = str::from_utf8(digits).ok()?;
                    u32::from_str_radix(digits, 16).ok()
                });
                values
                    .collect::<Option<Vec<u32>>>()
                    .zip(seed.parse().ok())
                    .map(|(values, seed)| checked(values, seed, scheme))
            }
            _ => None,
        };
        parsed.unwrap_or_else(|| {
            Err(PyValueError::new_err(
                "invalid text for MinHashSignature: it is written as scheme/hashes/seed/values, \
                 the values as 8 hexadecimal digits each",
            ))
        })
    }

    fn from_message(bytes: &[u8]) -> PyResult<Self> {
        let invalid = || {
            PyValueError::new_err(
                "invalid bytes for MinHashSignature: they are the binary form of the server",
            )
        };
        let (head, values) = bytes.split_at_checked(HEAD).ok_or_else(invalid)?;
        let hashes = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let scheme = Scheme::from_code(head[0]).ok_or_else(invalid)?;
        if head[1] != BITS || values.len() != 4 * hashes {
            return Err(invalid());
        }
        let (seed, _) = head[4..].split_first_chunk::<8>().ok_or_else(invalid)?;
        let (values, _) = values.as_chunks::<4>();
        let values = values.iter().map(|bytes| u32::from_be_bytes(*bytes));
        checked(values.collect(), i64::from_be_bytes(*seed), scheme.name())
    }
}

/// Creates a signature from values made elsewhere. Returns an error if the scheme does not allow
/// the seed or the number of values.
fn checked(values: Vec<u32>, seed: i64, scheme: &str) -> PyResult<MinHashSignature> {
    if !(MIN_HASHES..=MAX_HASHES).contains(&values.len()) {
        return Err(PyValueError::new_err(format!(
            "a MinHashSignature has from {MIN_HASHES} to {MAX_HASHES} values, not {}",
            values.len()
        )));
    }
    let family = Family::parse(values.len(), seed, scheme)?;
    Ok(MinHashSignature::from_family(family, values))
}

#[pymethods]
impl MinHashSignature {
    #[new]
    #[pyo3(signature = (values, /, seed = 0, scheme = "neardup1"))]
    fn new(
        values: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = options::seed)] seed: i64,
        scheme: &str,
    ) -> PyResult<Self> {
        if let Ok(same) = values.cast::<Self>() {
            return Ok(same.get().clone());
        }
        if let Ok(text) = values.cast::<PyString>() {
            return Self::parse(&text.to_cow()?);
        }
        if let Ok(bytes) = values.cast::<PyBytes>() {
            return Self::from_message(bytes.as_bytes());
        }
        let values = values.try_iter().map_err(|_| {
            PyTypeError::new_err("a MinHashSignature is made from str, bytes or values")
        })?;
        let value = |value: PyResult<Bound<'_, PyAny>>| {
            let value = number(
                "value",
                &value?,
                0..=u32::MAX as usize,
                "a number of 32 bits",
            )?;
            Ok(value as u32)
        };
        checked(values.map(value).collect::<PyResult<_>>()?, seed, scheme)
    }

    /// Values of the signature; `minhash_values` of SQL.
    #[getter]
    fn values(&self) -> Vec<u32> {
        self.values.clone()
    }

    /// Seed of the hash functions.
    #[getter]
    fn seed(&self) -> i64 {
        self.seed as i64
    }

    /// Name of the scheme of the hash functions.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.scheme.name()
    }

    /// Share of equal values, 0 to 1, which estimates the Jaccard similarity: `minhash_similarity`
    /// of SQL. None if the numbers of values, the seeds or the schemes differ.
    #[pyo3(signature = (other, /))]
    pub fn similarity(&self, other: Option<&Self>) -> Option<f64> {
        (self.matches(other?)).map(|matches| matches as f64 / self.values.len() as f64)
    }

    /// Share of differing values, 0 to 1: the operator `<%>` of SQL. None as in `similarity`.
    #[pyo3(signature = (other, /))]
    pub fn distance(&self, other: Option<&Self>) -> Option<f64> {
        let hashes = self.values.len();
        (self.matches(other?)).map(|matches| (hashes - matches) as f64 / hashes as f64)
    }

    /// Signature of the union of two sets; `minhash_union` of SQL.
    #[pyo3(signature = (other, /))]
    fn union(&self, other: Option<&Self>) -> PyResult<Option<Self>> {
        let Some(other) = other else {
            return Ok(None);
        };
        if self.matches(other).is_none() {
            return Err(PyValueError::new_err(
                "the signatures cannot be compared: their schemes, seeds or numbers of values \
                 differ",
            ));
        }
        let mut union = self.clone();
        merge(&mut union.values, &other.values);
        Ok(Some(union))
    }

    fn __len__(&self) -> usize {
        self.values.len()
    }

    fn __str__(&self) -> String {
        let digits: String = self
            .values
            .iter()
            .map(|value| format!("{value:08x}"))
            .collect();
        let (name, hashes, seed) = (self.scheme.name(), self.values.len(), self.seed as i64);
        format!("{name}/{hashes}/{seed}/{digits}")
    }

    fn __repr__(&self) -> String {
        format!("MinHashSignature('{}')", self.__str__())
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = vec![self.scheme.code(), BITS];
        bytes.extend((self.values.len() as u16).to_be_bytes());
        bytes.extend(self.seed.to_be_bytes());
        bytes.extend(self.values.iter().flat_map(|value| value.to_be_bytes()));
        PyBytes::new(py, &bytes)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Bound<'py, PyBytes>,)) {
        (slf.get_type(), (slf.get().__bytes__(slf.py()),))
    }
}
