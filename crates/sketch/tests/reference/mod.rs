//! Reference implementation of `simhash64` and `simhash128`, as direct as possible. It has no fast
//! paths, no cuts and no streaming, and it uses another table, case folding and summation.

use std::collections::HashMap;

use super::options::{Accents, Digits, TextOptions, Tokens, Weight};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Returns true for invisible characters.
fn is_ignorable(c: char) -> bool {
    let ranges = [
        (0xAD, 0xAD),
        (0x34F, 0x34F),
        (0x61C, 0x61C),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x200B, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFEFF, 0xFEFF),
        (0xFFA0, 0xFFA0),
        (0xFFF0, 0xFFF8),
        (0x1BCA0, 0x1BCA3),
        (0x1D173, 0x1D17A),
        (0xE0000, 0xE0FFF),
    ];
    (ranges.iter()).any(|&(first, last)| (first..=last).contains(&(c as u32)))
}

/// Returns the full case folding, computed with the upper case.
fn fold(c: char) -> String {
    match c {
        'ı' | '\u{13A0}'..='\u{13F5}' => c.to_string(),
        'ẞ' => "ss".to_owned(),
        '\u{13F8}'..='\u{13FD}' | '\u{AB70}'..='\u{ABBF}' => c.to_uppercase().collect(),
        _ => c.to_uppercase().flat_map(char::to_lowercase).collect(),
    }
}

/// Returns the normal form of a text.
pub fn normal(text: &str) -> String {
    let visible = text.nfkd().filter(|&c| !is_ignorable(c));
    let folded: String = visible.map(fold).collect();
    folded.nfc().collect()
}

/// Returns the words of normalised text.
fn words(normal: &str) -> Vec<String> {
    normal
        .split_word_bounds()
        .filter(|segment| segment.chars().any(char::is_alphanumeric))
        .filter(|segment| !segment.starts_with([' ', '\u{1680}']))
        .map(str::to_owned)
        .collect()
}

/// Removes accents and replaces digits by 0 according to the options.
fn fold_accents_and_digits(text: &str, options: &TextOptions) -> String {
    let marks = |c: char| {
        let blocks = [
            (0x300, 0x36F),
            (0x1AB0, 0x1AFF),
            (0x1DC0, 0x1DFF),
            (0x20D0, 0x20FF),
            (0xFE20, 0xFE2F),
            (0x591, 0x5BD),
            (0x5BF, 0x5BF),
            (0x5C1, 0x5C2),
            (0x5C4, 0x5C5),
            (0x5C7, 0x5C7),
            (0x610, 0x61A),
            (0x64B, 0x65F),
            (0x670, 0x670),
            (0x6D6, 0x6DC),
            (0x6DF, 0x6E4),
            (0x6E7, 0x6E8),
            (0x6EA, 0x6ED),
        ];
        blocks
            .iter()
            .any(|&(first, last)| (first..=last).contains(&(c as u32)))
    };
    let mut text = text.to_owned();
    if options.normalize.accents == Accents::Remove {
        text = text.nfkd().filter(|&c| !marks(c)).collect();
    }
    if options.normalize.digits == Digits::Zero {
        let zero = |c: char| if is_decimal(c) { '0' } else { c };
        text = text.nfkd().map(zero).collect();
    }
    text
}

/// The zeros of all scripts with decimal digits. Nine more digits follow each zero.
const ZEROS: &str = "0٠۰߀०০੦૦୦௦౦೦൦෦๐໐༠၀႐០᠐᥆᧐᪀᪐᭐᮰᱀᱐꘠꣐꤀꧐꧰꩐꯰\
    \u{104A0}\u{10D30}\u{10D40}\u{11066}\u{110F0}\u{11136}\u{111D0}\u{112F0}\
    \u{11450}\u{114D0}\u{11650}\u{116C0}\u{116D0}\u{116DA}\u{11730}\u{118E0}\
    \u{11950}\u{11BF0}\u{11C50}\u{11D50}\u{11DA0}\u{11DE0}\u{11F50}\u{16130}\
    \u{16A60}\u{16AC0}\u{16B50}\u{16D70}\u{1CCF0}\u{1E140}\u{1E2F0}\u{1E4F0}\
    \u{1E5F1}\u{1E950}\u{1FBF0}";

fn is_decimal(c: char) -> bool {
    ZEROS
        .chars()
        .any(|zero| (zero as u32..zero as u32 + 10).contains(&(c as u32)))
}

/// Returns the features of a text, one for each occurrence.
pub fn features(text: &str, options: &TextOptions) -> Vec<String> {
    let normal = normal(&fold_accents_and_digits(text, options));
    let one_space = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (tokens, between): (Vec<String>, _) = match options.tokens {
        Tokens::Word => (words(&normal), " "),
        Tokens::Char => {
            let chars = one_space(&normal).chars().map(String::from).collect();
            (chars, "")
        }
        Tokens::Line => {
            let ends = [
                '\n', '\u{B}', '\u{C}', '\r', '\u{85}', '\u{2028}', '\u{2029}',
            ];
            let lines = normal.split(ends).map(one_space);
            (lines.filter(|line| !line.is_empty()).collect(), "\n")
        }
        _ => panic!("tested elsewhere"),
    };
    match tokens.len() {
        0 => Vec::new(),
        len if len < options.shingle => vec![tokens.join(between)],
        _ => (tokens.windows(options.shingle))
            .map(|window| window.join(between))
            .collect(),
    }
}

/// Returns the weight of a feature. The tests have small counts, so doubles are exact enough for
/// the floor of roots and logarithms.
fn weight(count: u32, weight: Weight) -> i128 {
    let count = f64::from(count);
    let value = match weight {
        Weight::Tf => count,
        Weight::Sqrt => count.sqrt(),
        Weight::Log => 1.0 + count.ln(),
        Weight::Set => 1.0,
    };
    (value * 65_536.0).floor() as i128
}

/// Returns the simhash of features with integer weights.
pub fn simhash(bits: usize, features: impl Iterator<Item = (u128, i128)>) -> Option<u128> {
    let mut sums = vec![0_i128; bits];
    let mut any = false;
    for (hash, weight) in features {
        any = true;
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if hash >> bit & 1 == 1 {
                weight
            } else {
                -weight
            };
        }
    }
    any.then(|| {
        (0..bits)
            .filter(|&bit| sums[bit] > 0)
            .map(|bit| 1 << bit)
            .sum()
    })
}

/// Returns the 64-bit fingerprint of a text.
pub fn simhash64(text: &str, options: &TextOptions) -> Option<u64> {
    of_text(64, text, options, |feature| xxh3_64(feature).into()).map(|fp| fp as u64)
}

/// Returns the 128-bit fingerprint of a text.
pub fn simhash128(text: &str, options: &TextOptions) -> Option<u128> {
    of_text(128, text, options, xxh3_128)
}

fn of_text(
    bits: usize,
    text: &str,
    options: &TextOptions,
    hash: fn(&[u8]) -> u128,
) -> Option<u128> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    for feature in features(text, options) {
        *counts.entry(feature).or_default() += 1;
    }
    let weighted = (counts.into_iter())
        .map(|(feature, count)| (hash(feature.as_bytes()), weight(count, options.weight)));
    simhash(bits, weighted)
}
