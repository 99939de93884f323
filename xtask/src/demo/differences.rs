//! Where two texts begin to differ, in a form that people can read.
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::time::{Duration, Instant};

/// A difference is shown even if a better one takes longer to find.
const PATIENCE: Duration = Duration::from_millis(300);

/// How two texts differ.
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

/// Compares two texts; keeps `places` places and `width` characters of each line.
pub fn between(old: &str, new: &str, places: usize, width: usize) -> Difference {
    if old == new {
        return Difference::Nothing;
    }
    let old: Vec<String> = old.lines().map(collapsed).collect();
    let new: Vec<String> = new.lines().map(collapsed).collect();
    let deadline = Some(Instant::now() + PATIENCE);
    let operations = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    let found: Vec<Place> = hunks(&operations)
        .into_iter()
        .filter_map(|hunk| place(&old[hunk.old], &new[hunk.new], width))
        .take(places)
        .collect();
    if found.is_empty() {
        return Difference::WhiteSpace;
    }
    Difference::Words(found)
}

/// The line's words with single blanks between them; control characters (a terminal would obey
/// them) are left out.
fn collapsed(line: &str) -> String {
    let words: Vec<String> = line
        .split_whitespace()
        .map(|word| word.chars().filter(|c| !c.is_control()).collect())
        .collect();
    words.join(" ")
}

struct Hunk {
    old: std::ops::Range<usize>,
    new: std::ops::Range<usize>,
}

/// Runs of changed lines; neighbouring deletions and insertions are one.
fn hunks(operations: &[DiffOp]) -> Vec<Hunk> {
    let mut all: Vec<Hunk> = Vec::new();
    let mut open = false;
    for operation in operations {
        if matches!(operation, DiffOp::Equal { .. }) {
            open = false;
            continue;
        }
        let (old, new) = (operation.old_range(), operation.new_range());
        match all.last_mut() {
            Some(last) if open => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => all.push(Hunk { old, new }),
        }
        open = true;
    }
    all
}

/// The lines in which a hunk's words first differ; `None` when the same words are only broken into
/// lines differently.
fn place(old: &[String], new: &[String], width: usize) -> Option<Place> {
    let words = |lines: &[String]| -> Vec<String> {
        let words = lines.iter().flat_map(|line| line.split_whitespace());
        words.map(str::to_owned).collect()
    };
    let (old_words, new_words) = (words(old), words(new));
    if old_words == new_words {
        return None;
    }
    let same = old_words
        .iter()
        .zip(&new_words)
        .take_while(|(a, b)| a == b)
        .count();
    let (old, new) = (line_of_word(old, same), line_of_word(new, same));
    let at = match (old, new) {
        (Some(old), Some(new)) => common_prefix(old, new),
        _ => 0,
    };
    Some(Place {
        old: old.map(|line| excerpt(line, at, width)),
        new: new.map(|line| excerpt(line, at, width)),
    })
}

/// The line that holds the word of this index, or the last one that holds any.
fn line_of_word(lines: &[String], index: usize) -> Option<&str> {
    let mut before = 0;
    let mut last = None;
    for line in lines {
        let count = line.split_whitespace().count();
        if count > 0 {
            last = Some(line.as_str());
        }
        before += count;
        if before > index {
            break;
        }
    }
    last
}

/// How many characters both begin with.
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
    }
}
