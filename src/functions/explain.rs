//! `neardup_explain`: two texts compared, feature by feature.
use std::io;

use neardup_sketch::memory::GrowVec;
use neardup_sketch::minhash::matches;
use neardup_sketch::options::NamedOption;
use neardup_sketch::{FeatureDiff, PlacedFeature, TextOptions, TopFeatures};
use pgrx::pg_sys::Datum;
use serde::{Serialize, Serializer};

use super::feature_rows::weight;
use super::minhash::default_family;
use super::sketcher::with_sketcher;
use super::text_options;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::jsonb::jsonb;
use crate::pg::memory::check_interrupts;

/// Function whose result `neardup_explain` explains.
#[derive(Clone, Copy, PartialEq)]
enum Explained {
    Simhash,
    Simhash128,
    Minhash64,
    Minhash128,
    /// A signature.
    Minhash,
}

impl NamedOption for Explained {
    const PARAMETER: &str = "function";
    const NAMES: &[(&str, Self)] = &[
        ("simhash", Self::Simhash),
        ("simhash128", Self::Simhash128),
        ("minhash64", Self::Minhash64),
        ("minhash128", Self::Minhash128),
        ("minhash", Self::Minhash),
    ];
}

/// Position of `weight` among the arguments of `neardup_explain`.
const WEIGHT: usize = 4;
/// Positions of `shingle` and `weight`: NULL is the default of the function.
const OPTIONAL: [usize; 2] = [3, WEIGHT];

/// `neardup_explain(a, b, options, top, function)`: a comparison as jsonb.
fn explain(call: &mut Call) -> Datum {
    if (0..call.len()).any(|n| call.is_null(n) && !OPTIONAL.contains(&n)) {
        return call.return_null();
    }
    let [a, b] = [0, 1].map(|n| call.utf8(n));
    let function: Explained = text_options::named(call, 9);
    let options = text_options::with_defaults(call, 2, function.defaults(call));
    let top = call.int4(8);
    let Ok(top) = usize::try_from(top) else {
        UserError::invalid_parameter("top must not be negative")
            .detail(format!("It is {top}."))
            .hint("It is the largest number of features in each list; 0 leaves the lists empty.")
            .raise()
    };
    let compared = function.compare(&a, &b, options);
    let diff = FeatureDiff::new(&a, &b, &options, top, &mut check_interrupts);
    let mut json = JsonBuffer::default();
    serde_json::to_writer(&mut json, &Report::new(function, &options, compared, &diff))
        .expect("a report has string keys only, and writing to memory cannot fail");
    jsonb(String::from_utf8(json.bytes).expect("JSON is UTF-8"))
}

/// Results of a function for two texts, compared.
struct Compared {
    /// Hexadecimal digits of each fingerprint; a signature is not shown.
    fingerprints: [Option<String>; 2],
    /// Bits that differ, or the share of values of a signature.
    distance: Option<Number>,
    /// Jaccard similarity that follows from the distance, if any does.
    estimate: Option<f64>,
}

impl Explained {
    /// Defaults of the function. Raises an error if there is a weight and the function has none.
    fn defaults(self, call: &Call) -> TextOptions {
        match self {
            Self::Simhash | Self::Simhash128 => TextOptions::SIMHASH,
            Self::Minhash64 | Self::Minhash128 | Self::Minhash => {
                if !call.is_null(WEIGHT) {
                    UserError::invalid_parameter(format!("{} has no weights", self.name()))
                        .detail("It looks at the set of features.")
                        .hint("Leave out weight.")
                        .raise();
                }
                TextOptions::SET
            }
        }
    }

    fn compare(self, a: &str, b: &str, options: TextOptions) -> Compared {
        let check = &mut check_interrupts;
        with_sketcher(options, |sketcher| match self {
            Self::Simhash => {
                let each = [a, b].map(|text| sketcher.simhash64(text, check));
                Compared::fingerprints(each.map(|bits| bits.map(u128::from)), 64, false)
            }
            Self::Minhash64 => {
                let each = [a, b].map(|text| sketcher.minhash64(text, check));
                Compared::fingerprints(each.map(|bits| bits.map(u128::from)), 64, true)
            }
            Self::Simhash128 => {
                let each = [a, b].map(|text| sketcher.simhash128(text, check));
                Compared::fingerprints(each, 128, false)
            }
            Self::Minhash128 => {
                let each = [a, b].map(|text| sketcher.minhash128(text, check));
                Compared::fingerprints(each, 128, true)
            }
            Self::Minhash => {
                let family = default_family();
                Compared::signatures([a, b].map(|text| sketcher.signature(text, &family, check)))
            }
        })
    }
}

impl Compared {
    /// Compares fingerprints of `bits` bits, which are of minima or of sums.
    fn fingerprints(each: [Option<u128>; 2], bits: u32, minima: bool) -> Self {
        let distance = match each {
            [Some(a), Some(b)] => Some((a ^ b).count_ones()),
            _ => None,
        };
        // Of all bits, half of those differ whose minimum does.
        let estimate = |distance: u32| 1.0 - 2.0 * f64::from(distance) / f64::from(bits);
        let digits = bits as usize / 4;
        Self {
            fingerprints: each.map(|bits| bits.map(|bits| format!("{bits:0digits$x}"))),
            distance: distance.map(|distance| Number::Double(distance.into())),
            estimate: distance
                .filter(|_| minima)
                .map(|distance| estimate(distance).max(0.0)),
        }
    }

    fn signatures(each: [Option<Vec<u32>>; 2]) -> Self {
        let similarity = match &each {
            [Some(a), Some(b)] => Some(matches(a, b) as f64 / a.len() as f64),
            _ => None,
        };
        Self {
            fingerprints: [None, None],
            distance: similarity.map(|similarity| Number::Double(1.0 - similarity)),
            estimate: similarity,
        }
    }
}

/// The result of `neardup_explain`.
#[derive(Serialize)]
struct Report<'a> {
    function: &'static str,
    options: OptionNames,
    /// Hamming distance of the fingerprints, or share of differing values of the signatures.
    distance: Option<Number>,
    /// Exact Jaccard similarity of the sets of features.
    jaccard: Option<Number>,
    /// Jaccard similarity that the distance tells; absent for a simhash.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Option<Number>>,
    a: TextSummary,
    b: TextSummary,
    shared: List<SharedFeature<'a>>,
    only_a: List<OneFeature<'a>>,
    only_b: List<OneFeature<'a>>,
}

#[derive(Serialize)]
struct OptionNames {
    /// With the number of keywords if given, as in `jieba_tfidf:50`.
    tokens: String,
    shingle: usize,
    /// Absent where the function has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<&'static str>,
    html: bool,
    accents: &'static str,
    digits: &'static str,
}

/// One of the two texts.
#[derive(Serialize)]
struct TextSummary {
    /// Hexadecimal digits; absent for a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Option<String>>,
    /// Number of distinct features.
    features: usize,
}

/// Number of features, and the heaviest of them.
#[derive(Serialize)]
struct List<T> {
    features: usize,
    heaviest: Vec<T>,
}

#[derive(Serialize)]
struct SharedFeature<'a> {
    feature: &'a str,
    weight_a: Number,
    weight_b: Number,
    /// Place of the first occurrence, in characters, as the arguments of `substr`.
    start_a: Option<usize>,
    length_a: Option<usize>,
    start_b: Option<usize>,
    length_b: Option<usize>,
}

#[derive(Serialize)]
struct OneFeature<'a> {
    feature: &'a str,
    weight: Number,
    start: Option<usize>,
    length: Option<usize>,
}

/// Start, counted from 1, and length of the place of a feature.
fn substr(placed: &PlacedFeature) -> [Option<usize>; 2] {
    match placed.place {
        Some(place) => [Some(place.start + 1), Some(place.length)],
        None => [None, None],
    }
}

/// A number, without a fraction if it is whole.
enum Number {
    Single(f32),
    Double(f64),
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Single(number) if number.fract() == 0.0 => {
                serializer.serialize_u64(number as u64)
            }
            Self::Single(number) => serializer.serialize_f32(number),
            Self::Double(number) if number.fract() == 0.0 => {
                serializer.serialize_u64(number as u64)
            }
            Self::Double(number) => serializer.serialize_f64(number),
        }
    }
}

impl<'a> Report<'a> {
    fn new(
        function: Explained,
        options: &TextOptions,
        compared: Compared,
        diff: &'a FeatureDiff,
    ) -> Self {
        let Compared {
            fingerprints: [a, b],
            distance,
            estimate,
        } = compared;
        let simhash = matches!(function, Explained::Simhash | Explained::Simhash128);
        let side = |fingerprint, only: &TopFeatures<_>| TextSummary {
            fingerprint: (function != Explained::Minhash).then_some(fingerprint),
            features: only.features + diff.shared.features,
        };
        Report {
            function: function.name(),
            options: OptionNames::new(options, simhash),
            distance,
            jaccard: diff.jaccard_similarity().map(Number::Double),
            estimate: (!simhash).then_some(estimate.map(Number::Double)),
            a: side(a, &diff.only_a),
            b: side(b, &diff.only_b),
            shared: List::new(&diff.shared, SharedFeature::new),
            only_a: List::new(&diff.only_a, OneFeature::new),
            only_b: List::new(&diff.only_b, OneFeature::new),
        }
    }
}

impl<'a> SharedFeature<'a> {
    fn new((a, b): &'a (PlacedFeature, PlacedFeature)) -> Self {
        let ([start_a, length_a], [start_b, length_b]) = (substr(a), substr(b));
        SharedFeature {
            feature: &a.feature.text,
            weight_a: Number::Single(weight(a.feature.weight)),
            weight_b: Number::Single(weight(b.feature.weight)),
            start_a,
            length_a,
            start_b,
            length_b,
        }
    }
}

impl<'a> OneFeature<'a> {
    fn new(placed: &'a PlacedFeature) -> Self {
        let [start, length] = substr(placed);
        OneFeature {
            feature: &placed.feature.text,
            weight: Number::Single(weight(placed.feature.weight)),
            start,
            length,
        }
    }
}

impl OptionNames {
    fn new(options: &TextOptions, weights: bool) -> Self {
        OptionNames {
            tokens: text_options::tokens_name(options),
            shingle: options.shingle,
            weight: weights.then(|| options.weight.name()),
            html: options.html,
            accents: options.normalize.accents.name(),
            digits: options.normalize.digits.name(),
        }
    }
}

impl<T> List<T> {
    fn new<'a, F>(top: &'a TopFeatures<F>, row: impl FnMut(&'a F) -> T) -> Self {
        let mut heaviest = Vec::new();
        heaviest.grow_all(top.heaviest.iter().map(row));
        List {
            features: top.features,
            heaviest,
        }
    }
}

/// Bytes of JSON between two checks for interrupts.
const CHECK_BYTES: usize = 1 << 18;

/// Memory for JSON that grows by error 53200 instead of an abort, and checks for interrupts.
#[derive(Default)]
struct JsonBuffer {
    bytes: Vec<u8>,
    unchecked: usize,
}

impl io::Write for JsonBuffer {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.bytes.grow_by(part);
        self.unchecked += part.len();
        if self.unchecked >= CHECK_BYTES {
            self.unchecked = 0;
            check_interrupts();
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

export! {
    guarded "neardup_explain" => explain;
}
