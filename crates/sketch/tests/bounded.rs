//! Memory and cancellation for texts that are one long run. Memory is bounded by a constant and a
//! small multiple of the text, and the functions call `check` regularly.
#![allow(unsafe_code)]

mod runs;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use neardup_sketch::html::html_text;
use neardup_sketch::normalize::normalized;
use neardup_sketch::options::{Accents, NamedOption, Tokens};
use neardup_sketch::segments::{Segment, Unit, segment_hash, segments};
use neardup_sketch::tokens::jieba::Dictionary;
use neardup_sketch::{Sketcher, TextOptions, longest_sentences_hash};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a count of bytes.
struct Counting;

impl Counting {
    fn add(bytes: usize) {
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(live, Relaxed);
    }
}

// SAFETY: the system's allocator allocates and frees all blocks.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of each text.
const LEN: usize = 17 << 16;
/// Bytes allowed for any text.
const CONSTANT: usize = 16 << 20;
/// Bytes allowed for reordering a million bytes without a normalisation boundary.
const REORDERING: usize = 56 << 20;
/// Bytes allowed for each byte of the normal form. A buffer that doubles holds a single token.
const FACTOR: usize = 6;

/// Text that is one run.
struct Run {
    unit: &'static str,
    text: String,
    /// Bytes allowed for a function.
    allowed: usize,
}

impl Run {
    fn new(unit: &'static str) -> Self {
        let text = unit.repeat(LEN / unit.len());
        let normal = normalized(&text).len().max(LEN);
        let is_mark = unit
            .chars()
            .all(|c| matches!(c, '\u{300}'..='\u{36F}' | '\u{200D}'));
        let reordering = if is_mark { REORDERING } else { 0 };
        Self {
            unit,
            text,
            allowed: CONSTANT + reordering + FACTOR * normal,
        }
    }

    /// Measures the peak memory, and counts the calls of `check`.
    fn measure(&self, name: &str, function: impl FnOnce(&str, &mut dyn FnMut())) {
        self.measure_with_result(name, 0, function);
    }

    /// Measures a function that also needs memory for a result of this many bytes.
    fn measure_with_result(
        &self,
        name: &str,
        result: usize,
        function: impl FnOnce(&str, &mut dyn FnMut()),
    ) {
        let unit = self.unit;
        let before = LIVE.load(Relaxed);
        PEAK.store(before, Relaxed);
        let mut checks = 0;
        function(&self.text, &mut || checks += 1);
        let peak = PEAK.load(Relaxed) - before;
        assert!(
            peak < self.allowed + result,
            "{name} of {unit:?}: {peak} bytes"
        );
        // A run without a normalisation boundary is cut after a megabyte.
        assert!(checks > 0, "{name} of {unit:?}");
    }
}

/// A single test, because the counts are for the whole process.
#[test]
fn long_runs_take_bounded_memory() {
    drop(Dictionary::current());
    for run in runs::RUNS.map(Run::new) {
        let without_accents = ("word without accents", Tokens::Word, Accents::Remove);
        let tokenizers = (Tokens::NAMES.iter())
            .map(|&(name, tokens)| (name, tokens, Accents::Keep))
            .chain([without_accents]);
        for (name, tokens, accents) in tokenizers {
            let mut options = TextOptions {
                tokens,
                ..TextOptions::SIMHASH
            };
            options.normalize.accents = accents;
            run.measure(name, |text, check| {
                Sketcher::new(options).simhash64(text, check);
            });
        }
        run.measure("html_text", |text, check| {
            assert!(html_text(text, check).len() <= LEN);
        });
        run.measure("longest_sentences_hash", |text, check| {
            longest_sentences_hash(text, 3, check);
        });
        for unit in [Unit::Line, Unit::Sentence] {
            // While a list doubles, its copy of twice the length is also in memory.
            let list = 3 * size_of::<Segment>() * segments(&run.text, unit, &mut || ()).len();
            run.measure_with_result("segments", list, |text, check| {
                for segment in segments(text, unit, check).into_iter().take(100) {
                    assert_ne!(segment_hash(&text[segment.bytes], check), 0);
                }
            });
        }
    }
}
