//! Classes `Fingerprint`, `Fingerprint128` and `Fingerprint256`.
use neardup_sketch::minhash_fingerprint;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyString};

use crate::options;

/// Returns the number of bits in which two values differ.
pub fn distance(a: &[u8], b: &[u8]) -> u32 {
    (a.iter().zip(b)).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// Formats bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses exactly `2 * N` hexadecimal digits.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Reads the bytes of a value that is given as digits, bytes or a number.
fn parse<const N: usize>(value: &Bound<'_, PyAny>, name: &str) -> PyResult<[u8; N]> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_cow()?;
        return from_hex(&text).ok_or_else(|| {
            PyValueError::new_err(format!(
                "invalid text for {name}: {:?}; it is written as exactly {} hexadecimal digits",
                text.chars().take(70).collect::<String>(),
                2 * N
            ))
        });
    }
    if let Ok(number) = value.cast::<PyInt>() {
        let bytes = number.call_method1("to_bytes", (N, "big")).map_err(|_| {
            let hint = match N {
                8 => "; for a signed bigint there is Fingerprint.from_bigint",
                _ => "",
            };
            PyValueError::new_err(format!(
                "the number is out of range for {name}: it is from 0 to 2**{} - 1{hint}",
                8 * N
            ))
        })?;
        return bytes.extract();
    }
    let bytes = if let Ok(bytes) = value.cast::<PyBytes>() {
        bytes.as_bytes().to_vec()
    } else if let Ok(bytes) = value.cast::<PyByteArray>() {
        bytes.to_vec()
    } else {
        return Err(PyTypeError::new_err(format!(
            "{name} is made from str (hexadecimal digits), bytes or int, not {}",
            value.get_type().name()?
        )));
    };
    let given = bytes.len();
    <[u8; N]>::try_from(bytes).map_err(|_| {
        PyValueError::new_err(format!(
            "{name} has exactly {N} bytes, most significant first, not {given}"
        ))
    })
}

macro_rules! fingerprint_class {
    ($(#[doc = $doc:literal])* $class:ident, $bytes:literal, { $($more:tt)* }) => {
        $(#[doc = $doc])*
        ///
        /// Made from hexadecimal digits, bytes (most significant first) or a number. Values are
        /// ordered like unsigned numbers, hashable, and can be pickled. `str`, `bytes` and `int`
        /// convert them.
        #[pyclass(frozen, eq, ord, hash, module = "neardup", from_py_object)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $class(pub [u8; $bytes]);

        #[pymethods]
        impl $class {
            /// Width in bits, which is also the maximum distance.
            #[classattr]
            const BITS: u32 = 8 * $bytes;

            #[new]
            #[pyo3(signature = (value, /))]
            fn new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                if let Ok(same) = value.cast::<Self>() {
                    return Ok(*same.get());
                }
                parse(value, stringify!($class)).map(Self)
            }

            /// Number of bits in which the two differ; the operator `<~>` of SQL.
            #[pyo3(signature = (other, /))]
            fn hamming_distance(&self, other: Option<&Self>) -> Option<u32> {
                Some(distance(&self.0, &other?.0))
            }

            /// Jaccard similarity, 0 to 1, that the distance of two fingerprints by minhash64 or
            /// minhash128 estimates; `fingerprint_similarity` of SQL. Meaningless for others.
            #[pyo3(signature = (other, /))]
            fn similarity(&self, other: Option<&Self>) -> Option<f64> {
                let distance = distance(&self.0, &other?.0);
                Some(minhash_fingerprint::similarity(distance, Self::BITS))
            }

            /// Number of 1 bits.
            fn bit_count(&self) -> u32 {
                self.0.iter().map(|byte| byte.count_ones()).sum()
            }

            fn __str__(&self) -> String {
                hex(&self.0)
            }

            fn __repr__(&self) -> String {
                format!("{}('{}')", stringify!($class), hex(&self.0))
            }

            fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &self.0)
            }

            fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let bytes = PyBytes::new(py, &self.0);
                py.get_type::<PyInt>().call_method1("from_bytes", (bytes, "big"))
            }

            fn __reduce__<'py>(
                slf: &Bound<'py, Self>,
            ) -> (Bound<'py, pyo3::types::PyType>, (Bound<'py, PyBytes>,)) {
                (slf.get_type(), (PyBytes::new(slf.py(), &slf.get().0),))
            }

            $($more)*
        }
    };
}

fingerprint_class!(
    /// Value of the SQL type `fingerprint`: 64 bits.
    Fingerprint, 8, {
        /// Fingerprint with the bits of a signed number, as in a column of type bigint.
        #[staticmethod]
        #[pyo3(signature = (value, /))]
        fn from_bigint(#[pyo3(from_py_with = options::bigint)] value: i64) -> Self {
            Self(value.to_be_bytes())
        }

        /// Bits as a signed number, like a cast to bigint.
        #[pyo3(name = "to_bigint")]
        fn bigint(&self) -> i64 {
            i64::from_be_bytes(self.0)
        }
    }
);
fingerprint_class!(
    /// Value of the SQL type `fingerprint128`: 128 bits.
    Fingerprint128, 16, {}
);
fingerprint_class!(
    /// Value of the SQL type `fingerprint256`: 256 bits.
    Fingerprint256, 32, {}
);

impl From<u64> for Fingerprint {
    fn from(bits: u64) -> Self {
        Self(bits.to_be_bytes())
    }
}

impl From<u128> for Fingerprint128 {
    fn from(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }
}
