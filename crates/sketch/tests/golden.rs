//! Fingerprints that must never change.
//!
//! Users store fingerprints and compare them for years. A change of any value in
//! `golden_simhash64.tsv` (64 bits), `golden_simhash128.tsv` (128 bits),
//! `golden_simhash_options.tsv` (both, for all options), `golden_minhash.tsv` (Chinese words, HTML
//! pages, and fingerprints of feature sets) or `golden_passages.tsv` (hashes of passages) is a
//! breaking change, because all stored values would have to be computed again. If this test fails
//! after an upgrade of a dependency or of the compiler, the upgrade is at fault, not the file.
//! Lines may be added.
//!
//! In the first two files, a line has the fingerprint in hex or `none`, the number of repetitions
//! of the text, and the text, with `\u{HEX}` for characters that are hard to see and `\\` for a
//! backslash. In the third file, a line that begins with `=` has the repetitions and the text.
//! Below it is a line for each set of options, with their names, the 64-bit fingerprint and the
//! 128-bit fingerprint. In the fourth file, `page` may follow the names if the text is an HTML
//! page. The line also has the 64-bit and 128-bit fingerprints of the set of features, and the
//! hash of its signature of 128 values. In the fifth file, the names are followed by the length of
//! passages, the number of hashes, their hash, and the first hashes.

mod reference;
mod runs;

use std::collections::BTreeSet;

use neardup_sketch::Sketcher;
use neardup_sketch::hash::feature_hash;
use neardup_sketch::html::html_text;
use neardup_sketch::minhash::{HashFamily, Scheme};
use neardup_sketch::minhash_fingerprint::FingerprintBuilder;
use neardup_sketch::options::{self, NamedOption, Normalize, TextOptions, Tokens};
use neardup_sketch::passages::PassageLength;

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out += before;
        if let Some(after) = after.strip_prefix('\\') {
            out.push('\\');
            rest = after;
        } else {
            let (code, after) = after.strip_prefix("u{").unwrap().split_once('}').unwrap();
            out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            rest = after;
        }
    }
    out + rest
}

fn hex64(fingerprint: Option<u64>) -> String {
    fingerprint.map_or("none".to_owned(), |fp| format!("{fp:016x}"))
}

fn hex128(fingerprint: Option<u128>) -> String {
    fingerprint.map_or("none".to_owned(), |fp| format!("{fp:032x}"))
}

fn today64(text: &str, options: &TextOptions) -> String {
    hex64(Sketcher::new(*options).simhash64(text, &mut || ()))
}

fn today128(text: &str, options: &TextOptions) -> String {
    hex128(Sketcher::new(*options).simhash128(text, &mut || ()))
}

/// Compares the fingerprints of a file with the current ones, and these with the definition.
fn check(golden: &str, today: fn(&str) -> String, definition: fn(&str) -> String) {
    let mut wrong = Vec::new();
    for line in golden.lines() {
        let [expected, repeat, escaped] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            panic!("not three columns: {line:?}");
        };
        let text = unescape(escaped).repeat(repeat.parse().unwrap());
        let got = today(&text);
        assert_eq!(
            got,
            definition(&text),
            "differs from the definition: {line:?}"
        );
        if got != expected {
            wrong.push(format!("{got}\t{repeat}\t{escaped}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "changed fingerprints, as they are now:\n{}",
        wrong.join("\n")
    );
    assert!(golden.lines().count() >= 75);
}

#[test]
fn fingerprints_never_change() {
    check(
        include_str!("golden_simhash64.tsv"),
        |text| today64(text, &TextOptions::SIMHASH),
        |text| hex64(reference::simhash64(text, &TextOptions::SIMHASH)),
    );
}

#[test]
fn wide_fingerprints_never_change() {
    check(
        include_str!("golden_simhash128.tsv"),
        |text| today128(text, &TextOptions::SIMHASH),
        |text| hex128(reference::simhash128(text, &TextOptions::SIMHASH)),
    );
}

/// Returns the options with these names: tokens (with a number of keywords), shingle, weight,
/// accents, digits, and `page` for an HTML page.
fn named(names: &str) -> TextOptions {
    let names: Vec<&str> = names.split(' ').collect();
    let [tokens, shingle, weight, accents, digits] = names[..5] else {
        panic!("not five names: {names:?}");
    };
    let (tokens, keywords) = tokens.split_once(':').unwrap_or((tokens, "0"));
    TextOptions {
        html: names.get(5) == Some(&"page"),
        keywords: keywords.parse().unwrap(),
        tokens: NamedOption::from_name(tokens.as_bytes()).unwrap(),
        shingle: shingle.parse().unwrap(),
        weight: NamedOption::from_name(weight.as_bytes()).unwrap(),
        normalize: Normalize {
            accents: NamedOption::from_name(accents.as_bytes()).unwrap(),
            digits: NamedOption::from_name(digits.as_bytes()).unwrap(),
        },
    }
}

#[test]
fn fingerprints_of_all_options_never_change() {
    let golden = include_str!("golden_simhash_options.tsv");
    let (mut now, mut text, mut checked) = (String::new(), String::new(), 0);
    for line in golden.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        if let ["=", repeat, escaped] = columns[..] {
            text = unescape(escaped).repeat(repeat.parse().unwrap());
            now += &format!("{line}\n");
            continue;
        }
        let options = named(columns[0]);
        let (narrow, wide) = (today64(&text, &options), today128(&text, &options));
        let definition = hex64(reference::simhash64(&text, &options));
        assert_eq!(narrow, definition, "differs from the definition: {line:?}");
        let definition = hex128(reference::simhash128(&text, &options));
        assert_eq!(wide, definition, "differs from the definition: {line:?}");
        now += &format!("{}\t{narrow}\t{wide}\n", columns[0]);
        checked += 1;
    }
    assert!(
        now == golden,
        "changed fingerprints, the file as it were now:\n{now}"
    );
    assert!(checked >= 400, "{checked}");
}

/// Returns the features of a text as a set, by the definition. Takes Chinese words from the crate.
/// Another test compares them with jieba.
fn set_of(text: &str, options: &TextOptions) -> Vec<String> {
    if options.tokens.need_dictionary() {
        let listed = neardup_sketch::features(text, options, &mut || ());
        return listed.into_iter().map(|feature| feature.text).collect();
    }
    reference::features(text, options)
}

/// Returns the 64-bit and 128-bit fingerprints and the hash of a signature of a set of features.
fn of_set(features: &[String]) -> [String; 3] {
    let hashes: Vec<u64> = (features.iter())
        .map(|feature| feature_hash(feature.as_bytes()))
        .collect();
    let (mut narrow, mut wide) = (
        FingerprintBuilder::<1>::default(),
        FingerprintBuilder::<2>::default(),
    );
    narrow.add(&hashes);
    wide.add(&hashes);
    let family = HashFamily::new(Scheme::Neardup1, 128, 0).unwrap();
    [
        hex64(narrow.finish(&mut || ()).map(|[word]| word)),
        hex128(
            wide.finish(&mut || ())
                .map(|[high, low]| u128::from(high) << 64 | u128::from(low)),
        ),
        hex64(
            family
                .signature(features.iter().map(String::as_bytes))
                .map(hash_of),
        ),
    ]
}

fn hash_of(signature: Vec<u32>) -> u64 {
    let bytes: Vec<u8> = signature.into_iter().flat_map(u32::to_le_bytes).collect();
    feature_hash(&bytes)
}

#[test]
fn words_pages_and_sets_never_change() {
    let golden = include_str!("golden_minhash.tsv");
    let (mut now, mut text, mut checked) = (String::new(), String::new(), 0);
    let family = HashFamily::new(Scheme::Neardup1, 128, 0).unwrap();
    for line in golden.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        if let ["=", repeat, escaped] = columns[..] {
            text = unescape(escaped).repeat(repeat.parse().unwrap());
            now += &format!("{line}\n");
            continue;
        }
        let options = named(columns[0]);
        let simhashes = [today64(&text, &options), today128(&text, &options)];
        let sets = [
            hex64(Sketcher::new(options).minhash64(&text, &mut || ())),
            hex128(Sketcher::new(options).minhash128(&text, &mut || ())),
            hex64(
                Sketcher::new(options)
                    .signature(&text, &family, &mut || ())
                    .map(hash_of),
            ),
        ];
        let (plain, as_text) = match options.html {
            true => (
                html_text(&text, &mut || ()),
                TextOptions {
                    html: false,
                    ..options
                },
            ),
            false => (text.clone(), options),
        };
        if !options.tokens.need_dictionary() {
            let defined = [
                hex64(reference::simhash64(&plain, &as_text)),
                hex128(reference::simhash128(&plain, &as_text)),
            ];
            assert_eq!(simhashes, defined, "differs from the definition: {line:?}");
        }
        assert_eq!(
            sets,
            of_set(&set_of(&plain, &as_text)),
            "differs from the definition: {line:?}"
        );
        now += &format!(
            "{}\t{}\t{}\n",
            columns[0],
            simhashes.join("\t"),
            sets.join("\t")
        );
        checked += 1;
    }
    assert!(
        now == golden,
        "changed fingerprints, the file as it were now:\n{now}"
    );
    assert!(checked >= 200, "{checked}");
}

/// Returns the hashes of the passages of a text, by the definition.
fn passages_of(text: &str, length: usize, options: &TextOptions) -> Vec<u64> {
    let hashes: Vec<u64> = (reference::features(text, options).iter())
        .map(|feature| feature_hash(feature.as_bytes()))
        .collect();
    let window = (length + 1 - options.shingle).min(hashes.len()).max(1);
    let minima: BTreeSet<i64> = (hashes.windows(window))
        .filter_map(|window| window.iter().min())
        .map(|least| *least as i64)
        .collect();
    minima.into_iter().map(|hash| hash as u64).collect()
}

#[test]
fn passages_never_change() {
    let golden = include_str!("golden_passages.tsv");
    let (mut now, mut text, mut checked) = (String::new(), String::new(), 0);
    for line in golden.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        if let ["=", repeat, escaped] = columns[..] {
            text = unescape(escaped).repeat(repeat.parse().unwrap());
            now += &format!("{line}\n");
            continue;
        }
        let options = named(columns[0]);
        let length = columns[1].parse().unwrap();
        let passage_length = PassageLength::new(length, &options).unwrap();
        let hashes = Sketcher::new(options).passages(&text, passage_length, None, &mut || ());
        if !options.tokens.need_dictionary() {
            let plain = match options.html {
                true => html_text(&text, &mut || ()),
                false => text.clone(),
            };
            let defined = passages_of(&plain, length as usize, &options);
            assert_eq!(hashes, defined, "differs from the definition: {line:?}");
        }
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        let first = hashes.iter().take(3).map(|hash| (*hash as i64).to_string());
        let first: Vec<String> = first.collect();
        now += &format!(
            "{}\t{length}\t{}\t{:016x}\t{}\n",
            columns[0],
            hashes.len(),
            feature_hash(&bytes),
            first.join(" ")
        );
        checked += 1;
    }
    assert!(
        now == golden,
        "changed hashes, the file as it were now:\n{now}"
    );
    assert!(checked >= 60, "{checked}");
}

/// All tables of fingerprints belong to one Unicode version. If a dependency moves to another
/// version, texts with formerly unassigned characters get other fingerprints.
#[test]
fn unicode_version_is_fixed() {
    assert_eq!(unicode_normalization::UNICODE_VERSION, (17, 0, 0));
    assert_eq!(unicode_segmentation::UNICODE_VERSION, (17, 0, 0));
}

/// Fingerprints of runs that are longer than a piece equal the definition.
#[test]
fn pieces_do_not_change_fingerprints() {
    for unit in runs::RUNS {
        // The text ends with other characters, which the last piece must read correctly.
        let text = unit.repeat(200_000 / unit.len()) + "a\u{301} 中 1";
        for &(_, tokens) in Tokens::NAMES {
            if tokens.need_dictionary() {
                continue;
            }
            for shingle in [1, 2] {
                let options = TextOptions {
                    tokens,
                    shingle,
                    ..TextOptions::SIMHASH
                };
                let found = Sketcher::new(options).simhash64(&text, &mut || ());
                let expected = reference::simhash64(&text, &options);
                assert_eq!(found, expected, "{unit:?}, {tokens:?}");
            }
        }
    }
}
