//! Spans: divides two texts into equal and changed spans. The changes are lists of tokens, without
//! white space. This module adds each gap (white space between two tokens) to a change or to equal
//! text, and computes offsets in bytes and characters.

use std::ops::Range;

use crate::align::{Change, changes};
use crate::cleanup::{Sides, cleaned};
use crate::host::{Host, push};
use crate::tokens::{Tokens, numbers};
use crate::{Kind, Part, Span, TooLong};

/// Number of tokens, changes or spans between two calls of [`Host::check`].
const CHECK_EVERY: usize = 1 << 14;

/// Divides two texts into equal and changed spans, in text order.
pub(crate) fn spans(a: &str, b: &str, host: &mut dyn Host) -> Result<Vec<Span>, TooLong> {
    let [of_a, of_b] = [Tokens::new(a, host)?, Tokens::new(b, host)?];
    let numbers = numbers(&of_a, &of_b, host);
    let found = changes(&numbers[0], &numbers[1], host);
    let sides = Sides {
        a: &of_a,
        b: &of_b,
        numbers: &numbers,
    };
    let found = cleaned(&sides, found, host);
    drop(numbers);
    let mut builder = Builder {
        texts: [a, b],
        at: [0, 0],
        parts: Vec::new(),
        host,
    };
    builder.build(&of_a, &of_b, &found);
    Ok(builder.spans())
}

/// Byte range in each of the two texts. The two ranges have equal text, or are a change.
struct Pair {
    is_equal: bool,
    bytes: [Range<usize>; 2],
}

/// Divides two texts into pairs of ranges, from the start of the texts to the end.
struct Builder<'a> {
    texts: [&'a str; 2],
    /// For each text, the byte offset up to which the text has been divided.
    at: [usize; 2],
    /// Pairs so far. Equal text and changes alternate.
    parts: Vec<Pair>,
    host: &'a mut dyn Host,
}

impl Builder<'_> {
    /// Adds the changes, the equal tokens between them, and all white space.
    fn build(&mut self, a: &Tokens, b: &Tokens, changes: &[Change]) {
        let (mut next_a, mut next_b) = (0, 0);
        for (n, change) in changes.iter().enumerate() {
            if n.is_multiple_of(CHECK_EVERY) {
                self.host.check();
            }
            self.equal_tokens([a, b], [next_a..change.a.start, next_b..change.b.start]);
            match (change.a.is_empty(), change.b.is_empty()) {
                (false, true) => self.only_in(0, [a, b], [&change.a, &change.b]),
                (true, false) => self.only_in(1, [a, b], [&change.a, &change.b]),
                _ => {
                    self.gap([a.range(change.a.start).start, b.range(change.b.start).start]);
                    let ends = [a.range(change.a.end - 1).end, b.range(change.b.end - 1).end];
                    self.add(false, ends);
                }
            }
            (next_a, next_b) = (change.a.end, change.b.end);
        }
        self.equal_tokens([a, b], [next_a..a.len(), next_b..b.len()]);
        self.gap(self.texts.map(str::len));
    }

    /// Adds equal tokens of both texts, each with the white space before it.
    fn equal_tokens(&mut self, [a, b]: [&Tokens; 2], [of_a, of_b]: [Range<usize>; 2]) {
        for (n, m) in of_a.zip(of_b) {
            if n.is_multiple_of(CHECK_EVERY) {
                self.host.check();
            }
            let (x, y) = (a.range(n), b.range(m));
            self.gap([x.start, y.start]);
            self.add(true, [x.end, y.end]);
        }
    }

    /// Adds the gaps that begin in the two texts at `self.at`. The gaps are equal text if they have
    /// the same white space, and a change otherwise. `ends` has the byte offset at which the gap of
    /// each text ends.
    fn gap(&mut self, ends: [usize; 2]) {
        let is_equal = self.rest(0, ends[0]) == self.rest(1, ends[1]);
        self.add(is_equal, ends);
    }

    /// Adds a change whose tokens occur only in text `own` (0 or 1): the tokens `ranges[own]`. Both
    /// arrays have an element for each text.
    ///
    /// Text `own` has a gap before these tokens and a gap after them. The other text has a single
    /// gap at this position. The result depends on the white space in the three gaps:
    ///
    /// - If the single gap equals the gap before the tokens, this gap is equal text. The change
    ///   contains the tokens and the gap after them.
    /// - Otherwise, if the single gap equals the gap after the tokens, the change contains the gap
    ///   before the tokens and the tokens.
    /// - Otherwise the change contains the tokens and all three gaps.
    fn only_in(&mut self, own: usize, tokens: [&Tokens; 2], ranges: [&Range<usize>; 2]) {
        let other = 1 - own;
        let (mine, theirs) = (tokens[own], tokens[other]);
        let (first, behind) = (ranges[own].start, ranges[own].end);
        let start = mine.range(first).start;
        let end = mine.range(behind - 1).end;
        let with_gap = end + mine.gap(behind).len();
        let at = ranges[other].start;
        let their_gap = match at == theirs.len() {
            true => self.texts[other].len(),
            false => theirs.range(at).start,
        };
        let sided = |mine: usize, theirs: usize| match own {
            0 => [mine, theirs],
            _ => [theirs, mine],
        };
        let gap = self.rest(other, their_gap);
        if self.rest(own, start) == gap {
            self.add(true, sided(start, their_gap));
            self.add(false, sided(with_gap, their_gap));
        } else if mine.gap(behind) == gap {
            self.add(false, sided(end, self.at[other]));
        } else {
            self.add(false, sided(with_gap, their_gap));
        }
    }

    /// Returns a part of text number `text` (0 or 1): from the offset up to which the text has been
    /// divided, to the byte offset `end`.
    fn rest(&self, text: usize, end: usize) -> &str {
        &self.texts[text][self.at[text]..end]
    }

    /// Adds the parts of both texts up to the byte offsets `ends`, as equal text or as a change.
    /// Extends the last pair if that has the same `is_equal`.
    fn add(&mut self, is_equal: bool, ends: [usize; 2]) {
        let starts = std::mem::replace(&mut self.at, ends);
        if starts == ends {
            return;
        }
        match self.parts.last_mut() {
            Some(last) if last.is_equal == is_equal => {
                for (bytes, end) in last.bytes.iter_mut().zip(ends) {
                    bytes.end = end;
                }
            }
            _ => {
                let bytes = [starts[0]..ends[0], starts[1]..ends[1]];
                push(self.host, &mut self.parts, Pair { is_equal, bytes });
            }
        }
    }

    /// Returns the pairs as spans, with their kinds and with ranges in characters.
    fn spans(self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut chars = [0, 0];
        for (n, Pair { is_equal, bytes }) in self.parts.into_iter().enumerate() {
            if n.is_multiple_of(CHECK_EVERY) {
                self.host.check();
            }
            let kind = match (is_equal, bytes[0].is_empty(), bytes[1].is_empty()) {
                (true, ..) => Kind::Equal,
                (_, false, true) => Kind::Deleted,
                (_, true, _) => Kind::Inserted,
                _ => Kind::Replaced,
            };
            let [a, b] = [0, 1].map(|text| {
                let start = chars[text];
                chars[text] += self.texts[text][bytes[text].clone()].chars().count();
                Part {
                    bytes: bytes[text].clone(),
                    chars: start..chars[text],
                }
            });
            push(self.host, &mut spans, Span { kind, a, b });
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use crate::{Diff, Kind};
    use proptest::prelude::*;

    /// Returns the spans of a comparison as `=equal`, `-deleted`, `+inserted` and `~old>new`.
    fn shown(a: &str, b: &str) -> Vec<String> {
        let diff = Diff::new(a, b, &mut ()).unwrap();
        (diff.spans().iter())
            .map(|span| {
                let [a, b] = diff.texts(span);
                match span.kind {
                    Kind::Equal => format!("={a}"),
                    Kind::Deleted => format!("-{a}"),
                    Kind::Inserted => format!("+{b}"),
                    Kind::Replaced => format!("~{a}>{b}"),
                }
            })
            .collect()
    }

    #[test]
    fn words() {
        for (a, b, expected) in [
            ("", "", &[][..]),
            (" ", " ", &["= "]),
            ("", "new", &["+new"]),
            ("one two three", "one three", &["=one ", "-two ", "=three"]),
            ("one two", "one", &["=one", "- two"]),
            ("one two", "two", &["-one ", "=two"]),
            ("x\nold\ny", "x\ny", &["=x\n", "-old\n", "=y"]),
            ("x old\ny", "x\ny", &["=x", "- old", "=\ny"]),
            ("a  big b", "a b", &["=a", "-  big", "= b"]),
            ("a  big\tb", "a b", &["=a", "~  big\t> ", "=b"]),
            (
                "on Monday.",
                "on Friday.",
                &["=on ", "~Monday>Friday", "=."],
            ),
            (
                "a b\nc",
                "a  b\r\nc\n",
                &["=a", "~ >  ", "=b", "~\n>\r\n", "=c", "+\n"],
            ),
            (
                "图书馆昨天开放",
                "图书馆今天开放",
                &["=图书馆", "~昨>今", "=天开放"],
            ),
        ] {
            assert_eq!(shown(a, b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn white_space_is_recognized() {
        let diff = Diff::new("a b c", "a\nb d", &mut ()).unwrap();
        let blank: Vec<bool> = diff
            .spans()
            .iter()
            .map(|s| diff.is_white_space(s))
            .collect();
        assert_eq!(blank, [false, true, false, false]);
    }

    #[test]
    fn ranges_in_characters() {
        let diff = Diff::new("é ж 一", "é я 一", &mut ()).unwrap();
        let ranges: Vec<_> = (diff.spans().iter())
            .map(|span| (span.a.chars.clone(), span.b.bytes.clone()))
            .collect();
        assert_eq!(ranges, [(0..2, 0..3), (2..3, 3..5), (3..5, 5..9)]);
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ab.\n ]{0,60}",
            "([a-c]{1,2}[ ,\n]{0,2}){0,30}",
            "\\PC{0,40}",
            "(?s).{0,40}",
        ]
    }

    proptest! {
        #[test]
        fn is_both_texts(a in any_text(), b in any_text()) {
            let diff = Diff::new(&a, &b, &mut ()).unwrap();
            let mut rebuilt = [String::new(), String::new()];
            let mut chars = [0, 0];
            let mut last = None;
            for span in diff.spans() {
                let texts = diff.texts(span);
                for (n, part) in [&span.a, &span.b].into_iter().enumerate() {
                    prop_assert_eq!(part.bytes.start, rebuilt[n].len());
                    prop_assert_eq!(part.chars.start, chars[n]);
                    rebuilt[n] += texts[n];
                    chars[n] += texts[n].chars().count();
                    prop_assert_eq!(part.bytes.end, rebuilt[n].len());
                    prop_assert_eq!(part.chars.end, chars[n]);
                }
                let empty = texts.map(str::is_empty);
                let (equal, expected) = (texts[0] == texts[1], match span.kind {
                    Kind::Equal | Kind::Replaced => [false, false],
                    Kind::Deleted => [false, true],
                    Kind::Inserted => [true, false],
                });
                prop_assert_eq!(empty, expected);
                prop_assert_eq!(equal, span.kind == Kind::Equal);
                let is_equal = span.kind == Kind::Equal;
                prop_assert_ne!(last, Some(is_equal));
                last = Some(is_equal);
            }
            prop_assert_eq!(rebuilt, [a.clone(), b.clone()]);
            let again = Diff::new(&a, &b, &mut ()).unwrap();
            prop_assert_eq!(again.spans(), diff.spans());
        }
    }
}
