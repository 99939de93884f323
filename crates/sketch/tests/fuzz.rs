//! Fuzz targets: hostile input for each entry point, and properties that hold for any input.
//!
//! ```sh
//! PROPTEST_CASES=100000 PROPTEST_RNG_SEED=7 cargo test -p neardup-sketch --test fuzz
//! ```
//!
//! runs more cases from another seed. A failing case is shrunk and stored in
//! `proptest-regressions/`; commit that file, so that every run tries the case first.

use neardup_sketch::foreign_schemes::SimhashScheme;
use neardup_sketch::html::html_text;
use neardup_sketch::minhash::{HashFamily, Scheme};
use neardup_sketch::minhash_fingerprint::FingerprintBuilder;
use neardup_sketch::normalize::normalized;
use neardup_sketch::options::{Accents, Digits, NamedOption, Normalize, Tokens, Weight};
use neardup_sketch::passages::{PassageLength, SharedPassages};
use neardup_sketch::tokens::jieba::UserWords;
use neardup_sketch::weight::FRACTION_BITS;
use neardup_sketch::{
    BitsOf, FeatureDiff, LocatedFeature, Sketcher, TextOptions, features, longest_sentences_hash,
    simhash64_features, simhash128_features,
};
use proptest::prelude::*;

/// Fragments of markup, scripts and encodings that parsers treat differently.
const FRAGMENTS: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<p>",
    "</p>",
    "<div hidden>",
    "<script>",
    "</script",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<svg>",
    "<math><mi>",
    "<table><td>",
    "<pre>\n",
    "<title>",
    "&amp;",
    "&#x0;",
    "&#1114112;",
    "&notit;",
    "&",
    "=\"",
    "'",
    "\0",
    "\r\n",
    "\t",
    " ",
    "\u{A0}",
    "\u{2028}",
    "\u{3000}",
    "\u{FEFF}",
    "\u{200D}",
    "\u{AD}",
    "\u{301}",
    "\u{316}",
    "\u{345}",
    "\u{3099}",
    "\u{E0100}",
    "\u{1F1E6}",
    "ﷺ",
    "㌖",
    "İ",
    "ẞ",
    "ς",
    "é",
    "word",
    "Word's",
    "3.14",
    "1,000",
    "__",
    "中国",
    "的",
    "，",
    "。",
    "カ",
    "か゛",
    "한국",
    "ᄀ",
    "שָׁ",
    "กำ",
    "हि",
    "𝟗",
    "٣",
    "😀",
    "c++",
    "T恤",
];

/// Returns any text, mostly made of fragments.
fn any_text() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(FRAGMENTS).prop_map(str::to_owned);
    let repeated = (prop::sample::select(FRAGMENTS), 1_usize..40)
        .prop_map(|(fragment, times)| fragment.repeat(times));
    let bytes = prop::collection::vec(any::<u8>(), 0..12)
        .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let piece = prop_oneof![8 => fragment, 1 => repeated, 1 => bytes, 1 => "\\PC{0,6}"];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Returns any value of an option.
fn any_named<T: NamedOption + std::fmt::Debug>() -> impl Strategy<Value = T> {
    prop::sample::select(T::NAMES).prop_map(|(_, value)| value)
}

fn any_options() -> impl Strategy<Value = TextOptions> {
    (
        any_named::<Tokens>(),
        prop_oneof![8 => 1_usize..6, 1 => 1_usize..=100],
        any_named::<Weight>(),
        any_named::<Accents>(),
        any_named::<Digits>(),
        any::<bool>(),
        0_usize..20,
    )
        .prop_map(
            |(tokens, shingle, weight, accents, digits, html, keywords)| TextOptions {
                tokens,
                shingle,
                weight,
                normalize: Normalize { accents, digits },
                html,
                keywords,
            },
        )
}

fn any_weight() -> impl Strategy<Value = f64> {
    let special = [
        f64::NAN,
        f64::INFINITY,
        -0.0,
        f64::MAX,
        f64::from_bits(1),
        -1.0,
    ];
    prop_oneof![1_u32 => any::<f64>(), 4 => 0.0..1e6, 1 => prop::sample::select(special.to_vec())]
}

/// Callback of computations that are never stopped.
fn unchecked() {}

proptest! {
    /// For any text and options, all results agree with the list of features. A sketcher that has
    /// read other texts gives the same results as a new one.
    #[test]
    fn tokenizers(texts in prop::collection::vec((any_text(), any_options()), 1..4)) {
        let mut used = Sketcher::new(TextOptions::SIMHASH);
        let family = HashFamily::new(Scheme::Neardup1, 16, 1).unwrap();
        for (text, options) in texts {
            let listed = features(&text, &options, &mut unchecked);
            let scale = 2f64.powi(FRACTION_BITS as i32);
            let weighted = || listed.iter().map(|f| (&f.text, f.weight as f64 / scale));
            let hashes: Vec<u64> = listed.iter().map(|feature| feature.hash).collect();
            let mut minhash = FingerprintBuilder::<1>::default();
            minhash.add(&hashes);
            let expected = (
                simhash64_features(weighted()).unwrap(),
                simhash128_features(weighted()).unwrap(),
                minhash.finish(&mut unchecked).map(|[word]| word),
                family.signature(listed.iter().map(|feature| feature.text.as_bytes())),
            );
            used.set_options(options);
            for sketcher in [&mut used, &mut Sketcher::new(options)] {
                let found = (
                    sketcher.simhash64(&text, &mut unchecked),
                    sketcher.simhash128(&text, &mut unchecked),
                    sketcher.minhash64(&text, &mut unchecked),
                    sketcher.signature(&text, &family, &mut unchecked),
                );
                prop_assert_eq!(found, expected.clone());
                let own = (!listed.is_empty()).then_some(1.0);
                prop_assert_eq!(sketcher.containment(&text, &text, &mut unchecked), own);
                prop_assert_eq!(sketcher.jaccard_similarity(&text, &text, &mut unchecked), own);
            }
            let bits_of = Some(BitsOf::Simhash64);
            let diff = FeatureDiff::new(&text, "", &options, 3, bits_of, &mut unchecked);
            prop_assert_eq!(diff.only_a.features, listed.len());
            let heaviest = diff.only_a.heaviest.iter().map(|placed| placed.feature.weight);
            let mut heaviest: Vec<u64> = heaviest.collect();
            heaviest.sort_unstable_by(|a, b| b.cmp(a));
            let weights = listed.iter().map(|feature| feature.weight);
            prop_assert_eq!(heaviest, weights.take(3).collect::<Vec<_>>());
            for LocatedFeature { feature, span } in &diff.only_a.heaviest {
                prop_assert!(listed.contains(feature) && span.is_some(), "{:?}", feature);
            }
        }
    }

    /// Hashes of passages are hashes of features, and a text shares its whole text with itself.
    #[test]
    fn passages(texts in prop::collection::vec((any_text(), any_options()), 1..4), more in 0..9) {
        let mut used = Sketcher::new(TextOptions::PASSAGES);
        for (text, options) in texts {
            let length = options.shingle as i64 + i64::from(more);
            let Ok(length) = PassageLength::new(length, &options) else {
                prop_assert_eq!(options.tokens, Tokens::JiebaTfidf);
                continue;
            };
            let listed = features(&text, &options, &mut unchecked);
            used.set_options(options);
            let hashes = used.passages(&text, length, None, &mut unchecked);
            prop_assert_eq!(hashes.is_empty(), listed.is_empty());
            let known = |hash: &u64| listed.iter().any(|feature| feature.hash == *hash);
            prop_assert!(hashes.iter().all(known));
            let again = Sketcher::new(options).passages(&text, length, None, &mut unchecked);
            prop_assert_eq!(again, hashes);
            let own = SharedPassages::new(&text, &text, length, &options, &mut unchecked);
            let expected = usize::from(own.a_tokens >= length.get());
            prop_assert_eq!(own.passages.len(), expected);
            for passage in own.passages {
                prop_assert_eq!(passage.tokens, own.a_tokens);
                prop_assert!(passage.a.is_some() && passage.a == passage.b);
            }
        }
    }

    /// The text of a page is bounded and has its white space collapsed. Written as HTML again, it
    /// gives the same text.
    #[test]
    fn html(page in any_text()) {
        let text = html_text(&page, &mut unchecked);
        prop_assert!(text.len() <= page.len() + page.len() / 5 + 3 * page.matches('\0').count());
        prop_assert!(!text.starts_with(['\n', '\t', ' ']) && !text.contains("  "), "{text:?}");
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('\0', " ");
        let again = html_text(&format!("<pre>{escaped}</pre>"), &mut unchecked);
        let words = |text: &str| -> Vec<String> {
            let words = text.split(['\0', '\t', '\n', ' ']);
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        prop_assert_eq!(words(&again), words(&text));
    }

    /// A name is the name of a value, or the error lists the known names.
    #[test]
    fn option_names(name in prop_oneof![
        "[a-z_0-9:]{0,14}",
        "\\PC{0,6}",
        prop::sample::select(vec!["word", "Sqrt", "keep", "zero", "jieba_tfidf"])
            .prop_map(str::to_owned),
    ]) {
        fn check<T: NamedOption + std::fmt::Debug>(name: &str) {
            match T::from_name(name.as_bytes()) {
                Ok(value) => assert_eq!(value.name(), name),
                Err(error) => {
                    assert!(!error.known.contains(&name));
                    assert_eq!(error.known.len(), T::NAMES.len());
                }
            }
        }
        check::<Tokens>(&name);
        check::<Weight>(&name);
        check::<Accents>(&name);
        check::<Digits>(&name);
        check::<Scheme>(&name);
        check::<SimhashScheme>(&name);
    }

    /// The normal form is stable, and the hash of sentences does not depend on case and form.
    #[test]
    fn normal_form(text in any_text(), number in 1_usize..5) {
        let normal = normalized(&text);
        prop_assert_eq!(normalized(&normal), normal.clone());
        let hash = longest_sentences_hash(&text, number, &mut unchecked);
        prop_assert_eq!(hash.is_some(), !features(&text, &TextOptions::SIMHASH, &mut unchecked)
            .is_empty());
    }

    /// A list of words either fails with the invalid entry, or its order does not matter.
    #[test]
    fn user_words(entries in prop::collection::vec(
        prop_oneof!["[一-龥]{1,4}( [0-9]{1,10})?", "[ -~一-三]{0,6}", "\\PC{0,4}"],
        0..6,
    )) {
        let list = entries.join(",");
        match UserWords::parse(&list) {
            Ok(words) => {
                let spaced = entries.join(" , ");
                prop_assert_eq!(UserWords::parse(&spaced), Ok(words));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    /// Any weights and features give a fingerprint or the position of an invalid weight.
    #[test]
    fn given_features(
        given in prop::collection::vec((any_text(), any_weight()), 0..8),
        scheme in any_named::<SimhashScheme>(),
    ) {
        let bad = given.iter().position(|(_, w)| !(w.is_finite() && *w >= 0.0));
        let hashes = given.iter().map(|(text, weight)| (scheme.hash(text.as_bytes()), *weight));
        prop_assert_eq!(scheme.simhash64(hashes).is_err(), bad.is_some());
        let pairs = given.iter().map(|(text, weight)| (text, *weight));
        prop_assert_eq!(simhash128_features(pairs).is_err(), bad.is_some());
    }
}
