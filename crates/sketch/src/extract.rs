//! From a text and options to features: the one way that every fingerprint and signature takes.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::thread::LocalKey;

use crate::counts::{Counted, FeatureCounts};
use crate::hash::{FeatureHash, join};
use crate::html::html_text;
use crate::normalize::options::prepared;
use crate::options::{TextOptions, Tokens};
use crate::shingle::{FeatureSink, LINE_SEPARATOR, SEPARATOR, Shingles};
use crate::tokens::chars::Chars;
use crate::tokens::jieba::{self, Dictionary, TokenizeMode};
use crate::tokens::lines;
use crate::tokens::word::Words;

/// A `check` that several parts of a computation call.
pub(crate) struct SharedCheck<'a>(RefCell<&'a mut dyn FnMut()>);

impl<'a> SharedCheck<'a> {
    /// A `check` to be shared.
    pub fn new(check: &'a mut dyn FnMut()) -> Self {
        Self(RefCell::new(check))
    }

    /// Calls it.
    pub fn call(&self) {
        (self.0.borrow_mut())();
    }
}

/// Occurrences of a keyword that are handed on at once.
const AT_ONCE: usize = 1 << 12;

/// Finds the features of texts; reusable.
#[derive(Default)]
pub(crate) struct Extractor {
    words: Words,
    chars: Chars,
    shingles: Shingles,
    buffer: String,
}

impl Extractor {
    /// Feeds each occurrence of each feature of `text` to `sink`. Calls `check` every few 100 kB.
    pub fn feed(
        &mut self,
        text: &str,
        options: &TextOptions,
        sink: &mut impl FeatureSink,
        check: &mut dyn FnMut(),
    ) {
        let (text, keywords) = prepare(text, options, check);
        let shingles = &mut self.shingles;
        match options.tokens {
            Tokens::Word => {
                shingles.reset(options.shingle, SEPARATOR);
                self.words.tokenize(&text, shingles, sink, check);
                shingles.finish(sink);
            }
            Tokens::Char => self.chars.features(&text, options.shingle, sink, check),
            Tokens::Line => {
                shingles.reset(options.shingle, LINE_SEPARATOR);
                lines::tokenize(&text, &mut self.buffer, shingles, sink, check);
                shingles.finish(sink);
            }
            Tokens::Jieba | Tokens::JiebaSearch => {
                let mode = match options.tokens {
                    Tokens::Jieba => TokenizeMode::Default,
                    _ => TokenizeMode::Search,
                };
                shingles.reset(options.shingle, SEPARATOR);
                let each = &mut |word: &str| shingles.push(word.as_bytes(), sink);
                let dictionary = Dictionary::current();
                jieba::tokenize(&dictionary, mode, &text, &mut self.buffer, each, check);
                shingles.finish(sink);
            }
            Tokens::JiebaTfidf => {
                let dictionary = Dictionary::current();
                let weigh = options.weight.function();
                for (word, keyword) in
                    jieba::keyword_words(&dictionary, &text, keywords, weigh, check)
                {
                    // A few at a time, because the sink gathers what it is given.
                    let mut left = keyword.count as usize;
                    while left > 0 {
                        let times = left.min(AT_ONCE);
                        sink.add_all(word.as_bytes(), std::iter::repeat_n(0..word.len(), times));
                        left -= times;
                    }
                    sink.bytes_dropped(word.len());
                }
            }
        }
    }
}

/// What of a text goes into features, and the number of keywords that suits it.
fn prepare<'a>(
    text: &'a str,
    options: &TextOptions,
    check: &mut dyn FnMut(),
) -> (Cow<'a, str>, usize) {
    let visible = if options.html {
        Cow::Owned(html_text(text, check))
    } else {
        Cow::Borrowed(text)
    };
    let keywords = match options.keywords {
        0 => jieba::default_number(visible.len()),
        given => given,
    };
    (prepared(visible, options.normalize, check), keywords)
}

/// The memory that one text needs, kept for the next.
#[derive(Default)]
struct Scratch<const W: usize> {
    extractor: Extractor,
    counts: FeatureCounts<W>,
}

/// Taken out while in use: if `check` unwinds, it is dropped and nothing half-done remains.
type Place<const W: usize> = Cell<Option<Box<Scratch<W>>>>;

thread_local! {
    static SCRATCH_64: Place<1> = const { Cell::new(None) };
    static SCRATCH_128: Place<2> = const { Cell::new(None) };
}

/// A hash that memory is kept for.
pub(crate) trait Extracted<const W: usize>: FeatureHash {
    /// Hands over the hash of every distinct feature of `text` with the number of its occurrences,
    /// many at a time and in no particular order. Calls `check` every few 100 kB.
    fn each(
        text: &str,
        options: &TextOptions,
        each: impl FnMut(&[Counted<W>]),
        check: &mut dyn FnMut(),
    );

    /// Hands over the hash and the weight of every keyword of `text`. Calls `check` likewise.
    fn each_keyword(
        text: &str,
        options: &TextOptions,
        each: impl FnMut(Self, u64),
        check: &mut dyn FnMut(),
    );
}

impl Extracted<1> for [u64; 1] {
    fn each(
        text: &str,
        options: &TextOptions,
        each: impl FnMut(&[Counted<1>]),
        check: &mut dyn FnMut(),
    ) {
        each_counted(&SCRATCH_64, text, options, each, check);
    }

    fn each_keyword(
        text: &str,
        options: &TextOptions,
        mut each: impl FnMut(Self, u64),
        check: &mut dyn FnMut(),
    ) {
        let (text, number) = prepare(text, options, check);
        let weigh = options.weight.function();
        for keyword in jieba::keywords(&Dictionary::current(), &text, number, weigh, check) {
            each([keyword.hash()], keyword.weight);
        }
    }
}

impl Extracted<2> for [u64; 2] {
    fn each(
        text: &str,
        options: &TextOptions,
        each: impl FnMut(&[Counted<2>]),
        check: &mut dyn FnMut(),
    ) {
        each_counted(&SCRATCH_128, text, options, each, check);
    }

    fn each_keyword(
        text: &str,
        options: &TextOptions,
        mut each: impl FnMut(Self, u64),
        check: &mut dyn FnMut(),
    ) {
        let (text, number) = prepare(text, options, check);
        let weigh = options.weight.function();
        let words = jieba::keyword_words(&Dictionary::current(), &text, number, weigh, check);
        for (word, keyword) in words {
            each(Self::of(word.as_bytes()), keyword.weight);
        }
    }
}

fn each_counted<const W: usize>(
    place: &'static LocalKey<Place<W>>,
    text: &str,
    options: &TextOptions,
    each: impl FnMut(&[Counted<W>]),
    check: &mut dyn FnMut(),
) where
    [u64; W]: FeatureHash,
{
    let mut scratch = place.take().unwrap_or_default();
    let Scratch { extractor, counts } = &mut *scratch;
    counts.reset(expected_features(text, options));
    extractor.feed(text, options, counts, check);
    counts.drain(each, check);
    place.set(Some(scratch));
}

/// A guess at the number of distinct features.
fn expected_features(text: &str, options: &TextOptions) -> usize {
    let spaced = text.as_bytes().get(text.len() / 2).is_none_or(u8::is_ascii);
    text.len()
        / match options.tokens {
            // English has a word in six bytes, Chinese one in three.
            Tokens::Word if spaced => 6,
            Tokens::Word => 3,
            // There are not many different characters.
            Tokens::Char if options.shingle < 3 => 8,
            Tokens::Char if spaced => 1,
            Tokens::Char => 3,
            Tokens::Line => 40,
            Tokens::Jieba | Tokens::JiebaSearch => 6,
            Tokens::JiebaTfidf => 120,
        }
}

/// Hands over the 64-bit hash ([`feature_hash`]) of every distinct feature of `text`, with the
/// number of its occurrences, each feature once, in no particular order.
///
/// `check` is called every few 100 kB of work, so that the caller can stop by unwinding from it.
/// Time and memory are those of [`crate::simhash64_text`].
pub fn each_feature64(
    text: &str,
    options: &TextOptions,
    mut each: impl FnMut(u64, u64),
    check: &mut dyn FnMut(),
) {
    let each = |counted: &[Counted<1>]| {
        (counted.iter()).for_each(|feature| each(feature.hash[0], feature.count));
    };
    <[u64; 1]>::each(text, options, each, check);
}

/// [`each_feature64`] with hashes of 128 bits ([`crate::hash::feature_hash128`]), which no two
/// features share by chance.
pub fn each_feature128(
    text: &str,
    options: &TextOptions,
    mut each: impl FnMut(u128, u64),
    check: &mut dyn FnMut(),
) {
    let each = |counted: &[Counted<2>]| {
        (counted.iter()).for_each(|feature| each(join(feature.hash), feature.count));
    };
    <[u64; 2]>::each(text, options, each, check);
}
