//! Cleanup of the changes between two texts, so that they are easy to read.
//!
//! An insertion or a deletion often has several possible positions: in "the cat. [the dog.] the
//! cow." the brackets could also be around "cat. the". Changes are shifted to the start of a
//! sentence or a line. Up to four equal tokens between two longer changes become part of the
//! changes, as in the semantic cleanup of Google's diff-match-patch: two different sentences may
//! share a comma by chance.

use std::ops::Range;

use crate::align::Change;
use crate::host::{Host, push};
use crate::tokens::Tokens;

/// Maximum number of equal tokens between two changes for the two changes to be joined. The equal
/// tokens then become part of the joined change.
const MAX_JOINED_TOKENS: usize = 4;
/// Number of changes or token positions between two calls of [`Host::check`].
const CHECK_EVERY: usize = 1 << 14;

/// The two compared texts, as tokens.
pub(crate) struct Sides<'a> {
    /// Tokens of the first text.
    pub a: &'a Tokens<'a>,
    /// Tokens of the second text.
    pub b: &'a Tokens<'a>,
    /// For each text, the numbers of its tokens. Equal tokens have equal numbers.
    pub numbers: &'a [Vec<u32>; 2],
}

/// Returns the changes after a cleanup. The cleanup shifts insertions and deletions to good
/// boundaries, then joins changes that only few equal tokens separate.
pub(crate) fn cleaned(sides: &Sides, mut changes: Vec<Change>, host: &mut dyn Host) -> Vec<Change> {
    for n in 0..changes.len() {
        let (mut from, mut to) = ((0, 0), (sides.a.len(), sides.b.len()));
        if let Some(before) = n.checked_sub(1) {
            from = (changes[before].a.end, changes[before].b.end);
        }
        if let Some(next) = changes.get(n + 1) {
            to = (next.a.start, next.b.start);
        }
        if n.is_multiple_of(CHECK_EVERY) {
            host.check();
        }
        let change = &mut changes[n];
        if change.b.is_empty() {
            let by = shift(sides.a, &sides.numbers[0], &change.a, from.0, to.0, host);
            move_by(change, by);
        } else if change.a.is_empty() {
            let by = shift(sides.b, &sides.numbers[1], &change.b, from.1, to.1, host);
            move_by(change, by);
        }
    }
    joined(sides, changes, host)
}

fn move_by(change: &mut Change, by: isize) {
    let moved = |n: usize| n.strict_add_signed(by);
    change.a = moved(change.a.start)..moved(change.a.end);
    change.b = moved(change.b.start)..moved(change.b.end);
}

/// Returns the number of tokens by which an insertion or deletion should move so that it starts and
/// ends at the best boundaries. A negative number is a move to the left. `own` is the range of the
/// inserted or deleted tokens in their text. `tokens` has all tokens of this text, and `numbers`
/// has the number of each token. The moved range starts at `from` or later, and ends at `to` or
/// earlier.
fn shift(
    tokens: &Tokens,
    numbers: &[u32],
    own: &Range<usize>,
    from: usize,
    to: usize,
    host: &mut dyn Host,
) -> isize {
    let (mut start, mut end) = (own.start, own.end);
    while start > from && numbers[start - 1] == numbers[end - 1] {
        (start, end) = (start - 1, end - 1);
        if start.is_multiple_of(CHECK_EVERY) {
            host.check();
        }
    }
    let merit = |start: usize, end: usize| boundary(tokens, start) + boundary(tokens, end);
    let mut best = (merit(start, end), start);
    while end < to && numbers[start] == numbers[end] {
        (start, end) = (start + 1, end + 1);
        // If several positions have equal merit, the last one is kept.
        best = best.max((merit(start, end), start));
        if start.is_multiple_of(CHECK_EVERY) {
            host.check();
        }
    }
    best.1 as isize - own.start as isize
}

/// Scores the boundary before token `n`, from 0 (no white space) to 5 (end of a paragraph). A
/// change is easier to read if it starts and ends at boundaries with high scores.
fn boundary(tokens: &Tokens, n: usize) -> u32 {
    if n == 0 || n == tokens.len() {
        return 4;
    }
    let gap = tokens.gap(n);
    let lines = gap.chars().filter(|&c| c == '\n').take(2).count();
    let ends = |sign: char| tokens.get(n - 1).ends_with(sign);
    match lines {
        2 => 5,
        1 => 4,
        _ if ['。', '！', '？', '；'].into_iter().any(ends) => 3,
        _ if gap.is_empty() => 0,
        _ if ['.', '!', '?'].into_iter().any(ends) => 3,
        _ if [',', ';', ':'].into_iter().any(ends) => 2,
        _ => 1,
    }
}

/// Change with its length: the number of characters of its text in `a` or in `b`, whichever is
/// longer.
struct Sized {
    change: Change,
    chars: usize,
}

/// Joins two neighbouring changes if at most [`MAX_JOINED_TOKENS`] equal tokens are between them,
/// and these tokens have fewer characters than each of the two changes. Returns the resulting
/// changes.
fn joined(sides: &Sides, changes: Vec<Change>, host: &mut dyn Host) -> Vec<Change> {
    let size = |change: &Change| {
        let chars = |tokens: &Tokens, range: &Range<usize>| tokens.chars(range.clone());
        chars(sides.a, &change.a).max(chars(sides.b, &change.b))
    };
    let mut found: Vec<Sized> = Vec::new();
    for (n, change) in changes.into_iter().enumerate() {
        if n.is_multiple_of(CHECK_EVERY) {
            host.check();
        }
        let mut last = Sized {
            chars: size(&change),
            change,
        };
        while let Some(before) = found.last() {
            let between = before.change.a.end..last.change.a.start;
            let few = between.len() <= MAX_JOINED_TOKENS;
            if !few || sides.a.chars(between.clone()) >= before.chars.min(last.chars) {
                break;
            }
            last.chars += before.chars + sides.a.chars(between);
            last.change.a.start = before.change.a.start;
            last.change.b.start = before.change.b.start;
            found.pop();
        }
        push(host, &mut found, last);
    }
    host.reserve(found.len() * size_of::<Change>());
    let trimmed = |sized: Sized| trimmed(sides, sized.change);
    let is_left = |change: &Change| !(change.a.is_empty() && change.b.is_empty());
    found.into_iter().map(trimmed).filter(is_left).collect()
}

/// Returns a change without the tokens at its start and at its end that are equal on both sides. A
/// joined change may have such tokens.
fn trimmed(sides: &Sides, Change { mut a, mut b }: Change) -> Change {
    let [of_a, of_b] = sides.numbers;
    while !a.is_empty() && !b.is_empty() && of_a[a.end - 1] == of_b[b.end - 1] {
        (a.end, b.end) = (a.end - 1, b.end - 1);
    }
    while !a.is_empty() && !b.is_empty() && of_a[a.start] == of_b[b.start] {
        (a.start, b.start) = (a.start + 1, b.start + 1);
    }
    Change { a, b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::align::changes;
    use crate::tokens::numbers;
    use proptest::prelude::*;

    /// Returns the cleaned changes as `deleted>inserted`, with spaces between the tokens.
    fn cleaned_changes(a: &str, b: &str) -> Vec<String> {
        let (a, b) = (
            Tokens::new(a, &mut ()).unwrap(),
            Tokens::new(b, &mut ()).unwrap(),
        );
        let numbers = numbers(&a, &b, &mut ());
        let found = changes(&numbers[0], &numbers[1], &mut ());
        let sides = Sides {
            a: &a,
            b: &b,
            numbers: &numbers,
        };
        let side = |tokens: &Tokens, range: Range<usize>| {
            range.map(|n| tokens.get(n)).collect::<Vec<_>>().join(" ")
        };
        (cleaned(&sides, found, &mut ()).into_iter())
            .map(|change| format!("{}>{}", side(&a, change.a), side(&b, change.b)))
            .collect()
    }

    #[test]
    fn what_is_added_begins_where_a_sentence_does() {
        for (a, b, expected) in [
            (
                "The cat sat. The cow ran.",
                "The cat sat. The cat ran. The cow ran.",
                ">The cat ran .",
            ),
            ("one\nthree\n", "one\ntwo\nthree\n", ">two"),
            ("x end\nx end\n", "x end\nx more\nx end\n", ">x more"),
            ("你好。再见。", "你好。你们好。再见。", ">你 们 好 。"),
            ("a a a", "a a a a", ">a"),
        ] {
            assert_eq!(cleaned_changes(a, b), [expected], "{a:?} {b:?}");
            let (old, new) = expected.split_once('>').unwrap();
            assert_eq!(
                cleaned_changes(b, a),
                [format!("{new}>{old}")],
                "{b:?} {a:?}"
            );
        }
    }

    #[test]
    fn few_tokens_between_long_changes_are_no_news() {
        assert_eq!(
            cleaned_changes("red, green and more", "blue, white and more"),
            ["red , green>blue , white"]
        );
        assert_eq!(
            cleaned_changes("on Monday the 3rd", "on Friday the fourth"),
            ["Monday the 3rd>Friday the fourth"]
        );
        // Equal tokens stay between the changes if they are as long as a change.
        assert_eq!(
            cleaned_changes("on Monday the 3rd", "on Friday the 4th"),
            ["Monday>Friday", "3rd>4th"]
        );
        // The common end of both sides is not part of the change.
        assert_eq!(
            cleaned_changes("four of them. Ferries run.", "four of them & others."),
            [". Ferries run>& others"]
        );
        let five = "1 2 3 4 5";
        assert_eq!(
            cleaned_changes(
                &format!("aaaaaaaaaa {five} bbbbbbbbbb"),
                &format!("cccccccccc {five} dddddddddd")
            ),
            ["aaaaaaaaaa>cccccccccc", "bbbbbbbbbb>dddddddddd"]
        );
    }

    proptest! {
        /// The tokens between the changes are equal in both texts.
        #[test]
        fn keeps_the_texts(a in "[ab.\n ]{0,40}", b in "[ab.\n ]{0,40}") {
            let tokens = |text| Tokens::new(text, &mut ()).unwrap();
            let (a, b) = (tokens(&a), tokens(&b));
            let numbers = numbers(&a, &b, &mut ());
            let sides = Sides { a: &a, b: &b, numbers: &numbers };
            let found = changes(&numbers[0], &numbers[1], &mut ());
            let found = cleaned(&sides, found, &mut ());
            let (mut at_a, mut at_b) = (0, 0);
            let end = Change { a: a.len()..a.len(), b: b.len()..b.len() };
            for change in found.iter().chain([&end]) {
                prop_assert_eq!(
                    &numbers[0][at_a..change.a.start],
                    &numbers[1][at_b..change.b.start]
                );
                (at_a, at_b) = (change.a.end, change.b.end);
            }
        }
    }
}
