//! Fingerprints that must never change.
//!
//! Users store fingerprints and compare them for years. A change of any value in `golden.tsv` (64
//! bits), `golden128.tsv` (128 bits) or `golden_options.tsv` (both, for everything that can be chosen)
//! is a breaking change: every fingerprint that anyone has stored would have to be computed again. If
//! this test fails after an upgrade of a dependency or of the compiler, the upgrade is at fault, not
//! the file. Adding lines is fine.
//!
//! A line of the first two is: fingerprint in hex or `none`; how often the text is repeated; the text,
//! with `\u{HEX}` for characters that are hard to see and `\\` for a backslash. In the third, a line
//! that begins with `=` holds the repetitions and the text, and below it stand, for each choice, its
//! names, the fingerprint of 64 bits and that of 128.

mod reference;

use neardup_sketch::options::{self, Choice, Normalize, TextOptions};
use neardup_sketch::{simhash64_text, simhash128_text};

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
    hex64(simhash64_text(text, options, &mut || ()))
}

fn today128(text: &str, options: &TextOptions) -> String {
    hex128(simhash128_text(text, options, &mut || ()))
}

/// Compares the fingerprints of a file with those of today, and those with the definition's.
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
        include_str!("golden.tsv"),
        |text| today64(text, &TextOptions::SIMHASH),
        |text| hex64(reference::simhash64(text, &TextOptions::SIMHASH)),
    );
}

#[test]
fn wide_fingerprints_never_change() {
    check(
        include_str!("golden128.tsv"),
        |text| today128(text, &TextOptions::SIMHASH),
        |text| hex128(reference::simhash128(text, &TextOptions::SIMHASH)),
    );
}

/// The options that five names stand for: tokens, shingle, weight, accents, digits.
fn named(names: &str) -> TextOptions {
    let [tokens, shingle, weight, accents, digits] = names.split(' ').collect::<Vec<_>>()[..]
    else {
        panic!("not five names: {names:?}");
    };
    TextOptions {
        tokens: Choice::named(tokens.as_bytes()).unwrap(),
        shingle: shingle.parse().unwrap(),
        weight: Choice::named(weight.as_bytes()).unwrap(),
        normalize: Normalize {
            accents: Choice::named(accents.as_bytes()).unwrap(),
            digits: Choice::named(digits.as_bytes()).unwrap(),
        },
        ..TextOptions::SIMHASH
    }
}

#[test]
fn fingerprints_of_all_options_never_change() {
    let golden = include_str!("golden_options.tsv");
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

/// The tables that fingerprints depend on are those of one Unicode version. If a dependency moves to
/// another one, texts with characters that were unassigned before get other fingerprints.
#[test]
fn unicode_version_is_fixed() {
    assert_eq!(unicode_normalization::UNICODE_VERSION, (17, 0, 0));
    assert_eq!(unicode_segmentation::UNICODE_VERSION, (17, 0, 0));
}
