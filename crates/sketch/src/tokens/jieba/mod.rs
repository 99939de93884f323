//! Chinese words, by jieba.
//!
//! [jieba](https://github.com/fxsj/jieba) finds the most probable way to cut a stretch of Chinese
//! into the words of its dictionary, and cuts what the dictionary leaves as single characters by a
//! hidden Markov model. Here it is jieba-rs, pinned to one version, whose package brings the
//! dictionary. Ties and floating-point sums are always resolved in the same order, and the
//! logarithms of the dictionary's frequencies are those numbers nearest to the exact ones, so the
//! words do not depend on the machine.
//!
//! The text is taken in its normal form. Its segments by UAX 29 that consist of characters which
//! jieba knows (Han, ASCII letters and digits, `+ # & . _ % -`) form stretches; one with a Han
//! character is cut by jieba, and what it yields without Han, letter or digit is dropped.
//! Everything else is words by UAX 29, as in [`super::word`]. So Chinese with ASCII in between is
//! cut as by jieba itself, while its tokens for other scripts, which are single characters, are not
//! used.
//!
//! A text without places to cut it ends a word after 64 kB.

mod dictionary;
mod idf;
mod keywords;
mod user_words;

use unicode_segmentation::UnicodeSegmentation;

pub use dictionary::{Dictionary, LOAD_BYTES};
pub use jieba_rs::TokenizeMode;
pub(crate) use keywords::{default_number, keyword_weight, keyword_words, keywords};
pub use user_words::{
    EntryError, MAX_FREQUENCY, MAX_LIST, MAX_WORD_CHARS, UserWordError, UserWords,
};

use crate::memory::GrowString;
use crate::normalize::class::Class;
use crate::normalize::each_piece;

/// ln(documents / documents with the word), as jieba knows it, for a word in its normal form. A
/// word that it does not know has the median of those that it does.
#[must_use]
pub fn inverse_document_frequency(word: &str) -> f64 {
    let idf = idf::idf(crate::hash::feature_hash(word.as_bytes()));
    f64::from(idf) / f64::from(1 << idf::IDF_BITS)
}

/// Bytes after which a part of the text ends if it could not be cut before.
const MAX_PART: usize = 1 << 16;

/// Whether jieba takes the character for Chinese: CJK Unified Ideographs in the blocks that
/// jieba-rs looks at.
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

/// Whether jieba may take the character into a word with others.
fn is_jieba(c: char) -> bool {
    match c {
        '\0'..='\x7F' => {
            c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '&' | '.' | '_' | '%' | '-')
        }
        _ => is_han(c),
    }
}

/// Hands over the words of `text`, one after the other; `buffer` is room for a piece of it. Calls
/// `check` every few 10 kB.
///
/// Time is linear in the length of the text.
pub(crate) fn tokenize(
    dictionary: &Dictionary,
    mode: TokenizeMode,
    text: &str,
    buffer: &mut String,
    each: &mut impl FnMut(&str),
    check: &mut dyn FnMut(),
) {
    let mut parts = Parts::default();
    each_piece(text, buffer, check, |piece| {
        parts.push(piece, |part, kind| take(dictionary, mode, part, kind, each));
    });
    parts.end(|part, kind| take(dictionary, mode, part, kind, each));
}

/// What a part of a text consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    /// Only characters that jieba knows.
    pure: bool,
    /// Han among them.
    han: bool,
}

impl Kind {
    const EMPTY: Self = Self {
        pure: true,
        han: false,
    };
}

/// Cuts a text into parts that can be cut into words one by one, none of them within a stretch of
/// characters that jieba knows.
struct Parts {
    /// The part that is still open.
    open: String,
    kind: Kind,
    /// Whether jieba knows its last character, and the class of that; none before the first.
    last: Option<(bool, Class)>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            open: String::new(),
            kind: Kind::EMPTY,
            last: None,
        }
    }
}

impl Parts {
    fn push(&mut self, piece: &str, mut each: impl FnMut(&str, Kind)) {
        let (mut from, mut at) = (0, 0);
        while let Some(c) = piece[at..].chars().next() {
            let room = MAX_PART.saturating_sub(self.open.len() + at - from);
            // Chinese is a run of the same kind; a cut inside depends on nothing but its length.
            let run = han_run(piece.as_bytes(), at, room);
            let (len, jieba, han, class) = match run {
                0 => (c.len_utf8(), is_jieba(c), is_han(c), Class::of(c)),
                run => (run, true, true, Class::Solo),
            };
            let cut = self.last.is_some_and(|(last_jieba, last)| {
                room == 0 || !(last_jieba && jieba) && last.cut_before(class)
            });
            if cut {
                self.open.grow_str(&piece[from..at]);
                from = at;
                self.end(&mut each);
            }
            self.kind.pure &= jieba;
            self.kind.han |= han;
            self.last = Some((jieba, class));
            at += len;
        }
        self.open.grow_str(&piece[from..]);
    }

    /// Ends the open part.
    fn end(&mut self, mut each: impl FnMut(&str, Kind)) {
        // All that the pieces leave to be normalised.
        self.open.make_ascii_lowercase();
        each(&self.open, self.kind);
        self.open.clear();
        self.kind = Kind::EMPTY;
    }
}

/// Bytes of the characters U+4E00 to U+9FFF at a place, none of which begins beyond `room` bytes.
fn han_run(bytes: &[u8], from: usize, room: usize) -> usize {
    let (characters, _) = bytes[from..].as_chunks::<3>();
    let count = characters[..characters.len().min(room.div_ceil(3))]
        .iter()
        .take_while(|&&[first, second, _]| {
            matches!(first, 0xE5..=0xE9) || first == 0xE4 && second >= 0xB8
        })
        .count();
    3 * count
}

/// Hands over the words of a part.
fn take(
    dictionary: &Dictionary,
    mode: TokenizeMode,
    part: &str,
    kind: Kind,
    each: &mut impl FnMut(&str),
) {
    if !kind.han {
        each_word(part, each);
    } else if kind.pure {
        dictionary.cut(part, mode, each);
    } else {
        // Stretches of segments that jieba knows, and what stands between them.
        let mut from = 0;
        let mut known = Kind::EMPTY;
        for (at, segment) in part.split_word_bound_indices() {
            let pure = segment.chars().all(is_jieba);
            if pure != known.pure && at > from {
                take_stretch(dictionary, mode, &part[from..at], known, each);
                from = at;
                known.han = false;
            }
            known.pure = pure;
            known.han |= segment.chars().any(is_han);
        }
        take_stretch(dictionary, mode, &part[from..], known, each);
    }
}

fn take_stretch(
    dictionary: &Dictionary,
    mode: TokenizeMode,
    stretch: &str,
    kind: Kind,
    each: &mut impl FnMut(&str),
) {
    if kind.pure && kind.han {
        dictionary.cut(stretch, mode, each);
    } else {
        each_word(stretch, each);
    }
}

/// Words by UAX 29, as [`super::word`] has them.
fn each_word(text: &str, each: &mut impl FnMut(&str)) {
    for word in text.unicode_words() {
        if !word.starts_with([' ', '\u{1680}']) {
            each(word);
        }
    }
}

#[cfg(test)]
mod tests;
