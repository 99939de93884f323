//! The features of texts, listed and compared: `neardup_features`, `neardup_explain`,
//! `jaccard_similarity`.
use std::io;

use neardup_sketch::memory::GrowVec;
use neardup_sketch::options::NamedOption;
use neardup_sketch::weight::FRACTION_BITS;
use neardup_sketch::{Feature, FeatureDiff, FeatureList, TextOptions, TopFeatures, hamming64};
use pgrx::pg_sys::Datum;
use serde::{Serialize, Serializer};

use super::sketcher::with_sketcher;
use super::text_options;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::jsonb::jsonb;
use crate::pg::memory::check_interrupts;
use crate::pg::srf::SetReturning;
use crate::pg::text;

/// A weight as a number. It is exact except for weights of the most frequent features.
fn weight(weight: u64) -> f32 {
    (weight as f64 / f64::from(1 << FRACTION_BITS)) as f32
}

/// The features of a text as rows.
struct FeatureRows {
    list: FeatureList,
    next: usize,
}

impl SetReturning for FeatureRows {
    fn next(&mut self, columns: &mut Vec<Option<Datum>>) -> bool {
        let Some(feature) = self.list.get(self.next) else {
            return false;
        };
        self.next += 1;
        columns.extend([
            Some(text::datum(&feature.text)),
            Some(Datum::from(weight(feature.weight).to_bits())),
            Some(Datum::from(feature.hash)),
        ]);
        true
    }
}

/// `neardup_features(body, options)`: the distinct features, the heaviest first.
fn list(call: &mut Call) -> Datum {
    call.return_set(|call| {
        let options = text_options::weighted(call, 1);
        let list = FeatureList::new(&call.utf8(0), &options, &mut check_interrupts);
        FeatureRows { list, next: 0 }
    })
}

/// `jaccard_similarity(a, b, options)`; NULL if neither text has a feature.
fn jaccard(call: &mut Call) -> Datum {
    let [a, b] = [0, 1].map(|n| call.utf8(n));
    let similarity = with_sketcher(text_options::unweighted(call, 2), |sketcher| {
        sketcher.jaccard_similarity(&a, &b, &mut check_interrupts)
    });
    call.return_value(similarity.map(|similarity| Datum::from(similarity.to_bits())))
}

/// `neardup_explain(a, b, options, top)`: a comparison as jsonb.
fn explain(call: &mut Call) -> Datum {
    let [a, b] = [0, 1].map(|n| call.utf8(n));
    let options = text_options::weighted(call, 2);
    let top = call.int4(call.len() - 1);
    let Ok(top) = usize::try_from(top) else {
        UserError::invalid_parameter("top must not be negative")
            .detail(format!("It is {top}."))
            .hint("It is the largest number of features in each list; 0 leaves the lists empty.")
            .raise()
    };
    let fingerprints = with_sketcher(options, |sketcher| {
        [&a, &b].map(|text| sketcher.simhash64(text, &mut check_interrupts))
    });
    let diff = FeatureDiff::new(&a, &b, &options, top, &mut check_interrupts);
    let mut json = JsonBuffer::default();
    serde_json::to_writer(&mut json, &Report::new(&options, fingerprints, &diff))
        .expect("a report has string keys only, and writing to memory cannot fail");
    jsonb(String::from_utf8(json.bytes).expect("JSON is UTF-8"))
}

/// The result of `neardup_explain`.
#[derive(Serialize)]
struct Report<'a> {
    options: OptionNames,
    /// Hamming distance of the fingerprints.
    distance: Option<u32>,
    jaccard: Option<Number>,
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
    weight: &'static str,
    html: bool,
    accents: &'static str,
    digits: &'static str,
}

/// One of the two texts.
#[derive(Serialize)]
struct TextSummary {
    /// Hexadecimal digits.
    fingerprint: Option<String>,
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
}

#[derive(Serialize)]
struct OneFeature<'a> {
    feature: &'a str,
    weight: Number,
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
    fn new(options: &TextOptions, fingerprints: [Option<u64>; 2], diff: &'a FeatureDiff) -> Self {
        let distance = match fingerprints {
            [Some(a), Some(b)] => Some(hamming64(a, b)),
            _ => None,
        };
        let [a, b] = fingerprints.map(|fingerprint| fingerprint.map(|bits| format!("{bits:016x}")));
        let side = |fingerprint, only: &TopFeatures<_>| TextSummary {
            fingerprint,
            features: only.features + diff.shared.features,
        };
        let one = |feature: &'a Feature| OneFeature {
            feature: &feature.text,
            weight: Number::Single(weight(feature.weight)),
        };
        Report {
            options: OptionNames::new(options),
            distance,
            jaccard: diff.jaccard_similarity().map(Number::Double),
            a: side(a, &diff.only_a),
            b: side(b, &diff.only_b),
            shared: List::new(&diff.shared, |(a, b)| SharedFeature {
                feature: &a.text,
                weight_a: Number::Single(weight(a.weight)),
                weight_b: Number::Single(weight(b.weight)),
            }),
            only_a: List::new(&diff.only_a, one),
            only_b: List::new(&diff.only_b, one),
        }
    }
}

impl OptionNames {
    fn new(options: &TextOptions) -> Self {
        let tokens = options.tokens.name();
        OptionNames {
            tokens: match options.keywords {
                0 => tokens.to_owned(),
                number => format!("{tokens}:{number}"),
            },
            shingle: options.shingle,
            weight: options.weight.name(),
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
    guarded "neardup_features" => list;
    guarded "neardup_explain" => explain;
    guarded "jaccard_similarity" => jaccard;
}
