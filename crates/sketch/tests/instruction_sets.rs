//! Fingerprints are equal with every set of vector instructions of this machine.
//!
//! The set applies to the whole process, so this file has one test.

mod reference;

use std::fmt::Write;

use neardup_sketch::minhash::{HashFamily, Scheme};
use neardup_sketch::options::{self, Tokens, Weight};
use neardup_sketch::passages::PassageLength;
use neardup_sketch::simd::{ALL, use_at_most};
use neardup_sketch::{Sketcher, TextOptions};

/// Numbers of words near which counters of a kernel are full: bytes of ones (255), of sixteens
/// (255 times 16) and twice as many. Also small numbers.
fn numbers_of_words() -> impl Iterator<Item = usize> {
    let full = [255, 510, 255 * 16, 2 * 255 * 16];
    (1..70).chain(
        full.into_iter()
            .flat_map(|n| [n - 16, n - 15, n - 1, n, n + 1]),
    )
}

/// Returns a text of distinct words of four letters, some of them repeated immediately.
fn text(words: usize, script: char) -> String {
    let mut text = String::new();
    for n in 0..words {
        let letter = |shift: usize| {
            let offset = (n >> shift & 15) as u32;
            char::from_u32(script as u32 + offset).expect("a letter")
        };
        let word: String = [12, 8, 4, 0].map(letter).into_iter().collect();
        let gap = [" ", ", ", ". ", "\n"][n % 4];
        for _ in 0..if n % 7 == 3 { n % 5 + 1 } else { 1 } {
            write!(text, "{word}{gap}").expect("memory");
        }
    }
    text
}

fn options() -> [TextOptions; 3] {
    [
        TextOptions::SIMHASH,
        TextOptions {
            shingle: 1,
            weight: Weight::Tf,
            ..TextOptions::SIMHASH
        },
        TextOptions {
            tokens: Tokens::Char,
            shingle: 5,
            ..TextOptions::SIMHASH
        },
    ]
}

/// Every kind of sketch.
#[derive(Debug, PartialEq)]
struct Sketches {
    simhashes: (Option<u64>, Option<u128>),
    minhashes: (Option<u64>, Option<u128>),
    signature: Option<Vec<u32>>,
    passages: Vec<u64>,
}

impl Sketches {
    fn new(text: &str, options: TextOptions, family: &HashFamily) -> Self {
        let mut sketcher = Sketcher::new(options);
        let length = PassageLength::new(24, &options).expect("a length for all of them");
        Self {
            simhashes: (
                sketcher.simhash64(text, &mut || ()),
                sketcher.simhash128(text, &mut || ()),
            ),
            minhashes: (
                sketcher.minhash64(text, &mut || ()),
                sketcher.minhash128(text, &mut || ()),
            ),
            signature: sketcher.signature(text, family, &mut || ()),
            passages: sketcher.passages(text, length, None, &mut || ()),
        }
    }
}

#[test]
fn sketches_do_not_depend_on_the_processor() {
    let family = HashFamily::new(Scheme::Neardup1, 128, 0).expect("a family");
    for words in numbers_of_words() {
        // Letters, and ideographs, which are separate words.
        for text in [text(words, 'a'), text(words, '\u{4E10}')] {
            for options in options() {
                let mut first = None;
                let mut before = None;
                for set in ALL {
                    let used = Some(use_at_most(set));
                    if std::mem::replace(&mut before, used) == used {
                        // This processor does not have the set.
                        continue;
                    }
                    let sketches = Sketches::new(&text, options, &family);
                    match &first {
                        Some(first) => {
                            assert_eq!(&sketches, first, "{set:?}, {words}, {options:?}")
                        }
                        None => {
                            let defined = (
                                reference::simhash64(&text, &options),
                                reference::simhash128(&text, &options),
                            );
                            assert_eq!(sketches.simhashes, defined, "{words}, {options:?}");
                            first = Some(sketches);
                        }
                    }
                }
            }
        }
    }
}
