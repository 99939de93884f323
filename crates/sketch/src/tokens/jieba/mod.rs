//! Splits Chinese text into words by jieba.
//!
//! [jieba](https://github.com/fxsj/jieba) splits Chinese into the most probable sequence of words
//! of its dictionary, and splits runs of single characters by a hidden Markov model. This module
//! uses jieba-rs, pinned to one version, whose package includes the dictionary. Ties and
//! floating-point sums are always resolved in the same order, and the logarithms of the
//! dictionary's frequencies are correctly rounded, so the words do not depend on the machine.
//!
//! The text is in its normal form. Consecutive segments by UAX 29 form a run if they consist of
//! characters that jieba can join into words (Han, ASCII letters and digits, `+ # & . _ % -`). If a
//! run has a Han character, jieba splits it, and tokens without Han, letter or digit are dropped.
//! All other text is split into words by UAX 29, as in [`super::word`]. So Chinese with ASCII in
//! between is split as by jieba itself. For other scripts, jieba would return single characters.
//!
//! A run without a position where it can be cut safely is cut after 64 kB anyway.

mod dictionary;
mod idf;
mod keywords;
mod normal_stretches;
mod user_words;

use unicode_segmentation::UnicodeSegmentation;

pub use dictionary::{Dictionary, LOAD_BYTES};
pub use jieba_rs::TokenizeMode;
pub(crate) use keywords::{Keyword, default_number, keyword_weight, keyword_words, keywords};
pub use user_words::{
    EntryError, MAX_FREQUENCY, MAX_LIST, MAX_WORD_CHARS, UserWordError, UserWords,
};

use crate::memory::GrowString;
use crate::normalize::class::Class;
use crate::normalize::{each_piece, leading_han};

/// Returns the inverse document frequency of `word` from the table of jieba: ln(number of documents
/// / number of documents with the word). `word` must be in its normal form. A word that is not in
/// the table has the median of the table.
#[must_use]
pub fn inverse_document_frequency(word: &str) -> f64 {
    let idf = idf::idf(crate::hash::feature_hash(word.as_bytes()));
    f64::from(idf) / f64::from(1 << idf::IDF_BITS)
}

/// Maximum number of bytes of a part of the text ([`PartSplitter`]). A part ends at the first
/// position where the text can be cut without changing a word. If there is none in this many bytes,
/// the text is cut anyway.
const MAX_PART: usize = 1 << 16;

/// Returns true for the characters that jieba-rs treats as Chinese: CJK Unified Ideographs of some
/// blocks.
fn is_han(c: char) -> bool {
    matches!(c,
        '\u{4E00}'..='\u{9FFF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{2A6DF}'
        | '\u{2A700}'..='\u{2B73F}'
        | '\u{2B740}'..='\u{2B81F}'
        | '\u{2B820}'..='\u{2CEAF}'
        | '\u{2CEB0}'..='\u{2EBEF}'
        | '\u{2F800}'..='\u{2FA1F}')
}

/// Returns true for the characters that jieba can join into words.
fn is_jieba(c: char) -> bool {
    match c {
        '\0'..='\x7F' => {
            c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '&' | '.' | '_' | '%' | '-')
        }
        _ => is_han(c),
    }
}

/// Splits `text` into words by jieba, and calls `each` for each word in text order. Calls the
/// cancellation check `check` every few 10 kB. `buffer` is working memory. Time is linear in the
/// length of the text.
pub(crate) fn tokenize(
    dictionary: &Dictionary,
    mode: TokenizeMode,
    text: &str,
    buffer: &mut String,
    each: &mut impl FnMut(&str),
    check: &mut dyn FnMut(),
) {
    let mut parts = PartSplitter::default();
    let mut rest = text;
    let mut stretch = normal_stretches::stretch_len(rest);
    while !rest.is_empty() {
        if let Some(len) = stretch {
            let (plain, after) = rest.split_at(len);
            // No word contains a separator, and jieba is slow for separators.
            let plain = plain.trim_matches(normal_stretches::separates);
            if !plain.is_empty() {
                dictionary.cut(plain, mode, &mut *each);
            }
            check();
            rest = after;
            stretch = normal_stretches::stretch_len(rest);
            continue;
        }
        let (len, next) = normal_stretches::other_len(rest);
        let (other, after) = rest.split_at(len);
        each_piece(other, buffer, check, |piece| {
            parts.push(piece, |part, scripts| {
                split_part(dictionary, mode, part, scripts, each)
            });
        });
        parts.end(|part, scripts| split_part(dictionary, mode, part, scripts, each));
        (rest, stretch) = (after, next);
    }
}

/// Kinds of characters in a part of a text. They decide whether jieba, UAX 29 or both split the
/// part into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scripts {
    /// True if jieba can join all characters of the part into words ([`is_jieba`]).
    pure: bool,
    /// True if the part has a Han character.
    han: bool,
    /// True if the part consists of punctuation and spaces that form no word.
    wordless: bool,
}

impl Scripts {
    const EMPTY: Self = Self {
        pure: true,
        han: false,
        wordless: true,
    };
    const CHINESE: Self = Self {
        pure: true,
        han: true,
        wordless: false,
    };
}

/// Cuts a text into parts that can be split into words one by one. Never cuts within a run of
/// characters that jieba can join into words, except after [`MAX_PART`] bytes.
///
/// Complete parts in Chinese are collected, with the punctuation between them, and passed to jieba
/// together. One call of jieba takes longer than splitting a few words, and jieba itself cuts at
/// the punctuation.
struct PartSplitter {
    /// Text of the collected parts, followed by the text of the current part. The collected parts
    /// are complete and end at byte `joined`.
    open: String,
    /// Number of bytes of the collected parts in `open`.
    joined: usize,
    /// True if a collected part in `open` is Chinese. False if all of them are punctuation.
    chinese: bool,
    /// Kinds of characters in the current part.
    scripts: Scripts,
    /// Facts about the last character of the text so far: whether jieba can join it into words, and
    /// its class. `None` at the start of a text.
    last: Option<(bool, Class)>,
}

impl Default for PartSplitter {
    fn default() -> Self {
        Self {
            open: String::new(),
            joined: 0,
            chinese: false,
            scripts: Scripts::EMPTY,
            last: None,
        }
    }
}

/// Number of bytes of collected Chinese parts, with their punctuation, at which [`PartSplitter`]
/// passes the parts to its caller, which splits them.
const JOINED: usize = 1 << 11;

impl PartSplitter {
    /// Adds `piece`, the next piece of the text. Calls `each` with each complete part and its kinds
    /// of characters. Chinese parts are collected first, and several of them are passed to `each`
    /// in one call.
    fn push(&mut self, piece: &str, mut each: impl FnMut(&str, Scripts)) {
        let (mut from, mut at) = (0, 0);
        while let Some(c) = piece[at..].chars().next() {
            let part = self.open.len() - self.joined + at - from;
            let room = MAX_PART.saturating_sub(part);
            // A run of Han characters, or of ASCII letters and digits, is added at once: a cut
            // within the run depends only on the length of the part.
            let bytes = &piece.as_bytes()[at..];
            let (len, jieba, han, class) = match (ascii_run(bytes, room), han_run(bytes, room)) {
                (0, 0) => (c.len_utf8(), is_jieba(c), is_han(c), Class::from_char(c)),
                (0, run) => (run, true, true, Class::SingleCharWord),
                (run, _) => (run, true, false, Class::AsciiWord),
            };
            let cut = self.last.is_some_and(|(last_jieba, last)| {
                room == 0 || !(last_jieba && jieba) && last.cut_before(class)
            });
            if cut {
                self.open.grow_str(&piece[from..at]);
                from = at;
                self.end_part(&mut each);
            }
            self.scripts.pure &= jieba;
            self.scripts.han |= han;
            self.scripts.wordless &= is_wordless(c, class);
            self.last = Some((jieba, class));
            at += len;
        }
        self.open.grow_str(&piece[from..]);
    }

    /// Ends the current part. If the part is Chinese or punctuation, adds it to the collected
    /// parts. Otherwise calls `each` with the collected parts, and then with this part.
    fn end_part(&mut self, each: &mut impl FnMut(&str, Scripts)) {
        let scripts = std::mem::replace(&mut self.scripts, Scripts::EMPTY);
        let chinese = scripts.pure && scripts.han;
        if chinese || scripts.wordless {
            self.chinese |= chinese;
            self.joined = self.open.len();
            // The condition is also true for a part that was cut because of its length.
            if self.joined >= JOINED {
                self.pass_joined(each);
                self.open.clear();
                self.joined = 0;
            }
            return;
        }
        let part = self.joined;
        self.pass_joined(each);
        each(&self.open[part..], scripts);
        self.open.clear();
        self.joined = 0;
    }

    /// Calls `each` with the text of the collected parts in `open`, unless all of them are
    /// punctuation.
    fn pass_joined(&mut self, each: &mut impl FnMut(&str, Scripts)) {
        if std::mem::take(&mut self.chinese) {
            each(&self.open[..self.joined], Scripts::CHINESE);
        }
    }

    /// Ends the text: calls `each` with the collected parts and the current part, and prepares for
    /// another text.
    fn end(&mut self, mut each: impl FnMut(&str, Scripts)) {
        self.end_part(&mut each);
        self.pass_joined(&mut each);
        *self = Self {
            open: std::mem::take(&mut self.open),
            ..Self::default()
        };
        self.open.clear();
    }
}

/// Returns true if `c`, whose class is `class`, is punctuation or a space that forms no word in any
/// combination.
fn is_wordless(c: char, class: Class) -> bool {
    match class {
        Class::AsciiBreak | Class::Separator | Class::Mid => true,
        Class::AsciiWord => !c.is_ascii_alphanumeric(),
        _ => false,
    }
}

/// Returns the number of bytes of the common Han characters (U+4E00 to U+9FFF) at the start of
/// `text`. Counts only characters that begin within the first `room` bytes.
fn han_run(text: &[u8], room: usize) -> usize {
    leading_han(&text[..text.len().min(room.next_multiple_of(3))])
}

/// Returns the number of leading ASCII letters and digits within the first `room` bytes of `text`.
fn ascii_run(text: &[u8], room: usize) -> usize {
    let within = text[..text.len().min(room)].iter();
    within
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count()
}

/// Splits a part of a text into words, and calls `each` for each word. `scripts` has the part's
/// kinds of characters, which decide between jieba and UAX 29. `mode` is the mode of jieba.
fn split_part(
    dictionary: &Dictionary,
    mode: TokenizeMode,
    part: &str,
    scripts: Scripts,
    each: &mut impl FnMut(&str),
) {
    if !scripts.han {
        each_word(part, each);
    } else if scripts.pure {
        dictionary.cut(part, mode, each);
    } else {
        // Finds the runs of UAX 29 segments that jieba can join into words, and the text between
        // these runs.
        let mut from = 0;
        let mut known = Scripts::EMPTY;
        for (at, segment) in part.split_word_bound_indices() {
            let pure = segment.chars().all(is_jieba);
            if pure != known.pure && at > from {
                split_by_jieba_or_uax29(dictionary, mode, &part[from..at], known, each);
                from = at;
                known.han = false;
            }
            known.pure = pure;
            known.han |= segment.chars().any(is_han);
        }
        split_by_jieba_or_uax29(dictionary, mode, &part[from..], known, each);
    }
}

/// Splits `run` into words, and calls `each` for each word. `run` is a piece of a part of the text,
/// and `scripts` has its kinds of characters. Uses jieba in the mode `mode` if `run` has Han
/// characters and jieba can join all of its characters. Otherwise uses UAX 29.
fn split_by_jieba_or_uax29(
    dictionary: &Dictionary,
    mode: TokenizeMode,
    run: &str,
    scripts: Scripts,
    each: &mut impl FnMut(&str),
) {
    if scripts.pure && scripts.han {
        dictionary.cut(run, mode, each);
    } else {
        each_word(run, each);
    }
}

/// Calls `each` for the words of `text` by UAX 29, as in [`super::word`].
fn each_word(text: &str, each: &mut impl FnMut(&str)) {
    for word in text.unicode_words() {
        if !word.starts_with([' ', '\u{1680}']) {
            each(word);
        }
    }
}

#[cfg(test)]
mod tests;
