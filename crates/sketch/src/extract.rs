//! From a text and options to features: the one way that every fingerprint and signature takes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::thread::LocalKey;

use crate::counts::FeatureCounts;
use crate::hash::{FeatureHash, feature_hash};
use crate::normalize::options::prepared;
use crate::options::{TextOptions, Tokens};
use crate::shingle::{FeatureSink, LINE_SEPARATOR, SEPARATOR, Shingles};
use crate::tokens::chars::Chars;
use crate::tokens::lines;
use crate::tokens::word::Words;

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
        let visible = if options.html {
            // The extraction of text from HTML comes in here; callers refuse the option until then.
            unimplemented!("html")
        } else {
            Cow::Borrowed(text)
        };
        let text = prepared(visible, options.normalize, check);
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
        }
    }
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
pub(crate) trait Extracted: FeatureHash + Sized {
    /// Hands over the hash of every distinct feature of `text` with the number of its occurrences, in
    /// no particular order. Calls `check` every few 100 kB.
    fn each(
        text: &str,
        options: &TextOptions,
        each: impl FnMut(Self, u64),
        check: &mut dyn FnMut(),
    );
}

impl Extracted for [u64; 1] {
    fn each(
        text: &str,
        options: &TextOptions,
        each: impl FnMut(Self, u64),
        check: &mut dyn FnMut(),
    ) {
        each_counted(&SCRATCH_64, text, options, each, check);
    }
}

impl Extracted for [u64; 2] {
    fn each(
        text: &str,
        options: &TextOptions,
        each: impl FnMut(Self, u64),
        check: &mut dyn FnMut(),
    ) {
        each_counted(&SCRATCH_128, text, options, each, check);
    }
}

fn each_counted<const W: usize>(
    place: &'static LocalKey<Place<W>>,
    text: &str,
    options: &TextOptions,
    each: impl FnMut([u64; W], u64),
    check: &mut dyn FnMut(),
) where
    [u64; W]: FeatureHash,
{
    let mut scratch = place.take().unwrap_or_default();
    let Scratch { extractor, counts } = &mut *scratch;
    counts.reset(expected_features(text, options.tokens));
    extractor.feed(text, options, counts, check);
    counts.drain(each, check);
    place.set(Some(scratch));
}

/// A guess at the number of features.
fn expected_features(text: &str, tokens: Tokens) -> usize {
    let spaced = text.as_bytes().get(text.len() / 2).is_none_or(u8::is_ascii);
    text.len()
        / match tokens {
            // English has a word in six bytes, Chinese one in three.
            Tokens::Word if spaced => 6,
            Tokens::Char if spaced => 2,
            Tokens::Word | Tokens::Char => 3,
            Tokens::Line => 40,
        }
}

/// Hands over the 64-bit hash ([`feature_hash`]) of every distinct feature of `text`, with the number
/// of its occurrences, each feature once, in no particular order.
///
/// `check` is called every few 100 kB of work, so that the caller can stop by unwinding from it. Time
/// and memory are those of [`crate::simhash64_text`].
pub fn each_feature64(
    text: &str,
    options: &TextOptions,
    mut each: impl FnMut(u64, u64),
    check: &mut dyn FnMut(),
) {
    <[u64; 1]>::each(text, options, |[hash], count| each(hash, count), check);
}

/// [`each_feature64`] with hashes of 128 bits ([`crate::hash::feature_hash128`]), which no two features
/// share by chance.
pub fn each_feature128(
    text: &str,
    options: &TextOptions,
    mut each: impl FnMut(u128, u64),
    check: &mut dyn FnMut(),
) {
    let join = crate::hash::join;
    <[u64; 2]>::each(text, options, |hash, count| each(join(hash), count), check);
}

/// A feature, to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// What is hashed.
    pub text: String,
    /// Number of occurrences.
    pub count: u64,
    /// Weight, in units of 2^-[`crate::weight::FRACTION_BITS`].
    pub weight: u64,
    /// Its 64-bit hash.
    pub hash: u64,
}

/// The distinct features of a text, the heaviest first, those of one weight in the order of their
/// bytes.
///
/// Unlike the other functions it keeps every distinct feature in memory as text.
pub fn features(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Vec<Feature> {
    let mut counts = TextCounts::default();
    Extractor::default().feed(text, options, &mut counts, check);
    let weight = options.weight.function();
    let mut features: Vec<Feature> = counts
        .0
        .into_iter()
        .map(|(text, count)| Feature {
            hash: feature_hash(&text),
            text: String::from_utf8(text.into()).expect("features are cut between characters"),
            count,
            weight: weight(count),
        })
        .collect();
    features.sort_unstable_by(|a, b| (b.weight, &a.text).cmp(&(a.weight, &b.text)));
    features
}

/// How often each feature occurs, by its text.
#[derive(Default)]
struct TextCounts(HashMap<Box<[u8]>, u64>);

impl FeatureSink for TextCounts {
    fn add_all<'a>(&mut self, features: impl Iterator<Item = &'a [u8]>) {
        for feature in features {
            match self.0.get_mut(feature) {
                Some(count) => *count += 1,
                None => {
                    self.0.insert(feature.into(), 1);
                }
            }
        }
    }
}
