//! Pieces: the parts of a comparison as a reader sees them. Long equal text between two changes is
//! folded: its head and its tail are shown beside the changes as context, and a note with the
//! number of omitted words or letters replaces the middle.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::tokens::is_blank;
use crate::{Diff, Kind, Span};

/// Minimum number of words in a folded middle. Fewer words are shown, because the note would be
/// about as long.
const MIN_FOLDED_WORDS: usize = 5;
/// Minimum number of letters in a folded middle, if the context is counted in letters. Fewer
/// letters are shown.
const MIN_FOLDED_LETTERS: usize = 60;
/// If context that is counted in letters ends inside a word, it is extended to the end of the word.
/// If this many characters of the word or more are missing, the word is cut in two instead.
const MAX_CUT_SHIFT: usize = 40;

/// Options that decide which parts of a comparison are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Amount of equal text shown before and after each change. `None` shows all equal text.
    pub context: Option<Context>,
    /// True if a change that affects only white space is shown as equal text.
    pub ignores_white_space: bool,
}

impl View {
    /// Returns a view that shows all changes, with `context` words of equal text before and after
    /// each change. `None` shows all equal text.
    #[must_use]
    pub fn with_words(context: Option<usize>) -> Self {
        Self {
            context: context.map(Context::Words),
            ignores_white_space: false,
        }
    }
}

/// Amount of equal text that is shown before and after each change, in words or in letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Number of words. Each punctuation sign and each Chinese character is one word.
    Words(usize),
    /// Number of characters other than white space. Context that ends inside a word is extended to
    /// the end of the word, unless 40 or more characters are missing.
    Letters(usize),
}

impl Context {
    /// Returns the number of words or letters.
    fn amount(self) -> usize {
        match self {
            Self::Words(amount) | Self::Letters(amount) => amount,
        }
    }

    /// Returns the minimum number of words or letters in a folded middle.
    fn min_folded(self) -> usize {
        match self {
            Self::Words(_) => MIN_FOLDED_WORDS,
            Self::Letters(_) => MIN_FOLDED_LETTERS,
        }
    }

    /// Returns the byte ranges of the units of a text: its words or its letters.
    fn units<'t>(self, text: &'t str) -> Box<dyn Iterator<Item = Range<usize>> + 't> {
        match self {
            Self::Words(_) => {
                let words = text.split_word_bound_indices();
                let words = words.filter(|(_, word)| !is_blank(word));
                Box::new(words.map(|(start, word)| start..start + word.len()))
            }
            Self::Letters(_) => {
                let letters = text.char_indices().filter(|(_, c)| !c.is_whitespace());
                Box::new(letters.map(|(start, c)| start..start + c.len_utf8()))
            }
        }
    }

    /// Returns the byte offset at which the first `count` units (words or letters) of a text end.
    fn end(self, text: &str, count: usize) -> usize {
        match count.checked_sub(1) {
            Some(last) => (self.units(text).nth(last)).map_or(text.len(), |unit| unit.end),
            None => 0,
        }
    }

    /// Returns the byte offset at which the shown tail of a text begins. `count` is the number of
    /// units (words or letters) before the tail. If units are words, the tail begins at its first
    /// word. If units are letters, it begins with the white space before its first letter, which
    /// keeps the indentation.
    fn tail_start(self, text: &str, count: usize) -> usize {
        match self {
            Self::Words(_) => (self.units(text).nth(count)).map_or(text.len(), |unit| unit.start),
            Self::Letters(_) => self.end(text, count),
        }
    }

    /// Returns the number of units (words or letters) after which to cut a text, so that no word is
    /// divided. `count` is the intended number. If a cut after `count` letters would divide a word,
    /// it moves to the end of the word, unless [`MAX_CUT_SHIFT`] or more letters follow in the
    /// word. A cut after `count` words does not move.
    fn word_end(self, text: &str, count: usize) -> usize {
        match self {
            Self::Letters(_) if count > 0 => {
                let rest = text[self.end(text, count)..].chars().take(MAX_CUT_SHIFT);
                match rest.take_while(|c| !c.is_whitespace()).count() {
                    MAX_CUT_SHIFT => count,
                    more => count + more,
                }
            }
            _ => count,
        }
    }
}

/// Part of a comparison, either shown or folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text that is shown. At most one of `a` and `b` is empty.
    Text {
        /// Whether `a` and `b` are equal, or how they differ.
        kind: Kind,
        /// Part of the first text.
        a: &'a str,
        /// Part of the second text. In an equal piece, it differs from `a` at most in white space.
        b: &'a str,
    },
    /// Equal text that is replaced by a note.
    Folded {
        /// Part of the first text.
        a: &'a str,
        /// Part of the second text.
        b: &'a str,
        /// Number of folded words or letters, in the unit of [`View::context`].
        amount: usize,
    },
}

/// Iterator over the pieces of a comparison, in text order.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    diff: &'a Diff<'a>,
    spans: std::slice::Iter<'a, Span>,
    view: View,
    is_first: bool,
    /// Pieces that the iterator returns before it reads the next span: the folded middle and the
    /// tail of an equal text, after the iterator has returned the head.
    pending: [Option<Piece<'a>>; 2],
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(diff: &'a Diff<'a>, view: View) -> Self {
        Self {
            diff,
            spans: diff.spans().iter(),
            view,
            is_first: true,
            pending: [None, None],
        }
    }

    /// Returns true if the view shows this span as equal text.
    fn is_equal(&self, span: &Span) -> bool {
        span.kind == Kind::Equal
            || (self.view.ignores_white_space && self.diff.is_white_space(span))
    }

    /// Consumes the spans that follow `span` and are also shown as equal. Returns the equal text,
    /// from the start of `span` to the end of the last consumed span, in the first and in the
    /// second text.
    fn equal_texts(&mut self, span: &Span) -> [&'a str; 2] {
        let mut last = span;
        while let Some(next) = self.spans.as_slice().first()
            && self.is_equal(next)
        {
            last = next;
            self.spans.next();
        }
        let [a, b] = self.diff.originals();
        [
            &a[span.a.bytes.start..last.a.bytes.end],
            &b[span.b.bytes.start..last.b.bytes.end],
        ]
    }

    /// Divides equal text into the shown head, the folded middle and the shown tail. Returns `None`
    /// if the text is shown completely. `texts` has the equal text as it is in the first text and
    /// in the second text. `is_first` is true for the first equal text of a comparison. Its head is
    /// empty, because no change precedes it. The tail of the last equal text is empty too.
    fn folded(&self, texts: [&'a str; 2], is_first: bool) -> Option<[Piece<'a>; 3]> {
        let context = self.view.context?;
        let is_last = self.spans.len() == 0;
        let before = if is_first { 0 } else { context.amount() };
        let behind = if is_last { 0 } else { context.amount() };
        let total = context.units(texts[0]).count();
        let folded = total.checked_sub(before)?.checked_sub(behind)?;
        if folded < context.min_folded() {
            return None;
        }
        let head = context.word_end(texts[0], before);
        let tail = context.word_end(texts[0], total - behind).max(head);
        // The two texts may differ in white space, so both are cut at the same units, not at the
        // same offsets.
        let [a, b] = texts.map(|text| {
            let (head, tail) = (context.end(text, head), context.tail_start(text, tail));
            [&text[..head], &text[head..tail], &text[tail..]]
        });
        let equal = |n: usize| Piece::Text {
            kind: Kind::Equal,
            a: a[n],
            b: b[n],
        };
        let middle = Piece::Folded {
            a: a[1],
            b: b[1],
            amount: tail - head,
        };
        Some([equal(0), middle, equal(2)])
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        for piece in &mut self.pending {
            if let Some(piece) = piece.take() {
                return Some(piece);
            }
        }
        let span = self.spans.next()?;
        let is_first = std::mem::replace(&mut self.is_first, false);
        if !self.is_equal(span) {
            let ([a, b], kind) = (self.diff.texts(span), span.kind);
            return Some(Piece::Text { kind, a, b });
        }
        let texts = self.equal_texts(span);
        let Some([head, middle, tail]) = self.folded(texts, is_first) else {
            let ([a, b], kind) = (texts, Kind::Equal);
            return Some(Piece::Text { kind, a, b });
        };
        let is_empty = |piece: &Piece| matches!(piece, Piece::Text { a: "", b: "", .. });
        self.pending[1] = Some(tail).filter(|piece| !is_empty(piece));
        if is_empty(&head) {
            return Some(middle);
        }
        self.pending[0] = Some(middle);
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(a: &str, b: &str, context: Option<usize>) -> Vec<String> {
        let diff = Diff::new(a, b, &mut ()).unwrap();
        (diff.pieces(View::with_words(context)))
            .map(|piece| match piece {
                Piece::Text {
                    kind: Kind::Equal,
                    a,
                    b,
                } => {
                    assert_eq!(a, b);
                    a.to_owned()
                }
                Piece::Text { a, b, .. } => format!("{a}>{b}"),
                Piece::Folded { a, b, amount } => {
                    assert_eq!(a, b);
                    format!("[{amount}:{}]", a.trim())
                }
            })
            .collect()
    }

    #[test]
    fn long_equal_text_is_folded() {
        let a = "1 2 3 4 5 6 7 old 1 2 3 4 5 6 7 8 9 gone 1 2 3 4 5 6";
        let b = "1 2 3 4 5 6 7 new 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6";
        assert_eq!(
            shown(a, b, Some(2)),
            [
                "[5:1 2 3 4 5]",
                "6 7 ",
                "old>new",
                " 1 2",
                "[5:3 4 5 6 7]",
                "8 9 ",
                "gone >",
                "1 2 3 4 5 6"
            ]
        );
        assert_eq!(
            shown(a, b, Some(0)),
            [
                "[7:1 2 3 4 5 6 7]",
                "old>new",
                "[9:1 2 3 4 5 6 7 8 9]",
                "gone >",
                "[6:1 2 3 4 5 6]"
            ]
        );
        assert_eq!(shown(a, b, None).len(), 5);
        assert_eq!(shown(a, b, Some(100)), shown(a, b, None));
        assert_eq!(shown(a, a, Some(3)), [format!("[24:{a}]")]);
        assert_eq!(shown("1 2", "1 2", Some(0)), ["1 2"]);
    }

    proptest! {
        /// The pieces of any view together contain all of both texts.
        #[test]
        fn is_both_texts(
            a in "([a-c]{1,20}[ ,\n]{0,2}){0,30}",
            b in "([a-c]{1,20}[ ,\n]{0,2}){0,30}",
            context in prop::option::of((any::<bool>(), 0_usize..5)),
            ignores_white_space in any::<bool>(),
        ) {
            let context = context.map(|(is_words, amount)| match is_words {
                true => Context::Words(amount),
                false => Context::Letters(amount),
            });
            let letters = |text: &str| -> String { text.split_whitespace().collect() };
            let diff = Diff::new(&a, &b, &mut ()).unwrap();
            let mut rebuilt = [String::new(), String::new()];
            for piece in diff.pieces(View { context, ignores_white_space }) {
                let (kind, a, b) = match piece {
                    Piece::Text { kind, a, b } => (kind, a, b),
                    Piece::Folded { a, b, amount } => {
                        prop_assert!(context.is_some() && amount > 0);
                        (Kind::Equal, a, b)
                    }
                };
                prop_assert!(!a.is_empty() || !b.is_empty());
                match kind {
                    Kind::Equal if ignores_white_space => prop_assert_eq!(letters(a), letters(b)),
                    kind => prop_assert_eq!(a == b, kind == Kind::Equal),
                }
                rebuilt[0] += a;
                rebuilt[1] += b;
            }
            prop_assert_eq!(rebuilt, [a, b]);
        }
    }
}
