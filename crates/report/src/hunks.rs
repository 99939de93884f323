//! Divides the comparison of two texts into the rows of a table that shows the texts side by side.
//! The rows contain the changes, with some equal text around them.

use neardup_textdiff::{Context, Diff, Kind, Piece, View};

/// Length of the equal text that is shown before and after a change if the remaining equal text is
/// left out ([`Row::LeftOut`]). The unit is characters that are not white space.
const CONTEXT_LETTERS: usize = 140;
/// Maximum number of characters shown of one text in a change. For the rest, the table shows only
/// the number of characters ([`Part::More`]).
const MAX_CHANGE_CHARACTERS: usize = 1200;
/// Number of table rows after which a comparison ends with [`Row::End`]. A change or an equal
/// passage that has begun is still shown in full, so a table may have a few more rows.
const MAX_ROWS: usize = 400;

/// Part of a table cell, which shows one of the two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text that is not marked as changed.
    Equal(&'a str),
    /// Text that the other text does not have, which is marked.
    Marked(&'a str),
    /// Number of further characters of a long change. The characters themselves are not shown.
    More(usize),
}

/// Row of the table that shows two texts side by side.
#[derive(Debug, PartialEq, Eq)]
pub enum Row<'a> {
    /// Parts of the two texts that correspond to each other.
    Texts {
        /// Parts of the first text.
        old: Vec<Part<'a>>,
        /// Parts of the second text.
        new: Vec<Part<'a>>,
    },
    /// Number of characters that both texts have here, far from any change. The table shows only
    /// this number.
    LeftOut(usize),
    /// Last row if the texts have more differences than are shown.
    End,
}

/// Divides a comparison into table rows, in text order. Changes that affect only white space are
/// not marked.
pub fn rows<'a>(diff: &'a Diff<'a>) -> Vec<Row<'a>> {
    let view = View {
        context: Some(Context::Letters(CONTEXT_LETTERS)),
        ignores_white_space: true,
    };
    let mut rows = Rows::default();
    for piece in diff.pieces(view) {
        if rows.done.len() >= MAX_ROWS {
            rows.done.push(Row::End);
            return rows.done;
        }
        match piece {
            Piece::Text {
                kind: Kind::Equal,
                a,
                b,
            } => rows.equal(a, b),
            Piece::Text { a, b, .. } => rows.change(a, b),
            Piece::Folded { a, .. } => {
                rows.close();
                rows.done.push(Row::LeftOut(a.chars().count()));
            }
        }
    }
    rows.close();
    rows.done
}

/// Finished rows, and the parts of the row that is being built.
#[derive(Default)]
struct Rows<'a> {
    done: Vec<Row<'a>>,
    old: Vec<Part<'a>>,
    new: Vec<Part<'a>>,
}

impl<'a> Rows<'a> {
    /// Adds a passage that differs at most in white space: `old` in the first text and `new` in the
    /// second text. If `old` equals `new`, each line end in the passage ends a row, so that both
    /// columns stay aligned. Otherwise the passage is added to the current row, which does not end.
    fn equal(&mut self, old: &'a str, new: &'a str) {
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
        for (parts, text) in [(&mut self.old, old), (&mut self.new, new)] {
            if !text.is_empty() {
                parts.push(Part::Equal(text));
            }
        }
    }

    /// Adds a change: the first text has the passage `old` where the second text has `new`. If one
    /// passage is empty and the other ends with a line end, the change ends the current row.
    fn change(&mut self, old: &'a str, new: &'a str) {
        mark(&mut self.old, old);
        mark(&mut self.new, new);
        let ends_a_line = |text: &str| text.trim_end_matches([' ', '\t']).ends_with('\n');
        if (old.is_empty() && ends_a_line(new)) || (new.is_empty() && ends_a_line(old)) {
            self.close();
        }
    }

    /// Ends the current row. Adds it to the finished rows, unless it shows only white space without
    /// a change.
    fn close(&mut self) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        let is_blank = |part: &Part| matches!(part, Part::Equal(text) if text.trim().is_empty());
        if !old.iter().chain(&new).all(is_blank) {
            self.done.push(Row::Texts { old, new });
        }
    }
}

fn mark<'a>(parts: &mut Vec<Part<'a>>, text: &'a str) {
    if text.is_empty() {
        return;
    }
    let end = text.char_indices().nth(MAX_CHANGE_CHARACTERS);
    let (shown, rest) = text.split_at(end.map_or(text.len(), |(offset, _)| offset));
    // Line ends after the words are not marked: a marked part that consists of line ends would be
    // shown as an empty line.
    let (words, line_ends) = shown.split_at(shown.trim_end_matches('\n').len());
    if !words.is_empty() {
        parts.push(Part::Marked(words));
    }
    if !line_ends.is_empty() {
        parts.push(Part::Equal(line_ends));
    }
    if !rest.is_empty() {
        parts.push(Part::More(rest.chars().count()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare<'a>(old: &'a str, new: &'a str) -> Diff<'a> {
        Diff::new(old, new, &mut ()).unwrap()
    }

    #[test]
    fn lines_keep_both_sides_level() {
        let parts = |marked| vec![Part::Equal("two "), Part::Marked(marked), Part::Equal("\n")];
        let same = |text| Row::Texts {
            old: vec![Part::Equal(text)],
            new: vec![Part::Equal(text)],
        };
        let changed = Row::Texts {
            old: parts("old"),
            new: parts("new"),
        };
        assert_eq!(
            rows(&compare("one\ntwo old\nlast", "one\ntwo new\nlast")),
            [same("one\n"), changed, same("last")]
        );
    }

    #[test]
    fn long_equal_text_is_folded_at_spaces() {
        let long = "word ".repeat(200);
        let (old, new) = (format!("a {long}"), format!("b {long} c"));
        let diff = compare(&old, &new);
        let found = rows(&diff);
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
        assert!(matches!(old[1], Part::Equal(text) if text.ends_with("word")));
    }

    #[test]
    fn both_sides_are_cut_at_the_same_word() {
        let words = (0..400).map(|n| format!("w{n} ")).collect::<String>();
        let old = format!("a {words}c");
        let new = format!("b {}d", words.replace(' ', "\n  "));
        let diff = compare(&old, &new);
        let (mut olds, mut news) = (String::new(), String::new());
        for row in &rows(&diff) {
            if let Row::Texts { old, new } = row {
                for (all, parts) in [(&mut olds, old), (&mut news, new)] {
                    for part in parts {
                        if let Part::Equal(text) = part {
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
    fn equal_text_at_both_ends_is_folded() {
        let long = "\u{5b57}".repeat(500);
        let (old, new) = (format!("{long}a{long}"), format!("{long}b{long}"));
        let diff = compare(&old, &new);
        let found = rows(&diff);
        assert_eq!(found[0], Row::LeftOut(360));
        assert_eq!(found.last(), Some(&Row::LeftOut(360)));
    }

    #[test]
    fn no_character_is_lost_or_doubled() {
        let long = "some words here\n".repeat(60);
        let (old, new) = (format!("{long}x z"), format!("{long}z y"));
        let (mut shown, mut left) = (String::new(), 0);
        for row in rows(&compare(&old, &new)) {
            match row {
                Row::Texts { old, .. } => old.iter().for_each(|part| match part {
                    Part::Equal(text) | Part::Marked(text) => shown.push_str(text),
                    Part::More(more) => left += more,
                }),
                Row::LeftOut(more) => left += more,
                Row::End => panic!("too many rows"),
            }
        }
        assert_eq!(shown.chars().count() + left, old.chars().count());
    }

    #[test]
    fn long_changes_are_cut() {
        let old = "a".repeat(MAX_CHANGE_CHARACTERS + 7);
        let diff = compare(&old, "");
        let found = rows(&diff);
        let Row::Texts { old, new } = &found[0] else {
            panic!("{found:?}");
        };
        assert_eq!((old[1], new.len()), (Part::More(7), 0));
    }

    #[test]
    fn a_comparison_ends_after_many_rows() {
        let lines = |word: &str| -> String {
            let line = |n| format!("the same first words {n}\n{word} {n}\n");
            (0..MAX_ROWS).map(line).collect()
        };
        let (old, new) = (lines("a"), lines("b"));
        let diff = compare(&old, &new);
        let found = rows(&diff);
        // One piece adds several rows.
        assert!((MAX_ROWS..MAX_ROWS + 5).contains(&found.len()));
        assert_eq!(found.last(), Some(&Row::End));
    }
}
