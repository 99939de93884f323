//! Splits texts into tokens, and combines the tokens into features.
//!
//! `kinds` lists the kinds of tokens. [`FeatureExtractor::extract`] chooses the tokenizer, which is
//! in one of these modules:
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
//! Each Han or Hiragana character is a word. In Katakana and Hangul, a word is a run of characters
//! of the script. In Thai and similar scripts, a word is a run between spaces.
//!
//! No word contains a space (U+0020), so [`crate::shingle::SEPARATOR`] cannot occur in a word. A
//! segment that begins with a space is not a word, even if it has an alphabetic mark.
//!
//! Characters are taken from the normal form. Each run of white space is one space, and there is
//! none at the ends of the text.
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

/// Maximum number of occurrences of one keyword that are passed to the sink in one call. Bounds the
/// memory of the sink, which buffers them.
const KEYWORD_BATCH: usize = 1 << 12;

/// Extracts the features of texts. Keeps its buffers between texts.
#[derive(Default)]
pub(crate) struct FeatureExtractor {
    words: WordTokenizer,
    chars: CharWindows,
    shingles: Shingles,
    buffer: String,
}

impl FeatureExtractor {
    /// Splits `text` into tokens, combines them into features as in `options`, and passes each
    /// occurrence of each feature to `sink`. Calls the cancellation check `check` every few 100 kB.
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

/// Finds the `number` heaviest keywords of `text`. Passes each keyword to `sink` as a feature, once
/// for each occurrence in the text.
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

/// Returns the keywords of `text`, the heaviest first. The number of keywords is
/// `options.keywords`. If this is 0, the number depends on the length of the text.
pub(crate) fn keywords(text: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Vec<Keyword> {
    let (text, number) = preprocess(text, options, check);
    let weight = options.weight.function();
    jieba::keywords(&Dictionary::current(), &text, number, weight, check)
}

/// Returns the keywords of `text` like [`keywords`], but each with its word, in the order of first
/// occurrence.
pub(crate) fn keyword_words(
    text: &str,
    options: &TextOptions,
    check: &mut dyn FnMut(),
) -> Vec<(String, Keyword)> {
    let (text, number) = preprocess(text, options, check);
    let weight = options.weight.function();
    jieba::keyword_words(&Dictionary::current(), &text, number, weight, check)
}

/// Removes HTML markup and accents from `text` and replaces digits, as `options` require. Returns
/// the resulting text, which is not normalised yet, and the number of keywords to choose from it.
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
