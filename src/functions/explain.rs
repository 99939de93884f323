//! What became of a text: `neardup_features`, `neardup_explain`, `jaccard_similarity`.
use std::fmt::Write;

use neardup_sketch::memory::{Grow, GrowString, GrowVec};
use neardup_sketch::options::NamedOption;
use neardup_sketch::weight::FRACTION_BITS;
use neardup_sketch::{Feature, FeatureDiff, FeatureList, TextOptions, TopFeatures, hamming64};
use pgrx::pg_sys::{self, Datum};

use crate::functions::sketcher::with_sketcher;
use crate::functions::text_options;
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::memory::check_interrupts;
use crate::pg::srf::SetReturning;
use crate::pg::text;

/// A weight as a number. All but those of the most frequent features are exact.
fn number(weight: u64) -> f32 {
    (weight as f64 / f64::from(1 << FRACTION_BITS)) as f32
}

/// The features of a text as rows.
struct Rows {
    list: FeatureList,
    next: usize,
}

impl SetReturning for Rows {
    fn next(&mut self, columns: &mut Vec<Option<Datum>>) -> bool {
        let Some(feature) = self.list.get(self.next) else {
            return false;
        };
        self.next += 1;
        columns.extend([
            Some(text::datum(&feature.text)),
            Some(Datum::from(number(feature.weight).to_bits())),
            Some(Datum::from(feature.hash)),
        ]);
        true
    }
}

/// `neardup_features(body, options)`: the distinct features, the heaviest first.
fn list(call: &mut Call) -> Datum {
    call.return_set(|call| {
        // SAFETY: declared to take text and the parameters that are read here.
        let (body, options) = unsafe { (text::utf8(call.arg(0)), text_options::weighted(call, 1)) };
        let list = FeatureList::new(&body, &options, &mut check_interrupts);
        Rows { list, next: 0 }
    })
}

/// `jaccard_similarity(a, b, options)`; NULL if neither text has a feature.
fn jaccard(call: &mut Call) -> Datum {
    // SAFETY: declared to take two texts and the parameters that are read here.
    let (a, b, options) = unsafe {
        let [a, b] = [0, 1].map(|n| text::utf8(call.arg(n)));
        (a, b, text_options::unweighted(call, 2))
    };
    let similarity = with_sketcher(options, |sketcher| {
        sketcher.jaccard_similarity(&a, &b, &mut check_interrupts)
    });
    match similarity {
        Some(similarity) => Datum::from(similarity.to_bits()),
        None => call.return_null(),
    }
}

/// `neardup_explain(a, b, options, top)`: a comparison as jsonb.
fn explain(call: &mut Call) -> Datum {
    // SAFETY: declared to take two texts, the parameters that are read here, and an integer.
    let (a, b, options) = unsafe {
        let [a, b] = [0, 1].map(|n| text::utf8(call.arg(n)));
        (a, b, text_options::weighted(call, 2))
    };
    let top = call.arg(call.len() - 1).value() as i32;
    let Ok(top) = usize::try_from(top) else {
        UserError::invalid_parameter("top must not be negative")
            .detail(format!("It is {top}."))
            .hint("It is the largest number of features in each list; 0 leaves the lists empty.")
            .raise()
    };
    let fingerprints = with_sketcher(options, |sketcher| {
        [&a, &b].map(|text| sketcher.simhash64(text, &mut check_interrupts))
    });
    let comparison = FeatureDiff::new(&a, &b, &options, top, &mut check_interrupts);
    let json = report(&options, fingerprints, &comparison);
    // Whatever is not ASCII stands in quotes, where JSON wants two for one.
    let mut json = text::server_bytes(json, r"\\");
    json.grow_push(0);
    // SAFETY: a function of the server that takes a C string.
    unsafe {
        pgrx::direct_function_call_as_datum(pg_sys::jsonb_in, &[Some(Datum::from(json.as_ptr()))])
    }
    .expect("jsonb_in does not return NULL")
}

fn report(options: &TextOptions, fingerprints: [Option<u64>; 2], found: &FeatureDiff) -> String {
    let mut json = String::new();
    let TextOptions {
        tokens,
        shingle,
        weight,
        normalize,
        html,
        keywords,
    } = options;
    let keywords = match keywords {
        0 => String::new(),
        number => format!(":{number}"),
    };
    let _ = write!(
        json,
        r#"{{"options": {{"tokens": "{}{keywords}", "shingle": {shingle}, "weight": "{}", "html": {html}, "accents": "{}", "digits": "{}"}}"#,
        tokens.name(),
        weight.name(),
        normalize.accents.name(),
        normalize.digits.name()
    );
    let distance = match fingerprints {
        [Some(a), Some(b)] => Some(f64::from(hamming64(a, b))),
        _ => None,
    };
    push_number(&mut json, "distance", distance);
    push_number(&mut json, "jaccard", found.jaccard_similarity());
    let shared = found.shared.features;
    let counts = [
        found.only_a.features + shared,
        found.only_b.features + shared,
    ];
    for ((name, fingerprint), count) in ["a", "b"].into_iter().zip(fingerprints).zip(counts) {
        let fingerprint = fingerprint.map_or("null".to_owned(), |fp| format!("\"{fp:016x}\""));
        let _ = write!(
            json,
            r#", "{name}": {{"fingerprint": {fingerprint}, "features": {count}}}"#
        );
    }
    push_list(&mut json, "shared", &found.shared, |json, (a, b)| {
        let weights = [a.weight, b.weight].map(number);
        push_quoted(json, &a.text);
        let _ = write!(
            json,
            r#", "weight_a": {}, "weight_b": {}"#,
            weights[0], weights[1]
        );
    });
    let one = |json: &mut String, feature: &Feature| {
        push_quoted(json, &feature.text);
        let _ = write!(json, r#", "weight": {}"#, number(feature.weight));
    };
    push_list(&mut json, "only_a", &found.only_a, one);
    push_list(&mut json, "only_b", &found.only_b, one);
    json.grow_char('}');
    json
}

fn push_number(json: &mut String, name: &str, value: Option<f64>) {
    let value = value.map_or("null".to_owned(), |value| value.to_string());
    let _ = write!(json, r#", "{name}": {value}"#);
}

/// The number of features, and the heaviest of them.
fn push_list<T>(
    json: &mut String,
    name: &str,
    list: &TopFeatures<T>,
    one: impl Fn(&mut String, &T),
) {
    let features = list.features;
    let _ = write!(
        json,
        r#", "{name}": {{"features": {features}, "heaviest": ["#
    );
    for (n, feature) in list.heaviest.iter().enumerate() {
        check_interrupts();
        json.grow_str(if n == 0 { "" } else { ", " });
        json.grow_str(r#"{"feature": "#);
        one(json, feature);
        json.grow_char('}');
    }
    json.grow_str("]}");
}

/// Bytes that are quoted between two looks for a request to cancel.
const QUOTED: usize = 1 << 18;

/// A text as JSON has it, with room for the numbers that follow.
fn push_quoted(json: &mut String, text: &str) {
    const NUMBERS: usize = 200;
    json.ensure_room(text.len() + NUMBERS);
    json.push('"');
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(QUOTED));
        for c in piece.chars() {
            match c {
                '"' | '\\' => json.grow_chars(['\\', c].into_iter()),
                '\0'..='\x1F' => {
                    json.ensure_room(6);
                    let _ = write!(json, "\\u{:04x}", u32::from(c));
                }
                _ => json.grow_char(c),
            }
        }
        check_interrupts();
        rest = after;
    }
    json.ensure_room(NUMBERS);
    json.push('"');
}

export! {
    guarded "neardup_features" => list;
    guarded "neardup_explain" => explain;
    guarded "jaccard_similarity" => jaccard;
}
