//! Where two texts begin to differ, in a form that people can read.
use neardup_textdiff::{Diff, Kind, Span};
use std::ops::Range;

/// Difference between two texts.
#[derive(Debug, PartialEq, Eq)]
pub enum Difference {
    /// Not a byte.
    Nothing,
    /// Only in blanks, line ends and what cannot be seen.
    WhiteSpace,
    /// The first places at which the words differ.
    Words(Vec<Place>),
    /// They are too long to be compared.
    Unknown,
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
    let Ok(diff) = Diff::new(old, new, &mut ()) else {
        return Difference::Unknown;
    };
    let mut found: Vec<Place> = Vec::new();
    let is_seen = |span: &&Span| span.kind != Kind::Equal && !diff.is_white_space(span);
    for span in diff.spans().iter().filter(is_seen) {
        let place = place([old, new], [&span.a.bytes, &span.b.bytes], width);
        // Several words of one line may differ, and characters that are not shown.
        if place.old != place.new && found.last() != Some(&place) {
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

/// The lines of two ranges of bytes that stand for each other, of which one may be empty.
fn place(texts: [&str; 2], ranges: [&Range<usize>; 2], width: usize) -> Place {
    let lines = [0, 1].map(|n| {
        // Lines that only one text has need no counterpart; a word within a line does.
        let other = 1 - n;
        let alone = ranges[n].is_empty() && are_lines(texts[other], ranges[other]);
        (!alone).then(|| line(texts[n], ranges[n]))
    });
    let at = match &lines {
        [Some(old), Some(new)] => common_prefix(old, new),
        _ => 0,
    };
    let [old, new] = lines.map(|line| line.map(|line| excerpt(&line, at, width)));
    Place { old, new }
}

/// Returns whether the words in a range are lines of their own, from the first word of one to the
/// last of one.
fn are_lines(text: &str, range: &Range<usize>) -> bool {
    let ends_line = |blank: &str| blank.contains('\n');
    let words = text[range.clone()].trim();
    let start = range.end - text[range.clone()].trim_start().len();
    let end = start + words.len();
    let before = &text[text[..start].trim_end().len()..start];
    let behind = &text[end..text.len() - text[end..].trim_start().len()];
    (ends_line(before) || start == before.len())
        && (ends_line(behind) || end + behind.len() == text.len())
}

/// The line in which the first word of a range stands. Blanks are collapsed; control characters,
/// which a terminal would obey, are left out.
fn line(text: &str, range: &Range<usize>) -> String {
    let at = range.end - text[range.clone()].trim_start().len();
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    let mut shown = String::new();
    for word in text[start..end].split_whitespace() {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        if !shown.is_empty() && !word.is_empty() {
            shown.push(' ');
        }
        shown += &word;
    }
    shown
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
