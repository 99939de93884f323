//! Tokens of a text, and their conversion into features.
//!
//! `kinds` lists the kinds of tokens, and [`FeatureExtractor::extract`] chooses the tokenizer:
//!
//! | tokens | module |
//! |---|---|
//! | words | `word`, with `simple_text`, `ascii`, `ascii_class` and `pack` for ASCII and similar |
//! | | text, and `single_char` for Han |
//! | characters | `chars` |
//! | lines | `lines` |
//! | Chinese words | [`jieba`] |
//!
//! Words are the segments of [UAX 29] that have a letter or a digit (a character with the property
//! Alphabetic or of general category N), in the normal form of the text ([`crate::normalize`]).
//! Han and Hiragana become single characters, Katakana and Hangul become runs, and Thai and
//! similar scripts become runs between spaces.
//!
//! No word contains a space (U+0020), so [`crate::shingle::SEPARATOR`] cannot occur in a word. A
//! segment that begins with a space is not a word, even if it has an alphabetic mark.
//!
//! Characters are taken from the normal form, with one space for each run of white space, and none
//! at the ends of the text.
//!
//! Lines are taken from the normal form. They have no white space at their ends, and one space for
//! each run of white space inside. Blank lines are dropped. Lines end at the mandatory breaks of
//! UAX 14.
//!
//! [UAX 29]: https://www.unicode.org/reports/tr29/#Word_Boundaries

mod ascii;
mod ascii_class;
mod chars;
pub mod jieba;
pub(crate) mod kinds;
mod lines;
mod pack;
mod simple_text;
mod single_char;
mod whitespace;
mod word;

use std::borrow::Cow;

use crate::feature_sink::FeatureSink;
use crate::html::html_text;
use crate::normalize::fold_accents_and_digits;
use crate::options::{TextOptions, Tokens};
use crate::shingle::Shingles;
use chars::CharWindows;
use jieba::{Dictionary, Keyword, TokenizeMode};
pub(crate) use whitespace::{is_line_end, is_space};
use word::WordTokenizer;

/// Maximum occurrences of one keyword passed to the sink at once, because the sink buffers them.
const KEYWORD_BATCH: usize = 1 << 12;

/// Turns texts into features; reusable.
#[derive(Default)]
pub(crate) struct FeatureExtractor {
    words: WordTokenizer,
    chars: CharWindows,
    shingles: Shingles,
    buffer: String,
}

impl FeatureExtractor {
    /// Passes each occurrence of each feature of `text` to `sink`. Calls `check` every few 100 kB.
    pub fn extract(
        &mut self,
        text: &str,
        options: &TextOptions,
        sink: &mut impl FeatureSink,
        check: &mut dyn FnMut(),
    ) {
        let (text, number) = preprocess(text, options, check);
        let (shingles, width) = (&mut self.shingles, options.shingle);
        if let Some(separator) = options.tokens.separator() {
            shingles.reset(width, separator);
        }
        let buffer = &mut self.buffer;
        match options.tokens {
            Tokens::Char => return self.chars.extract(&text, width, sink, check),
            Tokens::JiebaTfidf => return add_keywords(&text, number, options, sink, check),
            Tokens::Word => self.words.tokenize(&text, shingles, sink, check),
            Tokens::Line => lines::tokenize(&text, buffer, shingles, sink, check),
            Tokens::Jieba | Tokens::JiebaSearch => {
                let mode = match options.tokens {
                    Tokens::Jieba => TokenizeMode::Default,
                    _ => TokenizeMode::Search,
                };
                let add = &mut |word: &str| shingles.push(word.as_bytes(), sink);
                jieba::tokenize(&Dictionary::current(), mode, &text, buffer, add, check);
            }
        }
        shingles.finish(sink);
    }
}

/// Passes each occurrence of the `number` keywords of a text to `sink`.
fn add_keywords(
    text: &str,
    number: usize,
    options: &TextOptions,
    sink: &mut impl FeatureSink,
    check: &mut dyn FnMut(),
) {
    let (dictionary, weight) = (Dictionary::current(), options.weight.function());
    for (word, keyword) in jieba::keyword_words(&dictionary, text, number, weight, check) {
        let mut left = keyword.count as usize;
        while left > 0 {
            let times = left.min(KEYWORD_BATCH);
            sink.add_all(word.as_bytes(), std::iter::repeat_n(0..word.len(), times));
            left -= times;
        }
        sink.bytes_dropped(word.len());
    }
}

/// Returns the keywords of `text`, the heaviest first.
pub(crate) fn keywords(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Vec<Keyword> {
    let (text, number) = preprocess(text, options, check);
    let weight = options.weight.function();
    jieba::keywords(&Dictionary::current(), &text, number, weight, check)
}

/// Returns the keywords of `text` with the words themselves, in text order.
pub(crate) fn keyword_words(
    text: &str,
    options: &TextOptions,
    check: &mut dyn FnMut(),
) -> Vec<(String, Keyword)> {
    let (text, number) = preprocess(text, options, check);
    let weight = options.weight.function();
    jieba::keyword_words(&Dictionary::current(), &text, number, weight, check)
}

/// Removes markup, accents and digits from a text as `options` require. Also returns the number of
/// keywords.
fn preprocess<'a>(
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
    let text = fold_accents_and_digits(visible, options.normalize, check);
    (text, keywords)
}
