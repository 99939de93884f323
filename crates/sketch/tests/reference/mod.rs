//! The definition of `simhash64_text` and `simhash128_text`, written down as directly as possible: no fast way, no cut, no
//! streaming, another table, another lower case, other sums. What the tests compare with.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Whether a character has no look of its own.
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

/// Full case folding by way of upper case.
fn fold(c: char) -> String {
    match c {
        'ı' | '\u{13A0}'..='\u{13F5}' => c.to_string(),
        'ẞ' => "ss".to_owned(),
        '\u{13F8}'..='\u{13FD}' | '\u{AB70}'..='\u{ABBF}' => c.to_uppercase().collect(),
        _ => c.to_uppercase().flat_map(char::to_lowercase).collect(),
    }
}

/// The normal form of a text.
pub fn normal(text: &str) -> String {
    let visible = text.nfkd().filter(|&c| !is_ignorable(c));
    let folded: String = visible.map(fold).collect();
    folded.nfc().collect()
}

/// The words of a text.
pub fn words(text: &str) -> Vec<String> {
    let normal = normal(text);
    normal
        .split_word_bounds()
        .filter(|segment| segment.chars().any(char::is_alphanumeric))
        .filter(|segment| !segment.starts_with([' ', '\u{1680}']))
        .map(str::to_owned)
        .collect()
}

/// The simhash of features with integer weights, of so many bits.
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

/// The fingerprint of a text, in 64 bits.
pub fn simhash64(text: &str) -> Option<u64> {
    of_text(64, text, |feature| xxh3_64(feature).into()).map(|fp| fp as u64)
}

/// The fingerprint of a text, in 128 bits.
pub fn simhash128(text: &str) -> Option<u128> {
    of_text(128, text, xxh3_128)
}

fn of_text(bits: usize, text: &str, hash: fn(&[u8]) -> u128) -> Option<u128> {
    let words = words(text);
    let features: Vec<String> = match words.len() {
        0 | 1 => words,
        _ => words.windows(2).map(|pair| pair.join(" ")).collect(),
    };
    let mut counts: HashMap<String, u32> = HashMap::new();
    for feature in features {
        *counts.entry(feature).or_default() += 1;
    }
    let weighted = counts.into_iter().map(|(feature, count)| {
        // Counts of the tests are small: a double holds the root exactly enough for its floor.
        let weight = (f64::from(count).sqrt() * 65_536.0).floor() as i128;
        (hash(feature.as_bytes()), weight)
    });
    simhash(bits, weighted)
}
