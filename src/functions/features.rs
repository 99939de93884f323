//! Simhash of features that the caller gives: `simhash(features, weights, scheme)`,
//! `simhash(hashes, weights, scheme)` and `simhash128(features, weights)`.
use std::borrow::Cow;

use neardup_sketch::foreign_schemes::SimhashScheme;
use neardup_sketch::{WeightError, simhash128_features};
use pgrx::pg_sys::Datum;

use super::text_options;
use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};
use neardup_pg::arguments::Array;
use neardup_pg::arrays::ArrayElement;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;

/// Number of features between two checks for interrupts.
const CHECK_EVERY: usize = 4096;

/// First two arguments of the functions in this file: an array of features or of their hashes, and
/// an optional array of weights.
struct Weighted<'a, T> {
    values: Array<'a, T>,
    weights: Option<Array<'a, f64>>,
}

impl<'a, T: ArrayElement<'a>> Weighted<'a, T> {
    /// Reads arguments 0 and 1. Returns `None` if argument 0 is NULL. Raises an error unless there
    /// is one weight for each value. `name` is the name of argument 0.
    fn new(call: &'a Call, name: &str) -> Option<Self> {
        if call.is_null(0) {
            return None;
        }
        let weights = (!call.is_null(1)).then(|| call.array::<f64>(1, "weights"));
        let values = call.array::<T>(0, name);
        if let Some(weights) = &weights
            && weights.len() != values.len()
        {
            let (values, weights) = (values.len(), weights.len());
            UserError::invalid_parameter("numbers of features and weights differ")
                .detail(format!(
                    "There are {values} features and {weights} weights."
                ))
                .hint("Pass one weight for each feature, or no weights at all.")
                .raise();
        }
        Some(Self { values, weights })
    }

    /// Returns each feature or hash with its weight, which is 1 without an array of weights.
    fn iter(&self) -> impl Iterator<Item = (T, f64)> {
        let mut weights = self.weights.as_ref().map(Array::iter);
        self.values.iter().enumerate().map(move |(n, value)| {
            if n % CHECK_EVERY == 0 {
                check_interrupts();
            }
            let weight = weights.as_mut().and_then(Iterator::next);
            (value, weight.unwrap_or(1.0))
        })
    }
}

/// Returns the simhash scheme whose name is in argument 2, or `None` if the argument is NULL.
fn scheme(call: &Call) -> Option<SimhashScheme> {
    (!call.is_null(2)).then(|| text_options::named(call, 2))
}

/// Converts a computed fingerprint to a Datum; `None` if there is no fingerprint. Raises an error
/// if a weight was invalid.
fn fingerprint<T: Fingerprint>(found: Result<Option<T>, WeightError>) -> Option<Datum> {
    match found {
        Ok(fingerprint) => fingerprint.map(Fingerprint::into_datum),
        Err(error) => bad_weight(&format!("Weight {}", error.index + 1), error).raise(),
    }
}

/// `simhash(features, weights, scheme)`: simhash of features given as text. NULL if there are no
/// features, unless the scheme has a fingerprint for that case.
fn of_features(call: &mut Call) -> Datum {
    let found = Weighted::<Cow<str>>::new(call, "features").zip(scheme(call));
    let found = found.and_then(|(given, scheme)| {
        let hash = |(value, weight): (Cow<str>, _)| (scheme.hash(value.as_bytes()), weight);
        let found = scheme.simhash64(given.iter().map(hash));
        fingerprint(found.map(|found| found.map(Fingerprint64)))
    });
    call.return_value(found)
}

/// `simhash(hashes, weights, scheme)`: simhash of features given as hashes. NULL if there are no
/// hashes, unless the scheme has a fingerprint for that case.
fn of_hashes(call: &mut Call) -> Datum {
    let found = Weighted::<i64>::new(call, "hashes").zip(scheme(call));
    let found = found.and_then(|(given, scheme)| {
        let hashes = given.iter().map(|(value, weight)| (value as u64, weight));
        fingerprint(
            scheme
                .simhash64(hashes)
                .map(|found| found.map(Fingerprint64)),
        )
    });
    call.return_value(found)
}

/// `simhash128(features, weights)`: 128-bit simhash of features given as text. NULL if no feature
/// has a weight above zero.
fn of_features_128(call: &mut Call) -> Datum {
    let found = Weighted::<Cow<str>>::new(call, "features").and_then(|given| {
        let weighted = (given.iter()).map(|(value, weight)| (FeatureBytes(value), weight));
        fingerprint(simhash128_features(weighted).map(|found| found.map(Fingerprint128::from)))
    });
    call.return_value(found)
}

/// Feature as bytes to hash.
struct FeatureBytes<'a>(Cow<'a, str>);

impl AsRef<[u8]> for FeatureBytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Returns the error for an invalid weight of a feature. `name` describes the weight at the
/// beginning of the error's detail, "... is infinite."
pub fn bad_weight(name: &str, error: WeightError) -> UserError {
    let value = match error.weight {
        weight if weight.is_infinite() => "infinite",
        weight => &weight.to_string(),
    };
    UserError::invalid_parameter("weights must be finite and not negative")
        .detail(format!("{name} is {value}."))
        .hint("To ignore a feature, omit it or give it the weight 0.")
}

export! {
    guarded "simhash_features" => of_features;
    guarded "simhash_hashes" => of_hashes;
    guarded "simhash128_features" => of_features_128;
}
