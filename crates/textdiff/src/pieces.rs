//! Spans to be shown, with long equal stretches left out.

use unicode_segmentation::UnicodeSegmentation;

use crate::tokens::is_blank;
use crate::{Diff, Kind, Span};

/// Fewest words that are left out. What says so is about as long.
const FEWEST_FOLDED: usize = 5;

/// Part of a comparison as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A span or a part of an equal one: its text in both originals, of which one may be empty.
    Text {
        /// Kind.
        kind: Kind,
        /// Text of the first original.
        a: &'a str,
        /// Text of the second original.
        b: &'a str,
    },
    /// Equal text that is left out.
    Folded {
        /// The text.
        text: &'a str,
        /// Number of its words, each sign and each Chinese character as one.
        words: usize,
    },
}

/// Iterator over what is shown of a comparison, in the order of the texts.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    diff: &'a Diff<'a>,
    spans: std::slice::Iter<'a, Span>,
    context: Option<usize>,
    is_first: bool,
    /// The rest of the last span: what is left out, and what comes behind.
    waiting: [Option<Piece<'a>>; 2],
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(diff: &'a Diff<'a>, context: Option<usize>) -> Self {
        Self {
            diff,
            spans: diff.spans().iter(),
            context,
            is_first: true,
            waiting: [None, None],
        }
    }

    /// Divides an equal text into what is shown before and what is shown behind; `None` if it is
    /// shown as a whole. The first and the last text of a comparison have a change on one side.
    fn folded(&self, text: &'a str, is_first: bool) -> Option<[Piece<'a>; 3]> {
        let context = self.context?;
        let is_last = self.spans.len() == 0;
        let words = || (text.split_word_bound_indices()).filter(|(_, word)| !is_blank(word));
        let total = words().count();
        let before = if is_first { 0 } else { context };
        let behind = if is_last { 0 } else { context };
        let folded = total.checked_sub(before)?.checked_sub(behind)?;
        if folded < FEWEST_FOLDED {
            return None;
        }
        let head = match before.checked_sub(1) {
            Some(n) => words().nth(n).map_or(0, |(at, word)| at + word.len()),
            None => 0,
        };
        let tail = match behind {
            0 => text.len(),
            _ => words().nth(total - behind).map_or(text.len(), |(at, _)| at),
        };
        let equal = |text| Piece::Text {
            kind: Kind::Equal,
            a: text,
            b: text,
        };
        let middle = Piece::Folded {
            text: &text[head..tail],
            words: folded,
        };
        Some([equal(&text[..head]), middle, equal(&text[tail..])])
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        for piece in &mut self.waiting {
            if let Some(piece) = piece.take() {
                return Some(piece);
            }
        }
        let span = self.spans.next()?;
        let is_first = std::mem::replace(&mut self.is_first, false);
        let [a, b] = self.diff.texts(span);
        if span.kind == Kind::Equal
            && let Some([before, middle, behind]) = self.folded(a, is_first)
        {
            let shown = |piece: &Piece| !matches!(piece, Piece::Text { a: "", .. });
            self.waiting[1] = Some(behind).filter(shown);
            if !shown(&before) {
                return Some(middle);
            }
            self.waiting[0] = Some(middle);
            return Some(before);
        }
        Some(Piece::Text {
            kind: span.kind,
            a,
            b,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(a: &str, b: &str, context: Option<usize>) -> Vec<String> {
        let diff = Diff::new(a, b, &mut ()).unwrap();
        (diff.pieces(context))
            .map(|piece| match piece {
                Piece::Text { kind, a, b } if kind == Kind::Equal => {
                    assert_eq!(a, b);
                    a.to_owned()
                }
                Piece::Text { a, b, .. } => format!("{a}>{b}"),
                Piece::Folded { text, words } => format!("[{words}:{}]", text.trim()),
            })
            .collect()
    }

    #[test]
    fn long_stretches_are_left_out() {
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
        /// Nothing is lost: what is shown and what is left out are both texts.
        #[test]
        fn is_both_texts(
            a in "([a-c]{1,2}[ ,\n]{0,2}){0,30}",
            b in "([a-c]{1,2}[ ,\n]{0,2}){0,30}",
            context in prop::option::of(0_usize..5),
        ) {
            let diff = Diff::new(&a, &b, &mut ()).unwrap();
            let mut rebuilt = [String::new(), String::new()];
            for piece in diff.pieces(context) {
                match piece {
                    Piece::Text { a, b, .. } => {
                        prop_assert!(!a.is_empty() || !b.is_empty());
                        rebuilt[0] += a;
                        rebuilt[1] += b;
                    }
                    Piece::Folded { text, words } => {
                        prop_assert!(context.is_some() && words >= FEWEST_FOLDED);
                        rebuilt[0] += text;
                        rebuilt[1] += text;
                    }
                }
            }
            prop_assert_eq!(rebuilt, [a, b]);
        }
    }
}
