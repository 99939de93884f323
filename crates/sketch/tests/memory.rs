//! Out of memory: every function of a text unwinds at any failed allocation, and needs no more of
//! an allocator's reserve than the extension provides.
//!
//! The allocator of this program has a limit. Beyond the limit, a request that may fail does fail.
//! Any other request succeeds, and its bytes are counted: the reserve must provide them.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use neardup_sketch::common_features::{CommonFeatureCollector, FeatureSet};
use neardup_sketch::html::html_text;
use neardup_sketch::memory::{self, OutOfMemory};
use neardup_sketch::minhash::{HashFamily, Scheme};
use neardup_sketch::options::{Accents, Digits, NamedOption, Normalize, Tokens};
use neardup_sketch::passages::{PassageLength, SharedPassages};
use neardup_sketch::segments::{Unit, segment_hash, segments};
use neardup_sketch::tokens::jieba::Dictionary;
use neardup_sketch::{
    BitsOf, FeatureDiff, FeatureList, Sketcher, TextOptions, longest_sentences_hash, text_length,
};

/// Bytes of the reserve in `crates/pg/src/memory.rs`, minus the bytes that the error itself needs.
const RESERVE: usize = (2 << 20) - (64 << 10);

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Maximum bytes beyond the limit, at one time, that could not be refused.
static BEYOND: AtomicUsize = AtomicUsize::new(0);

struct Limited;

impl Limited {
    /// Returns true if a request of this size must fail.
    fn refuses(bytes: usize) -> bool {
        let (live, limit) = (LIVE.load(Relaxed), LIMIT.load(Relaxed));
        if live.saturating_add(bytes) <= limit {
            return false;
        }
        if memory::may_fail() {
            return true;
        }
        memory::report_shortage();
        BEYOND.fetch_max(live + bytes - limit, Relaxed);
        false
    }
}

// SAFETY: the system's allocator allocates and frees all blocks.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old block exists until the new one is filled.
        if Self::refuses(size) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_add(size, Relaxed);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

fn check() {
    if memory::take_shortage() {
        memory::raise();
    }
}

/// Function of a text, with its name. The result is a number.
type Case<'a> = (&'static str, Box<dyn Fn() -> u64 + 'a>);

fn functions<'a>(text: &'a str, options: &'a TextOptions) -> Vec<Case<'a>> {
    let number = |number: Option<f64>| number.map_or(7, f64::to_bits);
    let half = &text[..text.floor_char_boundary(text.len() / 2)];
    let mut all: Vec<Case<'a>> = vec![
        (
            "simhash64",
            Box::new(|| {
                Sketcher::new(*options)
                    .simhash64(text, &mut check)
                    .unwrap_or(7)
            }),
        ),
        (
            "simhash128",
            Box::new(|| {
                Sketcher::new(*options)
                    .simhash128(text, &mut check)
                    .unwrap_or(7) as u64
            }),
        ),
        (
            "minhash64",
            Box::new(|| {
                Sketcher::new(*options)
                    .minhash64(text, &mut check)
                    .unwrap_or(7)
            }),
        ),
        (
            "minhash128",
            Box::new(|| {
                Sketcher::new(*options)
                    .minhash128(text, &mut check)
                    .unwrap_or(7) as u64
            }),
        ),
        (
            "jaccard_similarity",
            Box::new(move || {
                let mut sketcher = Sketcher::new(*options);
                number(sketcher.jaccard_similarity(text, half, &mut check))
            }),
        ),
        (
            "containment",
            Box::new(move || number(Sketcher::new(*options).containment(text, half, &mut check))),
        ),
        (
            "features",
            Box::new(|| {
                let list = FeatureList::new(text, options, &mut check);
                (0..list.len().min(9))
                    .filter_map(|at| list.get(at))
                    .fold(0, |sum, feature| sum ^ feature.hash)
            }),
        ),
        (
            "explain",
            Box::new(move || {
                let found = FeatureDiff::new(
                    text,
                    half,
                    options,
                    20,
                    Some(BitsOf::Simhash128),
                    &mut check,
                );
                (found.shared.features * 1000 + found.only_a.heaviest.len()) as u64
            }),
        ),
        (
            "passages",
            Box::new(move || {
                let Ok(length) = PassageLength::new(100, options) else {
                    return 7;
                };
                let hashes = Sketcher::new(*options).passages(text, length, None, &mut check);
                hashes
                    .iter()
                    .fold(hashes.len() as u64, |sum, hash| sum ^ hash)
            }),
        ),
        (
            "shared passages",
            Box::new(move || {
                let Ok(length) = PassageLength::new(100, options) else {
                    return 7;
                };
                let found = SharedPassages::new(text, half, length, options, &mut check);
                found
                    .passages
                    .iter()
                    .map(|passage| passage.text.len() as u64)
                    .sum()
            }),
        ),
        (
            "common features",
            Box::new(move || {
                let mut sketcher = Sketcher::new(*options);
                let mut collector = CommonFeatureCollector::new(Vec::new(), options, 0.5, 1 << 20);
                collector.add(&mut sketcher, half, &mut check);
                collector.add(&mut sketcher, text, &mut check);
                let stored = collector.finish(&mut check);
                let set = FeatureSet::from_stored(&stored).expect("its own form");
                sketcher
                    .minhash64_without(text, Some(&set), &mut check)
                    .unwrap_or(7)
            }),
        ),
    ];
    for scheme in Scheme::ALL {
        all.push((
            "minhash",
            Box::new(move || {
                let family = HashFamily::new(scheme, 16, 0).unwrap();
                let signature = Sketcher::new(*options).signature(text, &family, &mut check);
                signature.map_or(7, |values| values[0].into())
            }),
        ));
    }
    all
}

/// Runs a case with growing limits until it succeeds. Returns the number of limits that were too
/// low.
fn with_limits(name: &str, about: &str, case: &dyn Fn() -> u64) -> usize {
    let expected = case();
    let mut room = 0;
    for failures in 0.. {
        assert!(room < 1 << 31, "{name} of {about}");
        BEYOND.store(0, Relaxed);
        memory::take_shortage();
        LIMIT.store(LIVE.load(Relaxed) + room, Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let result = case();
            check();
            result
        }));
        LIMIT.store(usize::MAX, Relaxed);
        let beyond = BEYOND.load(Relaxed);
        assert!(beyond <= RESERVE, "{name} of {about}: {beyond} bytes");
        match result {
            Ok(result) => {
                assert_eq!(result, expected, "{name} of {about}");
                return failures;
            }
            Err(payload) => assert!(payload.is::<OutOfMemory>(), "{name} of {about}"),
        }
        room = (room * 2).max(1 << 16);
    }
    unreachable!()
}

fn texts() -> Vec<(&'static str, String)> {
    const LEN: usize = 1 << 17;
    let words = |word: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        (0..).find(|&n| {
            text.push_str(&word(n));
            text.len() >= LEN
        });
        text
    };
    let han = |n: usize| char::from_u32(0x4E00 + (n * n % 20_011) as u32).unwrap();
    vec![
        ("English", words(&|n| format!("w{} ", n * n % 100_003))),
        ("Russian", words(&|n| format!("слово{} ", n * n % 100_003))),
        ("Chinese", words(&|n| han(n).to_string())),
        ("one ASCII word", "ab".repeat(LEN / 2)),
        ("one word", "éж".repeat(LEN / 4)),
        // More than one piece without a boundary.
        (
            "marks",
            format!("a{} b", "\u{316}\u{301}\u{344}".repeat(LEN / 2)),
        ),
        ("long forms", "ﷺ".repeat(LEN / 12)),
        (
            "lines",
            words(&|n| format!("{n} {}\n", "x".repeat(n % 3000))),
        ),
        (
            "long lines",
            words(&|n| format!("{n}{}\n", "y".repeat(70_000))),
        ),
        (
            "sentences",
            words(&|n| format!("A sentence{n} {}. ", "of it ".repeat(n % 500))),
        ),
        ("a script", format!("<script></{}", "a".repeat(LEN))),
        (
            "a page",
            words(&|n| format!("<p title='{n}'>a &#{n}; b<td>c</p>")),
        ),
        ("white space", " \n\u{3000}".repeat(LEN / 5)),
    ]
}

#[test]
fn every_function_unwinds() {
    drop(Dictionary::current());
    let options = |tokens, shingle| TextOptions {
        tokens,
        shingle,
        ..TextOptions::SIMHASH
    };
    let normalize = Normalize {
        accents: Accents::Remove,
        digits: Digits::Zero,
    };
    let page = TextOptions {
        normalize,
        html: true,
        ..options(Tokens::Word, 100)
    };
    let tokenizers = Tokens::NAMES.iter().map(|(_, tokens)| options(*tokens, 2));
    let more = [options(Tokens::Char, 100), page];
    let choices: Vec<TextOptions> = tokenizers.chain(more).collect();
    let mut failures = 0;
    for (about, text) in texts() {
        for options in &choices {
            // Runs every function once, and with each choice one function for each way to collect
            // features.
            for (name, case) in functions(&text, options) {
                let gathers = [
                    "simhash128",
                    "minhash64",
                    "explain",
                    "passages",
                    "shared passages",
                    "common features",
                ]
                .contains(&name);
                if options != &choices[0] && !gathers {
                    continue;
                }
                failures += with_limits(name, &format!("{about}, {options:?}"), &case);
            }
        }
        let length = || text_length(&text, true, Accents::Remove, &mut check);
        failures += with_limits("text_length", about, &length);
        let html = || html_text(&text, &mut check).len() as u64;
        failures += with_limits("html_text", about, &html);
        let sentences = || longest_sentences_hash(&text, 100, &mut check).unwrap_or(7);
        failures += with_limits("longest_sentences_hash", about, &sentences);
        for &(name, unit) in Unit::NAMES {
            let all = || {
                let found = segments(&text, unit, &mut check).into_iter();
                found.fold(0, |all, part| {
                    all ^ segment_hash(&text[part.bytes], &mut check)
                })
            };
            failures += with_limits(name, about, &all);
        }
    }
    // Functions that need little memory never fail. The failures of the others are the test.
    assert!(failures > 500, "{failures}");
}
