//! Rows of two texts side by side: places that differ, with what stands around them.

/// Letters of equal text that are shown on each side of a difference.
const CONTEXT: usize = 140;
/// Equal text is left out only where that saves at least as many letters.
const WORTH_LEAVING_OUT: usize = 60;
/// The most characters that are shown of a run that only one text has.
const LONGEST_RUN: usize = 1200;
/// Letters among which the end of a word is looked for where a text is cut.
const NEAR: usize = 40;
/// The most rows of one comparison.
const MOST_ROWS: usize = 400;

/// Stretch of two texts: what each has there. Where they are equal both are.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// True if both texts say the same there.
    pub is_equal: bool,
    /// Part of the first text.
    pub old: &'a str,
    /// Part of the second text.
    pub new: &'a str,
}

/// Part of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text that is not marked.
    Equal(&'a str),
    /// Text that only this one has.
    Marked(&'a str),
    /// Characters that are left out of a marked text.
    More(usize),
}

/// Row of the comparison.
#[derive(Debug, PartialEq, Eq)]
pub enum Row<'a> {
    /// Parts of both texts that stand for each other.
    Texts {
        /// Pieces of the first text.
        old: Vec<Piece<'a>>,
        /// Pieces of the second text.
        new: Vec<Piece<'a>>,
    },
    /// Equal characters that are left out.
    LeftOut(usize),
    /// The comparison ends here, though more differs.
    End,
}

/// Puts spans into rows that begin where both texts are equal.
pub fn rows<'a>(spans: &[Span<'a>]) -> Vec<Row<'a>> {
    let mut rows = Rows::default();
    for (place, span) in spans.iter().enumerate() {
        if rows.done.len() >= MOST_ROWS {
            rows.done.push(Row::End);
            return rows.done;
        }
        match span.is_equal {
            true => rows.equal(span, place == 0, place + 1 == spans.len()),
            false => rows.change(span),
        }
    }
    rows.close();
    rows.done
}

#[derive(Default)]
struct Rows<'a> {
    done: Vec<Row<'a>>,
    old: Vec<Piece<'a>>,
    new: Vec<Piece<'a>>,
}

impl<'a> Rows<'a> {
    /// Adds equal text: its ends where differences are near, and lines of their own between them.
    fn equal(&mut self, span: &Span<'a>, is_first: bool, is_last: bool) {
        let ink = span.old.chars().filter(|c| !c.is_whitespace()).count();
        let before = if is_first { 0 } else { CONTEXT };
        let after = if is_last { 0 } else { CONTEXT };
        if ink < before + after + WORTH_LEAVING_OUT {
            self.push_lines(span.old, span.new);
            return;
        }
        // Both are cut at the same letters, whatever their white space is.
        let head = word_end(span.old, before);
        let tail = match after {
            0 => ink,
            after => word_end(span.old, ink - after).max(head),
        };
        let [old, new] = [span.old, span.new].map(|text| {
            let (head, rest) = text.split_at(end_of(text, head));
            let (left_out, tail) = rest.split_at(end_of(text, tail) - head.len());
            (head, left_out, tail)
        });
        self.push_lines(old.0, new.0);
        self.close();
        self.done.push(Row::LeftOut(old.1.chars().count()));
        self.push_lines(old.2, new.2);
    }

    /// Adds equal text. Where both have the same lines, each but the last ends a row, so that both
    /// sides stay level.
    fn push_lines(&mut self, old: &'a str, new: &'a str) {
        if old != new {
            self.push(old, new);
            return;
        }
        for line in old.split_inclusive('\n') {
            self.push(line, line);
            if line.ends_with('\n') {
                self.close();
            }
        }
    }

    fn push(&mut self, old: &'a str, new: &'a str) {
        for (pieces, text) in [(&mut self.old, old), (&mut self.new, new)] {
            if !text.is_empty() {
                pieces.push(Piece::Equal(text));
            }
        }
    }

    /// Adds a change. Lines of their own that only one text has are a row of their own.
    fn change(&mut self, span: &Span<'a>) {
        mark(&mut self.old, span.old);
        mark(&mut self.new, span.new);
        let ends_a_line = |text: &str| text.trim_end_matches([' ', '\t']).ends_with('\n');
        if (span.old.is_empty() && ends_a_line(span.new))
            || (span.new.is_empty() && ends_a_line(span.old))
        {
            self.close();
        }
    }

    fn close(&mut self) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        let is_blank =
            |piece: &Piece| matches!(piece, Piece::Equal(text) if text.trim().is_empty());
        if !old.iter().chain(&new).all(is_blank) {
            self.done.push(Row::Texts { old, new });
        }
    }
}

fn mark<'a>(pieces: &mut Vec<Piece<'a>>, text: &'a str) {
    if text.is_empty() {
        return;
    }
    let (shown, rest) = split_at_character(text, LONGEST_RUN);
    // A mark of nothing but line ends would be an empty line.
    let (words, line_ends) = shown.split_at(shown.trim_end_matches('\n').len());
    if !words.is_empty() {
        pieces.push(Piece::Marked(words));
    }
    if !line_ends.is_empty() {
        pieces.push(Piece::Equal(line_ends));
    }
    if !rest.is_empty() {
        pieces.push(Piece::More(rest.chars().count()));
    }
}

/// Splits a text behind this number of characters.
fn split_at_character(text: &str, characters: usize) -> (&str, &str) {
    let end = text.char_indices().nth(characters);
    text.split_at(end.map_or(text.len(), |(place, _)| place))
}

/// The number of letters, white space not counted, up to the next end of a word behind `letters`;
/// that number itself if none is near, or if it is 0.
fn word_end(text: &str, letters: usize) -> usize {
    if letters == 0 {
        return 0;
    }
    let rest = &text[end_of(text, letters)..];
    let more = rest.chars().take(NEAR).take_while(|c| !c.is_whitespace());
    match more.count() {
        NEAR => letters,
        more => letters + more,
    }
}

/// Place in a text behind this number of letters, white space not counted.
fn end_of(text: &str, letters: usize) -> usize {
    let mut inked = text.char_indices().filter(|(_, c)| !c.is_whitespace());
    match letters.checked_sub(1) {
        None => 0,
        Some(last) => inked
            .nth(last)
            .map_or(text.len(), |(place, c)| place + c.len_utf8()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(text: &str) -> Span<'_> {
        Span {
            is_equal: true,
            old: text,
            new: text,
        }
    }

    fn replaced<'a>(old: &'a str, new: &'a str) -> Span<'a> {
        Span {
            is_equal: false,
            old,
            new,
        }
    }

    #[test]
    fn lines_keep_both_sides_level() {
        let spans = [equal("one\ntwo "), replaced("old", "new"), equal("\nlast")];
        let pieces = |marked| {
            vec![
                Piece::Equal("two "),
                Piece::Marked(marked),
                Piece::Equal("\n"),
            ]
        };
        let same = |text| Row::Texts {
            old: vec![Piece::Equal(text)],
            new: vec![Piece::Equal(text)],
        };
        let changed = Row::Texts {
            old: pieces("old"),
            new: pieces("new"),
        };
        assert_eq!(rows(&spans), [same("one\n"), changed, same("last")]);
    }

    #[test]
    fn long_equal_text_is_left_out_at_spaces() {
        let long = "word ".repeat(200);
        let found = rows(&[replaced("a", "b"), equal(&long), replaced("", "c")]);
        let left_out = found.iter().find_map(|row| match row {
            Row::LeftOut(characters) => Some(*characters),
            _ => None,
        });
        assert!(
            left_out.is_some_and(|n| (600..=700).contains(&n)),
            "{found:?}"
        );
        let Row::Texts { old, .. } = &found[0] else {
            panic!("{found:?}");
        };
        assert!(matches!(old[1], Piece::Equal(text) if text.ends_with("word")));
    }

    #[test]
    fn both_sides_are_cut_at_the_same_word() {
        let old = (0..400).map(|n| format!("w{n} ")).collect::<String>();
        let new = old.replace(' ', "\n  ");
        let equal = Span {
            is_equal: true,
            old: &old,
            new: &new,
        };
        let found = rows(&[replaced("a", "b"), equal, replaced("c", "d")]);
        let (mut olds, mut news) = (String::new(), String::new());
        for row in &found {
            if let Row::Texts { old, new } = row {
                for (all, pieces) in [(&mut olds, old), (&mut news, new)] {
                    for piece in pieces {
                        if let Piece::Equal(text) = piece {
                            all.extend(text.split_whitespace());
                        }
                    }
                }
            }
        }
        assert_eq!(olds, news);
        assert!(olds.len() < old.len() / 3, "{olds}");
    }

    #[test]
    fn what_both_begin_and_end_with_is_left_out() {
        let long = "\u{5b57}".repeat(500);
        let found = rows(&[equal(&long), replaced("a", "b"), equal(&long)]);
        assert_eq!(found[0], Row::LeftOut(360));
        assert_eq!(found.last(), Some(&Row::LeftOut(360)));
    }

    #[test]
    fn no_character_is_lost_or_doubled() {
        let long = "some words here\n".repeat(60);
        let spans = [
            equal(&long),
            replaced("x", ""),
            equal("z"),
            replaced("", "y"),
        ];
        let (mut shown, mut left) = (String::new(), 0);
        for row in rows(&spans) {
            match row {
                Row::Texts { old, .. } => old.iter().for_each(|piece| match piece {
                    Piece::Equal(text) | Piece::Marked(text) => shown.push_str(text),
                    Piece::More(more) => left += more,
                }),
                Row::LeftOut(more) => left += more,
                Row::End => panic!("too many rows"),
            }
        }
        assert_eq!(shown.chars().count() + left, long.chars().count() + 2);
    }

    #[test]
    fn long_runs_are_cut() {
        let run = "a".repeat(LONGEST_RUN + 7);
        let found = rows(&[replaced(&run, "")]);
        let Row::Texts { old, new } = &found[0] else {
            panic!("{found:?}");
        };
        assert_eq!((old[1], new.len()), (Piece::More(7), 0));
    }

    #[test]
    fn a_comparison_ends_after_many_rows() {
        let spans = [equal("x\n"), replaced("a", "b")].repeat(MOST_ROWS);
        let found = rows(&spans);
        assert_eq!(found.len(), MOST_ROWS + 1);
        assert_eq!(found.last(), Some(&Row::End));
    }
}
