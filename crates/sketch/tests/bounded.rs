//! Memory and cancellation for texts that are one long run of something: memory is bounded by a
//! constant and a small multiple of the text, and the caller is asked again and again whether to
//! go on.
#![allow(unsafe_code)]

mod runs;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use neardup_sketch::html::html_text;
use neardup_sketch::options::{Accents, Tokens};
use neardup_sketch::segments::{Unit, segment_hash, segments};
use neardup_sketch::tokens::jieba::Dictionary;
use neardup_sketch::{Sketcher, TextOptions, longest_sentences_hash, text_length};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which counts bytes.
struct Counting;

impl Counting {
    fn add(bytes: usize) {
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(live, Relaxed);
    }
}

// SAFETY: blocks are those of the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of a text.
const LEN: usize = 2 << 20;
/// Bytes that any text may take: mostly for a million bytes of marks, which are reordered.
const CONSTANT: usize = 72 << 20;
/// Bytes for each byte of the text: a token is held in a buffer that doubles.
const FACTOR: usize = 6;

/// Measures the peak of the memory and counts the calls of `check`.
fn measure(name: &str, unit: &str, function: impl FnOnce(&mut dyn FnMut())) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let mut checks = 0;
    function(&mut || checks += 1);
    let peak = PEAK.load(Relaxed) - before;
    assert!(
        peak < CONSTANT + FACTOR * LEN,
        "{name} of {unit:?}: {peak} bytes"
    );
    // A run of characters that cannot be normalised apart is cut after a megabyte.
    assert!(checks >= LEN >> 20, "{name} of {unit:?}: {checks} checks");
}

/// A single test, since the counts are of the whole process.
#[test]
fn long_runs_take_bounded_memory() {
    drop(Dictionary::current());
    for unit in runs::RUNS {
        let text = unit.repeat(LEN / unit.len());
        for tokens in [
            Tokens::Word,
            Tokens::Char,
            Tokens::Line,
            Tokens::Jieba,
            Tokens::JiebaSearch,
            Tokens::JiebaTfidf,
        ] {
            for accents in [Accents::Keep, Accents::Remove] {
                let mut options = TextOptions {
                    tokens,
                    ..TextOptions::SIMHASH
                };
                options.normalize.accents = accents;
                if accents == Accents::Remove && tokens != Tokens::Word {
                    continue;
                }
                measure(&format!("{tokens:?}, {accents:?}"), unit, |check| {
                    Sketcher::new(options).simhash64(&text, check);
                });
            }
        }
        measure("text_length", unit, |check| {
            assert!(text_length(&text, false, Accents::Keep, check) <= LEN as u64 * 6);
        });
        measure("html_text", unit, |check| {
            assert!(html_text(&text, check).len() <= LEN)
        });
        measure("longest_sentences_hash", unit, |check| {
            longest_sentences_hash(&text, 3, check);
        });
        for unit_of_segments in [Unit::Paragraph, Unit::Line, Unit::Sentence] {
            measure(&format!("{unit_of_segments:?}"), unit, |check| {
                let found = segments(&text, unit_of_segments, check);
                for segment in found.into_iter().take(100) {
                    assert_ne!(segment_hash(&text[segment.bytes], check), 0);
                }
            });
        }
    }
}
