//! Approximate keys that must never change.
//!
//! Users store them, on many machines, and join them with new ones for years. A change of a value
//! in `golden_band_keys.tsv` is a breaking change. Adding lines is fine; the test prints the file
//! as it would be. The tests of the server and of the package for Python read the file, too.
//!
//! A line is: type and text of a value; bands; rows; the keys.

use neardup_blocktree::approximate_keys::{FingerprintBandKeys, SignatureBandKeys};
use neardup_blocktree::bands::scheme_hash;
use std::fmt::Write;

/// Words of a fingerprint, the most significant first.
const WORDS: [u64; 4] = [
    0x0123_4567_89ab_cdef,
    0xfedc_ba98_7654_3210,
    0x0f1e_2d3c_4b5a_6978,
    0x9e37_79b9_7f4a_7c15,
];

/// Numbers of bands and rows.
const FINGERPRINTS: [(usize, usize); 4] = [(4, 16), (10, 24), (64, 1), (3, 64)];
const SIGNATURES: [(usize, usize); 4] = [(16, 8), (20, 6), (4, 32), (1, 1)];

/// Name and code of a scheme of signatures, and a seed.
const SCHEMES: [(&str, u8, i64); 3] = [
    ("neardup1", 1, 0),
    ("neardup1", 1, -5),
    ("datasketch1", 2, 1),
];

/// Writes a line for each pair of parameters.
fn lines<I: Iterator<Item = i64>>(
    file: &mut String,
    value: (&str, &str),
    parameters: &[(usize, usize)],
    keys: impl Fn(usize, usize) -> I,
) {
    for &(bands, rows) in parameters {
        let keys: Vec<String> = keys(bands, rows).map(|key| key.to_string()).collect();
        let (name, text) = value;
        writeln!(file, "{name}\t{text}\t{bands}\t{rows}\t{}", keys.join(",")).expect("a string");
    }
}

fn fingerprint<const N: usize>(file: &mut String, name: &str) {
    let words: &[u64; N] = WORDS.first_chunk().expect("four words");
    let text: String = words.iter().map(|word| format!("{word:016x}")).collect();
    lines(file, (name, &text), &FINGERPRINTS, |bands, rows| {
        let keys = FingerprintBandKeys::<N>::new(bands, rows).expect("possible numbers");
        keys.keys(words).collect::<Vec<_>>().into_iter()
    });
}

#[test]
fn keys_are_those_that_are_stored() {
    let mut file = String::new();
    fingerprint::<1>(&mut file, "fingerprint");
    fingerprint::<2>(&mut file, "fingerprint128");
    fingerprint::<4>(&mut file, "fingerprint256");
    for (scheme, code, seed) in SCHEMES {
        let values: Vec<u32> = (0..128_u32)
            .map(|i| (i + 1).wrapping_mul(0x9e37_79b1))
            .collect();
        let digits: String = values.iter().map(|value| format!("{value:08x}")).collect();
        let text = format!("{scheme}/128/{seed}/{digits}");
        let kind = scheme_hash(code, seed as u64);
        lines(
            &mut file,
            ("minhash_signature", &text),
            &SIGNATURES,
            |bands, rows| {
                let keys = SignatureBandKeys::new(128, bands, rows).expect("possible numbers");
                keys.keys(&values, kind).collect::<Vec<_>>().into_iter()
            },
        );
    }
    if file != include_str!("golden_band_keys.tsv") {
        println!("{file}");
        panic!("other keys than those of golden_band_keys.tsv; the file would be as printed");
    }
}
