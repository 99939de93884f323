//! Changes between two texts. A run of neighbouring features that only one text has forms a
//! passage, which is paired with the passage at the same position of the other text.
//!
//! The features of each text are sorted by their first occurrences. A passage starts after a
//! feature that both texts have, and ends before the next such feature. If features have several
//! tokens, a passage also contains tokens around the change. Two passages are paired if the same
//! shared feature precedes both, or if the same shared feature follows both.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

use crate::change_bits::{BitsOf, OwnFeatures};
use crate::feature_list::{FeatureEntry, FeatureList, sort};
use crate::feature_spans::{CharSpan, find_spans};
use crate::html::html_text;
use crate::memory::{GrowString, GrowVec};
use crate::options::TextOptions;

/// Maximum number of characters of a passage that are shown.
const MAX_CHARS: usize = 500;
/// Number of features or characters read between two calls of `check`.
const STEPS: usize = 1 << 16;

/// Changes between two texts: their number, and the largest of them.
#[derive(Clone, Debug, PartialEq)]
pub struct TextChanges {
    /// Number of all changes, including those that are not in `largest`.
    pub count: usize,
    /// The changes with the most features, in the order of the first text. Of changes with equally
    /// many features, the first ones in the text are kept.
    pub largest: Vec<TextChange>,
}

/// Change at one position of two texts. At least one of the two passages is present.
#[derive(Clone, Debug, PartialEq)]
pub struct TextChange {
    /// Passage that the first text has here, if any.
    pub a: Option<Passage>,
    /// Passage that the second text has here, if any.
    pub b: Option<Passage>,
    /// Number of differing bits of the two fingerprints that this change causes, if the caller
    /// asked for it (see [`BitsOf`]).
    pub bits: Option<u32>,
}

/// Part of a text that consists of features that the other text does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// The first characters of the passage, at most 500, as written in the text. With the option
    /// `html`, they are from the visible text of the page. If the position is not known, they are
    /// from the normal form.
    pub text: String,
    /// Position of the passage in the text, or `None` if the passage cannot be located in the text.
    /// With the option `html`, the position is in the visible text of the page.
    pub span: Option<CharSpan>,
    /// Number of distinct features of the passage, which the other text does not have.
    pub features: usize,
}

/// One of the two compared texts, with its features.
pub(crate) struct ChangedText<'a> {
    pub text: &'a str,
    pub list: &'a FeatureList,
    /// Features that the other text does not have.
    pub own: &'a [&'a FeatureEntry],
}

/// Options of [`text_changes`]: how many changes are returned, and whether their bits are counted.
pub(crate) struct Wanted {
    /// Maximum number of changes returned: the largest ones.
    pub top: usize,
    /// Fingerprint function, such as simhash. If it is given, the result has, for each change, the
    /// number of bits in which the fingerprints of the two texts differ because of this change.
    pub bits_of: Option<BitsOf>,
}

/// Run of neighbouring features that only one text has.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    /// Byte range of the run in the tokens of the text.
    tokens: Range<usize>,
    /// Number of features of the run.
    features: usize,
    /// Last shared feature that begins before the run, as an index in the list of shared features;
    /// `None` if there is none.
    before: Option<u32>,
    /// First shared feature that begins after the run, as an index in the list of shared features;
    /// `None` if there is none.
    after: Option<u32>,
}

/// Finds the changes between two texts `a` and `b`, and returns the `wanted.top` largest changes.
/// `shared_a` holds the entries of the shared features in the list of `a`, and `shared_b` holds the
/// entries of the same features, in the same order, in the list of `b`. `options` are the options
/// with which the features were extracted. Calls the cancellation check `check`.
///
/// Memory: 24 bytes for each distinct feature of a text, and the text once more.
pub(crate) fn text_changes(
    [a, b]: [&ChangedText; 2],
    [shared_a, shared_b]: [&[&FeatureEntry]; 2],
    options: &TextOptions,
    wanted: Wanted,
    check: &mut dyn FnMut(),
) -> TextChanges {
    // Neighbouring keywords are not neighbours in the text, so each is a run by itself.
    let are_joined = !options.tokens.are_keywords();
    let a_runs = runs(a.own, shared_a, are_joined, check);
    let b_runs = runs(b.own, shared_b, are_joined, check);
    let start = |number: u32| shared_a[number as usize].range().start;
    let mut changes = Vec::new();
    changes.grow_all((pair(&a_runs, &b_runs).into_iter()).map(|[a, b]| Change {
        at: match (a, b) {
            (Some(a), _) => a_runs[a].tokens.start,
            (None, Some(b)) => b_runs[b].before.map_or(0, start),
            (None, None) => 0,
        },
        features: a.map_or(0, |a| a_runs[a].features) + b.map_or(0, |b| b_runs[b].features),
        sides: [a, b],
        bits: None,
    }));
    if let Some(function) = wanted.bits_of {
        let own = [(a, &a_runs), (b, &b_runs)];
        count_bits(function, own, &mut changes, check);
    }
    let count = changes.len();
    sort(
        &mut changes,
        |x, y| (Reverse(x.features), x.at).cmp(&(Reverse(y.features), y.at)),
        check,
    );
    changes.truncate(wanted.top);
    sort(
        &mut changes,
        |x, y| (x.at, x.sides[1]).cmp(&(y.at, y.sides[1])),
        check,
    );
    let side = |n: usize, text: &ChangedText, runs: &[Run], check: &mut dyn FnMut()| {
        let mut chosen = Vec::new();
        chosen.grow_all(
            changes
                .iter()
                .filter_map(|change| Some(&runs[change.sides[n]?])),
        );
        passages(text, &chosen, options, check)
    };
    let mut a = side(0, a, &a_runs, check).into_iter();
    let mut b = side(1, b, &b_runs, check).into_iter();
    let mut largest = Vec::new();
    largest.grow_all(changes.iter().map(|change| TextChange {
        a: change.sides[0].and_then(|_| a.next()),
        b: change.sides[1].and_then(|_| b.next()),
        bits: change.bits,
    }));
    TextChanges { count, largest }
}

/// Change between two texts: a pair of a run of the first text and a run of the second text, or a
/// run of one text without a partner.
struct Change {
    /// Byte offset in the tokens of the first text, by which changes are sorted. If only the second
    /// text has a run, this is the offset of the shared feature before that run, or 0 if there is
    /// none.
    at: usize,
    /// Number of features of both runs.
    features: usize,
    /// Index of the run of the first text, and index of the run of the second text. `None` if this
    /// text has no run.
    sides: [Option<usize>; 2],
    /// Number of differing bits that the change causes, if it was computed.
    bits: Option<u32>,
}

/// Sets the `bits` of each change: the number of bits of the two fingerprints that differ because
/// of the change. `function` is the fingerprint function, and `sides` has each text with its runs.
fn count_bits(
    function: BitsOf,
    sides: [(&ChangedText, &Vec<Run>); 2],
    changes: &mut [Change],
    check: &mut dyn FnMut(),
) {
    let own = [0, 1].map(|n| {
        let (text, runs) = sides[n];
        // For each run of the text, the index of the change that contains it.
        let mut changes_of = Vec::new();
        changes_of.grow_to(runs.len(), 0);
        for (number, change) in (0..).zip(changes.iter()) {
            if let Some(run) = change.sides[n] {
                changes_of[run] = number;
            }
        }
        let mut owners = Vec::new();
        owners.grow_all(text.own.iter().map(|entry| {
            // Runs are in text order, so the feature is in the last run that does not begin after
            // it.
            let start = entry.range().start;
            let run = runs.partition_point(|run| run.tokens.start <= start) - 1;
            changes_of[run]
        }));
        OwnFeatures {
            list: text.list,
            own: text.own,
            owners,
        }
    });
    let bits = function.count(&own, changes.len(), check);
    for (change, bits) in changes.iter_mut().zip(bits) {
        change.bits = Some(bits);
    }
}

/// Stands for a feature that only one text has, in the list of features that [`runs`] sorts. A
/// shared feature has its index in the list of shared features there.
const OWN: u32 = u32::MAX;

/// Returns the runs of a text, in text order. `own` holds the features that only this text has, and
/// `shared` holds the features that both texts have. If `are_joined` is false, each feature of
/// `own` is a run by itself.
fn runs(
    own: &[&FeatureEntry],
    shared: &[&FeatureEntry],
    are_joined: bool,
    check: &mut dyn FnMut(),
) -> Vec<Run> {
    let mut marks: Vec<(u64, u32, u32)> = Vec::new();
    let mark = |(number, entry): (u32, &&FeatureEntry)| {
        let range = entry.range();
        (entry.start, (range.end - range.start) as u32, number)
    };
    marks.grow_all(own.iter().map(|entry| mark((OWN, entry))));
    marks.grow_all((0..).zip(shared).map(mark));
    sort(&mut marks, |x, y| x.cmp(y), check);
    let mut runs: Vec<Run> = Vec::new();
    let mut before = None;
    // Index of the first run that begins after the last shared feature so far.
    let mut first = 0;
    for (step, (start, len, number)) in marks.into_iter().enumerate() {
        if step % STEPS == 0 {
            check();
        }
        let tokens = start as usize..start as usize + len as usize;
        if number != OWN {
            for run in &mut runs[first..] {
                run.after = Some(number);
            }
            (first, before) = (runs.len(), Some(number));
            continue;
        }
        let open = runs[first..].last_mut().filter(|_| are_joined);
        // One separator may be between the last token of the run and the next token.
        match open.filter(|run| tokens.start <= run.tokens.end + 1) {
            Some(run) => {
                run.tokens.end = run.tokens.end.max(tokens.end);
                run.features += 1;
            }
            None => runs.grow_push(Run {
                tokens,
                features: 1,
                before,
                after: None,
            }),
        }
    }
    runs
}

/// Pairs each run of `a` with a run of `b` that has the same shared feature before it. Then pairs
/// the remaining runs of both texts that have the same shared feature after them. Returns pairs of
/// a run index in `a` and a run index in `b`: first an element for each run of `a`, in order, then
/// an element for each run of `b` without a partner. A missing partner is `None`.
fn pair(a: &[Run], b: &[Run]) -> Vec<[Option<usize>; 2]> {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    of_a.grow_to(a.len(), None);
    of_b.grow_to(b.len(), None);
    for neighbour in [|run: &Run| run.before, |run: &Run| run.after] {
        // Runs of `b` that are not paired yet, sorted by the shared feature beside them. `taken`
        // counts the runs beside the same shared feature that were paired since. The count is at
        // the index of the first of these runs in `free`.
        let mut free: Vec<(Option<u32>, usize)> = Vec::new();
        let left = (0..b.len()).filter(|&n| of_b[n].is_none());
        free.grow_all(left.map(|n| (neighbour(&b[n]), n)));
        free.sort_unstable();
        let mut taken = Vec::new();
        taken.grow_to(free.len(), 0);
        for (n, run) in a.iter().enumerate() {
            if of_a[n].is_some() {
                continue;
            }
            let key = neighbour(run);
            let first = free.partition_point(|(other, _)| *other < key);
            let Some(count) = taken.get_mut(first) else {
                continue;
            };
            if let Some(&(other, found)) = free.get(first + *count)
                && other == key
            {
                *count += 1;
                (of_a[n], of_b[found]) = (Some(found), Some(n));
            }
        }
    }
    let mut pairs = Vec::new();
    pairs.grow_all(
        of_a.into_iter()
            .enumerate()
            .map(|(n, found)| [Some(n), found]),
    );
    let alone = of_b
        .into_iter()
        .enumerate()
        .filter(|(_, found)| found.is_none());
    pairs.grow_all(alone.map(|(n, _)| [None, Some(n)]));
    pairs
}

/// Returns the passage of each run of a text.
fn passages(
    text: &ChangedText,
    runs: &[&Run],
    options: &TextOptions,
    check: &mut dyn FnMut(),
) -> Vec<Passage> {
    let mut ranges = Vec::new();
    ranges.grow_all(runs.iter().map(|run| run.tokens.clone()));
    if ranges.is_empty() {
        return Vec::new();
    }
    let tokens = text.list.tokens();
    let spans = find_spans(text.text, options, tokens, &ranges, check);
    let visible = match options.html {
        true => Cow::Owned(html_text(text.text, check)),
        false => Cow::Borrowed(text.text),
    };
    let shown = beginnings(&visible, &spans, MAX_CHARS, check);
    let mut passages = Vec::new();
    passages.grow_all(
        runs.iter()
            .zip(spans)
            .zip(shown)
            .map(|((run, span), shown)| {
                let normal = || {
                    // A character has at most four bytes, so these bytes contain enough characters.
                    let shown = run.tokens.len().min(4 * MAX_CHARS);
                    String::from_utf8_lossy(&tokens[run.tokens.clone()][..shown]).into_owned()
                };
                Passage {
                    text: match span {
                        Some(_) => shown,
                        None => normal().chars().take(MAX_CHARS).collect(),
                    },
                    span,
                    features: run.features,
                }
            }),
    );
    passages
}

/// Returns the first characters of `text` at each span, at most `most` characters for each. The
/// result for a span that is `None` is empty.
pub(crate) fn beginnings(
    text: &str,
    spans: &[Option<CharSpan>],
    most: usize,
    check: &mut dyn FnMut(),
) -> Vec<String> {
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    order.grow_all(spans.iter().enumerate().filter_map(|(n, span)| {
        let span = (*span)?;
        Some((span.start, span.length.min(most), n))
    }));
    order.sort_unstable();
    let mut found = Vec::new();
    found.grow_to(spans.len(), String::new());
    // Number of characters of the text read so far, and the byte offset after them.
    let (mut chars, mut byte) = (0, 0);
    for (start, length, n) in order {
        check();
        while chars < start {
            let step = (start - chars).min(STEPS);
            byte += text[byte..]
                .chars()
                .take(step)
                .map(char::len_utf8)
                .sum::<usize>();
            chars += step;
            check();
        }
        found[n].grow_chars(text[byte..].chars().take(length));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::FeatureDiff;
    use crate::options::{TextOptions, Tokens};
    use crate::test_texts::set_options;
    use proptest::prelude::*;

    /// Returns each change between two texts as `a|b`, where `-` stands for a missing passage.
    fn changes(a: &str, b: &str, options: &TextOptions, top: usize) -> Vec<String> {
        let diff = FeatureDiff::new(a, b, options, top, None, &mut || ());
        let shown = |side: &Option<super::Passage>| match side {
            Some(passage) => passage.text.clone(),
            None => "-".to_owned(),
        };
        (diff.changes.largest.iter())
            .map(|change| format!("{}|{}", shown(&change.a), shown(&change.b)))
            .collect()
    }

    #[test]
    fn one_change_is_one_line() {
        let words = set_options(Tokens::Word, 3);
        assert_eq!(
            changes(
                "The library will reopen on Monday, the council said; it was painted in spring.",
                "The library will REOPEN on Tuesday — the council said; it was painted in May.",
                &words,
                20
            ),
            [
                "reopen on Monday, the council|REOPEN on Tuesday — the council",
                "painted in spring|painted in May"
            ]
        );
        // An insertion in one text splits a feature of the other text.
        assert_eq!(
            changes(
                "one two three four five",
                "one two new three four five",
                &words,
                20
            ),
            ["one two three four|one two new three four"]
        );
        assert_eq!(
            changes("one two three", "one two three four", &words, 20),
            ["-|two three four"]
        );
        assert_eq!(changes("a b c", "a  B, c!", &words, 20), [""; 0]);
    }

    #[test]
    fn single_words() {
        let words = set_options(Tokens::Word, 1);
        assert_eq!(
            changes("u v the old and x", "the new and y z", &words, 20),
            ["u v|-", "old|new", "x|y z"]
        );
        // A passage shows only the first occurrences of its features, not the text between them.
        assert_eq!(changes("p q p q r", "", &words, 20), ["p q|-", "r|-"]);
    }

    #[test]
    fn the_largest_in_the_order_of_the_text() {
        let words = set_options(Tokens::Word, 1);
        let (a, b) = ("1 x 2 3 4 y 5 6 z 7", "x y 0 z");
        assert_eq!(
            changes(a, b, &words, 20),
            ["1|-", "2 3 4|-", "5 6|0", "7|-"]
        );
        assert_eq!(changes(a, b, &words, 2), ["2 3 4|-", "5 6|0"]);
        assert_eq!(changes(a, b, &words, 0), [""; 0]);
        let count = FeatureDiff::new(a, b, &words, 2, None, &mut || ())
            .changes
            .count;
        assert_eq!(count, 4);
    }

    #[test]
    fn long_passages_are_cut() {
        let long = "é".repeat(700);
        let found = changes(
            &format!("x {long} y"),
            "x y",
            &set_options(Tokens::Word, 1),
            20,
        );
        assert_eq!(found, [format!("{}|-", "é".repeat(500))]);
    }

    proptest! {
        /// Passages contain all features that only one text has, and no others.
        #[test]
        fn covers_what_differs(
            a in "[ab ]{0,40}",
            b in "[ab ]{0,40}",
            tokens in prop::sample::select(vec![Tokens::Word, Tokens::Char]),
            shingle in 1_usize..4,
        ) {
            let options = set_options(tokens, shingle);
            let diff = FeatureDiff::new(&a, &b, &options, usize::MAX, None, &mut || ());
            let changes = &diff.changes;
            prop_assert_eq!(changes.count, changes.largest.len());
            let (mut of_a, mut of_b) = (0, 0);
            for change in &changes.largest {
                prop_assert!(change.a.is_some() || change.b.is_some());
                of_a += change.a.as_ref().map_or(0, |passage| passage.features);
                of_b += change.b.as_ref().map_or(0, |passage| passage.features);
                for (passage, text) in [(&change.a, &a), (&change.b, &b)] {
                    let Some(passage) = passage else { continue };
                    let span = passage.span.expect("each passage has a span");
                    let there: String =
                        text.chars().skip(span.start).take(span.length).collect();
                    prop_assert_eq!(&there, &passage.text);
                }
            }
            prop_assert_eq!(of_a, diff.only_a.features);
            prop_assert_eq!(of_b, diff.only_b.features);
        }
    }
}
