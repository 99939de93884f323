//! Keys that must never change.
//!
//! Users store them, on many machines, and join them with new ones for years. A change of a value
//! in `golden_keys.tsv` is a breaking change. Adding lines is fine; the test prints the file as it
//! would be.
//!
//! A line is: bits of a fingerprint, or the number of values of a signature; distance, or
//! mismatches; blocks, or bands, or `default`; the keys of a value, and those of another.

use neardup_blocktree::shared_keys::{BandKeys, BlockKeys};
use std::fmt::Write;

/// The words of two fingerprints, and the first values of two signatures.
const WORDS: [[u64; 4]; 2] = [
    [
        0x0123_4567_89ab_cdef,
        0xfedc_ba98_7654_3210,
        0x0f1e_2d3c_4b5a_6978,
        0x9e37_79b9_7f4a_7c15,
    ],
    [0, 0, 0, 1],
];

const BLOCK_KEYS: [(u32, u32, Option<u32>); 16] = [
    (64, 0, None),
    (64, 1, None),
    (64, 2, None),
    (64, 3, None),
    (64, 3, Some(5)),
    (64, 3, Some(6)),
    (64, 4, None),
    (64, 5, None),
    (64, 6, None),
    (64, 7, None),
    (64, 8, None),
    (128, 6, None),
    (128, 6, Some(8)),
    (128, 12, None),
    (256, 15, None),
    (256, 31, None),
];

const BAND_KEYS: [(usize, usize, Option<usize>); 5] = [
    (64, 12, None),
    (128, 25, None),
    (128, 25, Some(26)),
    (128, 38, None),
    (256, 51, None),
];

fn block_keys<const N: usize>(distance: u32, blocks: Option<u32>) -> [Vec<i64>; 2] {
    let keys = BlockKeys::<N>::new(distance, blocks).expect("possible parameters");
    WORDS.map(|words| {
        keys.keys(words.first_chunk().expect("four words"))
            .collect()
    })
}

fn band_keys(hashes: usize, mismatches: usize, bands: Option<usize>) -> [Vec<i64>; 2] {
    let keys = BandKeys::new(hashes, mismatches, bands).expect("possible parameters");
    WORDS.map(|words| {
        let values = (0..hashes as u32).map(|i| (words[0] as u32).wrapping_add(i * i));
        keys.keys(&values.collect::<Vec<u32>>(), words[1]).collect()
    })
}

fn line(file: &mut String, of: (&str, u64, u64), count: Option<u64>, keys: [Vec<i64>; 2]) {
    let count = count.map_or("default".to_owned(), |count| count.to_string());
    let [a, b] = keys.map(|keys| {
        let keys: Vec<String> = keys.iter().map(i64::to_string).collect();
        keys.join(",")
    });
    writeln!(file, "{}\t{}\t{}\t{count}\t{a}\t{b}", of.0, of.1, of.2).expect("a string");
}

#[test]
fn keys_are_those_that_are_stored() {
    let mut file = String::new();
    for (bits, distance, blocks) in BLOCK_KEYS {
        let keys = match bits {
            64 => block_keys::<1>(distance, blocks),
            128 => block_keys::<2>(distance, blocks),
            _ => block_keys::<4>(distance, blocks),
        };
        let of = ("fingerprint", bits.into(), distance.into());
        line(&mut file, of, blocks.map(u64::from), keys);
    }
    for (hashes, mismatches, bands) in BAND_KEYS {
        let keys = band_keys(hashes, mismatches, bands);
        let of = ("signature", hashes as u64, mismatches as u64);
        line(&mut file, of, bands.map(|bands| bands as u64), keys);
    }
    if file != include_str!("golden_keys.tsv") {
        println!("{file}");
        panic!("other keys than those of golden_keys.tsv; the file would be as printed");
    }
}
