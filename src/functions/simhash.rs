//! `simhash(text)`, `simhash(text[], real[])`, and the same as `simhash128`.
use neardup_sketch::{
    FeatureError, TextOptions, simhash64_features, simhash64_text, simhash128_features,
    simhash128_text,
};
use pgrx::pg_sys::Datum;

use crate::functions::arrays::{FLOAT4, TEXT, elements};
use crate::functions::text_options;
use crate::pg::call::{Call, export};
use crate::pg::errors::UserError;
use crate::pg::text;
use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};

/// Features between two looks for a request to cancel.
const CHECK_EVERY: usize = 4096;

/// A fingerprint type that texts have.
trait Simhash: Fingerprint {
    /// The fingerprint of a text; `None` if it has no feature.
    fn of_text(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Option<Self>;
    /// The fingerprint of features; `None` if none has a weight above zero.
    fn of_features<'a>(
        features: impl Iterator<Item = Feature<'a>>,
    ) -> Result<Option<Self>, FeatureError>;
}

/// A feature with its weight.
type Feature<'a> = (Bytes<'a>, f32);

impl Simhash for Fingerprint64 {
    fn of_text(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Option<Self> {
        simhash64_text(text, options, check).map(Fingerprint64)
    }
    fn of_features<'a>(
        features: impl Iterator<Item = Feature<'a>>,
    ) -> Result<Option<Self>, FeatureError> {
        Ok(simhash64_features(features)?.map(Fingerprint64))
    }
}

impl Simhash for Fingerprint128 {
    fn of_text(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Option<Self> {
        simhash128_text(text, options, check).map(Fingerprint128::from)
    }
    fn of_features<'a>(
        features: impl Iterator<Item = Feature<'a>>,
    ) -> Result<Option<Self>, FeatureError> {
        Ok(simhash128_features(features)?.map(Fingerprint128::from))
    }
}

fn returned(call: &mut Call, fingerprint: Option<impl Fingerprint>) -> Datum {
    match fingerprint {
        Some(fingerprint) => fingerprint.into_datum(),
        None => call.return_null(),
    }
}

/// Raises an error if the memory that a long text usually takes cannot be had: in the midst of the
/// work a failing allocation would end the server's process.
fn require_memory(length: usize) {
    // Some three times the text, which is also what the worst of ordinary texts take.
    const FACTOR: usize = 3;
    const LONG: usize = 1 << 20;
    if length > LONG && Vec::<u8>::new().try_reserve_exact(FACTOR * length).is_err() {
        UserError::out_of_memory().raise();
    }
}

/// The fingerprint of a text; NULL if it has no feature.
fn of_text<T: Simhash>(call: &mut Call) -> Datum {
    // SAFETY: declared to take text and the parameters that are read here.
    let (text, options) = unsafe { (text::utf8(call.arg(0)), text_options::weighted(call, 1)) };
    require_memory(text.len());
    let fingerprint = T::of_text(&text, &options, &mut || {
        pgrx::check_for_interrupts!();
    });
    returned(call, fingerprint)
}

/// The fingerprint of features with weights; NULL if there is no feature of a weight above zero.
fn of_features<T: Simhash>(call: &mut Call) -> Datum {
    if call.is_null(0) {
        return call.return_null();
    }
    // SAFETY: declared to take text[] and real[].
    let features = unsafe { elements(call.arg(0), "features", &TEXT) };
    let weights = if call.is_null(1) {
        None
    } else {
        // SAFETY: as above.
        Some(unsafe { elements(call.arg(1), "weights", &FLOAT4) })
    };
    if let Some(weights) = weights
        && weights.len() != features.len()
    {
        refuse(FeatureError::LengthMismatch {
            features: features.len(),
            weights: weights.len(),
        });
    }
    let weighted = features.iter().enumerate().map(|(n, feature)| {
        if n % CHECK_EVERY == 0 {
            pgrx::check_for_interrupts!();
        }
        // SAFETY: the elements of text[] are texts, which live as long as the array.
        let feature = unsafe { text::utf8(*feature) };
        (
            Bytes(feature),
            weights.map_or(1.0, |weights| f32::from_bits(weights[n].value() as u32)),
        )
    });
    match T::of_features(weighted) {
        Ok(fingerprint) => returned(call, fingerprint),
        Err(error) => refuse(error),
    }
}

struct Bytes<'a>(std::borrow::Cow<'a, str>);

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn refuse(error: FeatureError) -> ! {
    match error {
        FeatureError::LengthMismatch { features, weights } => {
            UserError::invalid_parameter("features and weights differ in number")
                .detail(format!(
                    "There are {features} features and {weights} weights."
                ))
                .hint("Give one weight for each feature, or no weights at all.")
        }
        FeatureError::NotANumber { index } => bad_weight(index, "NaN"),
        FeatureError::Infinite { index } => bad_weight(index, "infinite"),
        FeatureError::Negative { index, weight } => bad_weight(index, &weight.to_string()),
    }
    .raise()
}

fn bad_weight(index: usize, value: &str) -> UserError {
    UserError::invalid_parameter("a weight is not a finite number of zero or more")
        .detail(format!("Weight {} is {value}.", index + 1))
        .hint("A feature that should count against others has no meaning here; leave it out, or give it the weight 0.")
}

export! {
    guarded "simhash_text" => of_text::<Fingerprint64>;
    guarded "simhash_features" => of_features::<Fingerprint64>;
    guarded "simhash128_text" => of_text::<Fingerprint128>;
    guarded "simhash128_features" => of_features::<Fingerprint128>;
}
