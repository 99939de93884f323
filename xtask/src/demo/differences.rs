//! Where two texts begin to differ, in a form that people can read.
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A difference is shown even if a better one takes longer to find.
const PATIENCE: Duration = Duration::from_millis(300);

/// Difference between two texts.
#[derive(Debug, PartialEq, Eq)]
pub enum Difference {
    /// Not a byte.
    Nothing,
    /// Only in blanks and line ends.
    WhiteSpace,
    /// The first places at which the words differ.
    Words(Vec<Place>),
}

/// A line of each text, `None` when only the other one has something there.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// An excerpt of the first text.
    pub old: Option<String>,
    /// An excerpt of the second text.
    pub new: Option<String>,
}

/// Compares two texts word by word; keeps `places` places and `width` characters of each line.
pub fn between(old: &str, new: &str, places: usize, width: usize) -> Difference {
    if old == new {
        return Difference::Nothing;
    }
    let (old, new) = (Words::of(old), Words::of(new));
    let deadline = Some(Instant::now() + PATIENCE);
    let (old_words, new_words) = (old.words(), new.words());
    let operations =
        capture_diff_slices_deadline(Algorithm::Myers, &old_words, &new_words, deadline);
    let mut found: Vec<Place> = Vec::new();
    for operation in operations {
        if matches!(operation, DiffOp::Equal { .. }) {
            continue;
        }
        let place = place(
            &old,
            operation.old_range(),
            &new,
            operation.new_range(),
            width,
        );
        // Several words of one line may differ.
        if found.last() != Some(&place) {
            if found.len() == places {
                break;
            }
            found.push(place);
        }
    }
    if found.is_empty() {
        return Difference::WhiteSpace;
    }
    Difference::Words(found)
}

/// A text's words, each with the line that it stands in.
struct Words {
    lines: Vec<String>,
    /// Index of the line, and the word's place among that line's bytes.
    words: Vec<(usize, Range<usize>)>,
}

impl Words {
    /// Blanks are collapsed; control characters, which a terminal would obey, are left out.
    fn of(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut words = Vec::new();
        for line in text.lines() {
            let mut shown = String::new();
            for word in line.split_whitespace() {
                let word: String = word.chars().filter(|c| !c.is_control()).collect();
                if word.is_empty() {
                    continue;
                }
                if !shown.is_empty() {
                    shown.push(' ');
                }
                let start = shown.len();
                shown.push_str(&word);
                words.push((lines.len(), start..shown.len()));
            }
            lines.push(shown);
        }
        Self { lines, words }
    }

    fn words(&self) -> Vec<&str> {
        self.words
            .iter()
            .map(|(line, range)| &self.lines[*line][range.clone()])
            .collect()
    }

    /// The line of the word with this index, or of the last word.
    fn line(&self, word: usize) -> Option<&str> {
        let (line, _) = self.words.get(word).or(self.words.last())?;
        Some(&self.lines[*line])
    }

    /// Returns whether these words are lines of their own, from the first word of one to the last
    /// of one.
    fn are_lines(&self, range: &Range<usize>) -> bool {
        let line = |word: usize| self.words.get(word).map(|(line, _)| *line);
        let before = range.start.checked_sub(1).and_then(line);
        before != line(range.start) && line(range.end - 1) != line(range.end)
    }
}

/// The lines of two ranges of words that stand for each other, of which one may be empty.
fn place(
    old: &Words,
    old_range: Range<usize>,
    new: &Words,
    new_range: Range<usize>,
    width: usize,
) -> Place {
    // Lines that only one text has need no counterpart; a word within a line does.
    let only_new = old_range.is_empty() && new.are_lines(&new_range);
    let only_old = new_range.is_empty() && old.are_lines(&old_range);
    let old_line = old.line(old_range.start).filter(|_| !only_new);
    let new_line = new.line(new_range.start).filter(|_| !only_old);
    let at = match (old_line, new_line) {
        (Some(old), Some(new)) => common_prefix(old, new),
        _ => 0,
    };
    Place {
        old: old_line.map(|line| excerpt(line, at, width)),
        new: new_line.map(|line| excerpt(line, at, width)),
    }
}

/// Number of characters both begin with.
fn common_prefix(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// At most `width` characters of `line`, with the one at `at` among them.
fn excerpt(line: &str, at: usize, width: usize) -> String {
    let length = line.chars().count();
    if length <= width {
        return line.to_owned();
    }
    // A third of the room shows what comes before the difference.
    let start = at.saturating_sub(width / 3).min(length - width);
    let mut shown: Vec<char> = line.chars().skip(start).take(width).collect();
    if start > 0 {
        shown[0] = '…';
    }
    if start + width < length {
        shown[width - 1] = '…';
    }
    shown.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(old: &str, new: &str) -> Vec<(Option<String>, Option<String>)> {
        match between(old, new, 2, 40) {
            Difference::Words(places) => places.into_iter().map(|p| (p.old, p.new)).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn shows_the_first_differing_lines() {
        let old = "Title\nCopyright 2014 A\nsame\nmore\nlast";
        let new = "Title\nCopyright 2016 B\nsame\nmore\nlast\nadded";
        assert_eq!(
            words(old, new),
            [
                (some("Copyright 2014 A"), some("Copyright 2016 B")),
                (None, some("added")),
            ]
        );
    }

    #[test]
    fn white_space_is_no_difference_of_words() {
        assert_eq!(between("a b\nc", "a b\nc", 2, 40), Difference::Nothing);
        assert_eq!(
            between("a b\nc", "a  b\r\nc\n", 2, 40),
            Difference::WhiteSpace
        );
        assert_eq!(
            between("a b\nc d", "a\nb c\nd", 2, 40),
            Difference::WhiteSpace
        );
    }

    #[test]
    fn a_change_is_found_in_a_paragraph_broken_differently() {
        let old = "one two three\nfour five six";
        let new = "one two\nthree four FIVE\nsix";
        assert_eq!(
            words(old, new),
            [(some("four five six"), some("three four FIVE"))]
        );
        let new = "a new first line\none two\nthree four five\nsix";
        assert_eq!(words(old, new), [(None, some("a new first line"))]);
    }

    #[test]
    fn a_word_that_only_one_line_has_is_shown_beside_the_other_line() {
        assert_eq!(words("a b c\nd", "a c\nd"), [(some("a b c"), some("a c"))]);
        assert_eq!(words("", "a"), [(None, some("a"))]);
        assert_eq!(words("a b", "a"), [(some("a b"), some("a"))]);
    }

    #[test]
    fn long_lines_are_cut_around_the_difference() {
        let old = format!("{}left{}", "x".repeat(500), "y".repeat(500));
        let new = format!("{}right{}", "x".repeat(500), "y".repeat(500));
        let (old, new) = words(&old, &new).remove(0);
        for (shown, word) in [(old.unwrap(), "left"), (new.unwrap(), "right")] {
            assert_eq!(shown.chars().count(), 40, "{shown}");
            assert!(shown.contains(word), "{shown}");
            assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        }
    }

    #[test]
    fn texts_without_blanks_are_cut_by_characters() {
        let old = format!("{}甲{}", "字".repeat(300), "文".repeat(300));
        let new = format!("{}乙{}", "字".repeat(300), "文".repeat(300));
        let (old, new) = words(&old, &new).remove(0);
        assert!(old.unwrap().contains('甲') && new.unwrap().contains('乙'));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let (old, _) = words("a \u{1b}[31mred", "b").remove(0);
        assert_eq!(old.unwrap(), "a [31mred");
        let (old, _) = words("a \u{1b} c", "b").remove(0);
        assert_eq!(old.unwrap(), "a c");
    }
}
