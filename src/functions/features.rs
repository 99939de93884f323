//! `simhash(features, weights, scheme)`, the same of ready-made hashes, and `simhash128(features,
//! weights)`.
use neardup_sketch::foreign_schemes::SimhashScheme;
use neardup_sketch::options::NamedOption;
use neardup_sketch::{FeatureError, simhash128_features};
use pgrx::pg_sys::Datum;

use super::arrays::{Element, FLOAT8, INT8, TEXT, elements};
use super::text_options;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::memory::check_interrupts;
use crate::pg::{text, varlena};
use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};

/// Features between two looks for a request to cancel.
const CHECK_EVERY: usize = 4096;

/// The first two arguments: what has weights, and those.
struct Weighted<'a> {
    values: &'a [Datum],
    weights: Option<&'a [Datum]>,
}

impl<'a> Weighted<'a> {
    /// `None` if there are no values at all, but NULL. `name` is that of the first argument.
    ///
    /// # Safety
    /// The function is declared with an array of `element` and one of double precision. The result
    /// lives as long as the arguments and as the current memory context.
    unsafe fn of(call: &Call, name: &str, element: &Element) -> Option<Self> {
        if call.is_null(0) {
            return None;
        }
        // SAFETY: as the caller promises.
        let (values, weights) = unsafe {
            let weights = (!call.is_null(1)).then(|| elements(call.arg(1), "weights", &FLOAT8));
            (elements(call.arg(0), name, element), weights)
        };
        if let Some(weights) = weights
            && weights.len() != values.len()
        {
            refuse(FeatureError::LengthMismatch {
                features: values.len(),
                weights: weights.len(),
            });
        }
        Some(Self { values, weights })
    }

    /// Each value with its weight.
    fn iter(&self) -> impl Iterator<Item = (Datum, f64)> {
        self.values.iter().enumerate().map(|(n, value)| {
            if n % CHECK_EVERY == 0 {
                check_interrupts();
            }
            let weight = |weights: &[Datum]| f64::from_bits(weights[n].value() as u64);
            (*value, self.weights.map_or(1.0, weight))
        })
    }
}

/// Text of a feature, as its hash takes it.
fn feature<'a>(datum: Datum) -> std::borrow::Cow<'a, str> {
    // SAFETY: only called with the elements of text[] arguments, which live as long as the call.
    unsafe { text::utf8(datum) }
}

/// The scheme that the third argument names; `None` for NULL.
fn scheme(call: &Call) -> Option<SimhashScheme> {
    if call.is_null(2) {
        return None;
    }
    // SAFETY: declared to take text.
    let name = unsafe { varlena::bytes(call.arg(2)) };
    Some(SimhashScheme::from_name(name).unwrap_or_else(|error| text_options::refuse(&error, name)))
}

fn returned(call: &mut Call, found: Result<Option<impl Fingerprint>, FeatureError>) -> Datum {
    match found {
        Ok(fingerprint) => call.return_value(fingerprint.map(Fingerprint::into_datum)),
        Err(error) => refuse(error),
    }
}

/// `simhash(features, weights, scheme)`; NULL if the scheme makes nothing of no features.
fn of_features(call: &mut Call) -> Datum {
    // SAFETY: declared to take text[] and double precision[].
    let given = unsafe { Weighted::of(call, "features", &TEXT) };
    let (Some(given), Some(scheme)) = (given, scheme(call)) else {
        return call.return_null();
    };
    let hash = |(value, weight)| (scheme.hash(feature(value).as_bytes()), weight);
    let found = scheme.simhash64(given.iter().map(hash));
    returned(call, found.map(|found| found.map(Fingerprint64)))
}

/// `simhash(hashes, weights, scheme)`, likewise.
fn of_hashes(call: &mut Call) -> Datum {
    // SAFETY: declared to take bigint[] and double precision[].
    let given = unsafe { Weighted::of(call, "hashes", &INT8) };
    let (Some(given), Some(scheme)) = (given, scheme(call)) else {
        return call.return_null();
    };
    let hash = |(value, weight): (Datum, f64)| (value.value() as u64, weight);
    let found = scheme.simhash64(given.iter().map(hash));
    returned(call, found.map(|found| found.map(Fingerprint64)))
}

/// `simhash128(features, weights)`; NULL if there is no feature of a weight above zero.
fn of_features_128(call: &mut Call) -> Datum {
    // SAFETY: declared to take text[] and double precision[].
    let Some(given) = (unsafe { Weighted::of(call, "features", &TEXT) }) else {
        return call.return_null();
    };
    let weighted = given
        .iter()
        .map(|(value, weight)| (Bytes(feature(value)), weight));
    let found = simhash128_features(weighted);
    returned(call, found.map(|found| found.map(Fingerprint128::from)))
}

struct Bytes<'a>(std::borrow::Cow<'a, str>);

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Raises the error about features or weights.
pub fn refuse(error: FeatureError) -> ! {
    match error {
        FeatureError::LengthMismatch { features, weights } => {
            UserError::invalid_parameter("features and weights differ in number")
                .detail(format!(
                    "There are {features} features and {weights} weights."
                ))
                .hint("Give one weight for each feature, or no weights at all.")
        }
        FeatureError::NotANumber { index }
        | FeatureError::Infinite { index }
        | FeatureError::Negative { index, .. } => {
            bad_weight(&format!("Weight {}", index + 1), error)
        }
    }
    .raise()
}

/// The error about a weight, which the detail calls as `name` says.
pub fn bad_weight(name: &str, error: FeatureError) -> UserError {
    let value = match error {
        FeatureError::Infinite { .. } => "infinite",
        FeatureError::Negative { weight, .. } => &weight.to_string(),
        _ => "NaN",
    };
    UserError::invalid_parameter("a weight is not a finite number of zero or more")
        .detail(format!("{name} is {value}."))
        .hint("A feature that should count against others has no meaning here; leave it out, or give it the weight 0.")
}

export! {
    guarded "simhash_features" => of_features;
    guarded "simhash_hashes" => of_hashes;
    guarded "simhash128_features" => of_features_128;
}
