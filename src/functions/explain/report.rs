//! Structure of the JSON that `neardup_explain` returns.
use neardup_sketch::memory::GrowVec;
use neardup_sketch::options::NamedOption;
use neardup_sketch::{
    CharSpan, FeatureDiff, LocatedFeature, Passage, TextChange, TextOptions, TopFeatures,
};
use serde::{Serialize, Serializer};

use crate::functions::feature_rows::weight;
use neardup_pg::server_text::{ServerPart, ServerText};

/// Comparison of the explained function's results for two texts.
pub struct Compared {
    /// True if the function returns signatures, not fingerprints.
    pub is_signature: bool,
    /// True if the function is a simhash: its features have weights, and its distance does not
    /// estimate a similarity.
    pub has_weights: bool,
    /// Hexadecimal digits of the fingerprint of each text; `None` if a text has none. Signatures
    /// are not shown.
    pub fingerprints: [Option<String>; 2],
    /// Number of differing bits of the fingerprints, or share of differing values of the
    /// signatures. `None` if a text has no features.
    pub distance: Option<Number>,
    /// Jaccard similarity that the distance estimates, if it estimates one.
    pub estimate: Option<f64>,
}

/// JSON object that `neardup_explain` returns.
#[derive(Serialize)]
pub struct Report<'a> {
    function: &'static str,
    options: OptionNames,
    /// Number of differing bits of the fingerprints, or share of differing values of the
    /// signatures.
    distance: Option<Number>,
    /// Exact Jaccard similarity of the feature sets of both texts. Null if neither text has a
    /// feature.
    jaccard: Option<Number>,
    /// Jaccard similarity that the distance estimates. Null if there is no distance, absent for a
    /// simhash.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Option<Number>>,
    a: TextSummary,
    b: TextSummary,
    shared: List<SharedFeature<'a>>,
    only_a: List<OneFeature<'a>>,
    only_b: List<OneFeature<'a>>,
    /// Changes: passages of neighbouring features that only one text has.
    changes: Changes<'a>,
}

/// Text options by which both texts were turned into features.
#[derive(Serialize)]
struct OptionNames {
    /// Kind of tokens, with the number of keywords if there is one, as in `jieba_tfidf:50`.
    tokens: String,
    shingle: usize,
    /// Name of the weighting of features. Absent if the explained function has no weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<&'static str>,
    html: bool,
    accents: &'static str,
    digits: &'static str,
}

/// Facts about one of the two texts.
#[derive(Serialize)]
struct TextSummary {
    /// Hexadecimal digits of the fingerprint; null if the text has none. Absent for signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Option<String>>,
    /// Number of distinct features of the text.
    features: usize,
}

/// List of features in the report: the features that both texts have, or the features that only one
/// text has. It has their number, and the features with the largest weights.
#[derive(Serialize)]
struct List<T> {
    features: usize,
    heaviest: Vec<T>,
}

/// Number of changes between the texts, and the largest changes.
#[derive(Serialize)]
struct Changes<'a> {
    count: usize,
    largest: Vec<Change<'a>>,
}

/// Differing passages of both texts at one position. A passage is null if the text has no differing
/// passage at this position.
#[derive(Serialize)]
struct Change<'a> {
    a: Option<ShownPassage<'a>>,
    b: Option<ShownPassage<'a>>,
    /// Number of bits in which the fingerprints differ because of this change. Absent for
    /// signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<u32>,
}

/// Passage of one text that the other text does not have.
#[derive(Serialize)]
struct ShownPassage<'a> {
    text: &'a str,
    /// Position in characters, as an argument of `substr`; null if it is not known.
    start: Option<i32>,
    /// Number of characters, as an argument of `substr`; null if the position is not known.
    length: Option<i32>,
    /// Number of distinct features of the passage.
    features: usize,
}

/// Feature that both texts have.
#[derive(Serialize)]
struct SharedFeature<'a> {
    feature: &'a str,
    weight_a: Number,
    weight_b: Number,
    /// Position of the first occurrence in the first text, in characters, as an argument of
    /// `substr`.
    start_a: Option<i32>,
    /// Number of characters of the first occurrence in the first text.
    length_a: Option<i32>,
    /// Position of the first occurrence in the second text, in characters, as an argument of
    /// `substr`.
    start_b: Option<i32>,
    /// Number of characters of the first occurrence in the second text.
    length_b: Option<i32>,
}

/// Feature that only one of the two texts has.
#[derive(Serialize)]
struct OneFeature<'a> {
    feature: &'a str,
    weight: Number,
    /// Position of the first occurrence, in characters, as an argument of `substr`.
    start: Option<i32>,
    /// Number of characters of the first occurrence.
    length: Option<i32>,
}

/// Returns the part of a text at a span, extended to whole characters of the server encoding, or
/// `None` if the span is `None`.
fn part(span: Option<CharSpan>, text: &ServerText) -> Option<ServerPart> {
    Some(text.part_of_code_points(span?.code_points()))
}

/// Returns the start and the length of a part of a text, in characters, as arguments of `substr`.
fn substr(part: Option<&ServerPart>) -> [Option<i32>; 2] {
    [part.map(ServerPart::start), part.map(ServerPart::length)]
}

/// Number that is written to JSON without a fraction if it is an integer.
pub enum Number {
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
    pub fn new(
        function: &'static str,
        options: &TextOptions,
        compared: Compared,
        diff: &'a FeatureDiff,
        texts: &'a [ServerText<'_>; 2],
    ) -> Self {
        let [of_a, of_b] = texts;
        let Compared {
            is_signature,
            has_weights,
            fingerprints: [a, b],
            distance,
            estimate,
        } = compared;
        let side = |fingerprint, only: &TopFeatures<_>| TextSummary {
            fingerprint: (!is_signature).then_some(fingerprint),
            features: only.features + diff.shared.features,
        };
        Report {
            function,
            options: OptionNames::new(options, has_weights),
            distance,
            jaccard: diff.jaccard_similarity().map(Number::Double),
            estimate: (!has_weights).then_some(estimate.map(Number::Double)),
            a: side(a, &diff.only_a),
            b: side(b, &diff.only_b),
            shared: List::new(&diff.shared, |shared| SharedFeature::new(shared, texts)),
            only_a: List::new(&diff.only_a, |located| OneFeature::new(located, of_a)),
            only_b: List::new(&diff.only_b, |located| OneFeature::new(located, of_b)),
            changes: Changes {
                count: diff.changes.count,
                largest: grown(
                    (diff.changes.largest.iter()).map(|change| Change::new(change, texts)),
                ),
            },
        }
    }
}

impl<'a> Change<'a> {
    fn new(change: &'a TextChange, [a, b]: &'a [ServerText<'_>; 2]) -> Self {
        Change {
            a: (change.a.as_ref()).map(|passage| ShownPassage::new(passage, a)),
            b: (change.b.as_ref()).map(|passage| ShownPassage::new(passage, b)),
            bits: change.bits,
        }
    }
}

impl<'a> ShownPassage<'a> {
    fn new(passage: &'a Passage, text: &'a ServerText<'_>) -> Self {
        let part = part(passage.span, text);
        let [start, length] = substr(part.as_ref());
        let is_whole = |span: CharSpan| passage.text.chars().count() == span.length;
        ShownPassage {
            text: match &part {
                // The part is extended to whole characters of the server encoding.
                Some(part) if passage.span.is_some_and(is_whole) => text.utf8_part(part),
                _ => &passage.text,
            },
            start,
            length,
            features: passage.features,
        }
    }
}

impl<'a> SharedFeature<'a> {
    fn new((a, b): &'a (LocatedFeature, LocatedFeature), texts: &[ServerText<'_>; 2]) -> Self {
        let [start_a, length_a] = substr(part(a.span, &texts[0]).as_ref());
        let [start_b, length_b] = substr(part(b.span, &texts[1]).as_ref());
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
    fn new(located: &'a LocatedFeature, text: &ServerText<'_>) -> Self {
        let [start, length] = substr(part(located.span, text).as_ref());
        OneFeature {
            feature: &located.feature.text,
            weight: Number::Single(weight(located.feature.weight)),
            start,
            length,
        }
    }
}

impl OptionNames {
    fn new(options: &TextOptions, weights: bool) -> Self {
        OptionNames {
            tokens: options.tokens_name(),
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
        List {
            features: top.features,
            heaviest: grown(top.heaviest.iter().map(row)),
        }
    }
}

/// Collects an iterator into a vector. Raises an error instead of aborting if memory runs out.
fn grown<T>(rows: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    all.grow_all(rows);
    all
}
