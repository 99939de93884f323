//! Comparison of two texts by their features, for display. A feature is one token (such as a word)
//! or several consecutive tokens, and has a weight in each text.

use std::cmp::Ordering;

use crate::change_bits::BitsOf;
use crate::feature_list::{Feature, FeatureEntry, FeatureList, sort};
use crate::feature_spans::{CharSpan, feature_spans};
use crate::memory::GrowVec;
use crate::options::TextOptions;
use crate::similarity::share;
use crate::text_changes::{ChangedText, TextChanges, Wanted, text_changes};

/// Number of calls of `each` in [`merge`] between two calls of `check`.
const STEPS: usize = 1 << 16;

/// Merges two lists that are ascending in `order` and without repetitions. Calls `each` in
/// ascending order: with an element of `a`, with an element of `b`, or with both if `order` finds
/// them equal.
fn merge<'a, T>(
    mut a: &'a [T],
    mut b: &'a [T],
    order: impl Fn(&T, &T) -> Ordering,
    mut each: impl FnMut(Option<&'a T>, Option<&'a T>),
    check: &mut dyn FnMut(),
) {
    for step in 1_usize.. {
        if step.is_multiple_of(STEPS) {
            check();
        }
        let next = match (a.first(), b.first()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => order(a, b),
        };
        each(
            a.first().filter(|_| next.is_le()),
            b.first().filter(|_| next.is_ge()),
        );
        a = &a[usize::from(next.is_le())..];
        b = &b[usize::from(next.is_ge())..];
    }
}

/// Features of one group (shared, or of one text only): their number, and the heaviest of them.
#[derive(Clone, Debug, PartialEq)]
pub struct TopFeatures<T> {
    /// Number of all features of the group.
    pub features: usize,
    /// The heaviest features of the group, in text order. Of features with equal weights, the
    /// features that occur first in the text are kept.
    pub heaviest: Vec<T>,
}

/// Feature with the position of its first occurrence in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct LocatedFeature {
    /// Feature, with its number of occurrences and its weight in this text.
    pub feature: Feature,
    /// Position of the first occurrence in this text, or `None` if it was not found.
    pub span: Option<CharSpan>,
}

/// Features of two texts in three groups: features of both texts, of the first text only, and of
/// the second text only. Two features are equal if their texts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureDiff {
    /// Features that both texts have. Each feature is a pair: the feature with its count, weight
    /// and position in the first text, and the same in the second text. The heaviest features are
    /// those with the largest sum of both weights, in the order of the first text.
    pub shared: TopFeatures<(LocatedFeature, LocatedFeature)>,
    /// Features that only the first text has.
    pub only_a: TopFeatures<LocatedFeature>,
    /// Features that only the second text has.
    pub only_b: TopFeatures<LocatedFeature>,
    /// Changes between the texts: passages made of the features that only one text has.
    pub changes: TextChanges,
}

/// One of the two compared texts, with its features.
struct Side<'a> {
    text: &'a str,
    options: &'a TextOptions,
    list: FeatureList,
}

impl Side<'_> {
    /// Returns features of this text with the positions of their first occurrences.
    fn located(&self, entries: &[&FeatureEntry], check: &mut dyn FnMut()) -> Vec<LocatedFeature> {
        let spans = feature_spans(&self.list, self.text, self.options, entries, check);
        let located = entries
            .iter()
            .zip(spans)
            .map(|(entry, span)| LocatedFeature {
                feature: self.list.feature(entry),
                span,
            });
        let mut all = Vec::new();
        all.grow_all(located);
        all
    }

    /// Returns the number of features in `all`, the features that only this text has. Also returns
    /// the `top` heaviest of them, in text order.
    fn top(
        &self,
        mut all: Vec<&FeatureEntry>,
        top: usize,
        check: &mut dyn FnMut(),
    ) -> TopFeatures<LocatedFeature> {
        let features = all.len();
        let by_weight =
            |x: &&FeatureEntry, y: &&FeatureEntry| self.list.by_weight_and_position(x, y);
        cut(&mut all, top, by_weight);
        sort(&mut all, |x, y| x.start.cmp(&y.start), check);
        TopFeatures {
            features,
            heaviest: self.located(&all, check),
        }
    }
}

/// Keeps only the `top` elements that come first in the order `order`. The kept elements are in no
/// particular order.
fn cut<T>(all: &mut Vec<T>, top: usize, order: impl FnMut(&T, &T) -> Ordering) {
    if top < all.len() {
        all.select_nth_unstable_by(top, order);
        all.truncate(top);
    }
}

impl FeatureDiff {
    /// Compares the texts `a` and `b`. Returns up to `top` features of each group (shared, only in
    /// `a`, only in `b`), the heaviest ones, and up to `top` changes. If `bits_of` names a
    /// fingerprint function, counts the bits of the distance that each change causes.
    ///
    /// Memory: two [`FeatureList`]s, and 32 bytes more for each distinct feature (40 with
    /// `bits_of`). To find positions, the normal form of one text at a time is computed again.
    pub fn new(
        a: &str,
        b: &str,
        options: &TextOptions,
        top: usize,
        bits_of: Option<BitsOf>,
        check: &mut dyn FnMut(),
    ) -> Self {
        let mut side = |text| Side {
            text,
            options,
            list: FeatureList::by_hash(text, options, check),
        };
        let (a, b) = (side(a), side(b));
        let (mut shared, mut only_a, mut only_b) = (Vec::new(), Vec::new(), Vec::new());
        let order = |x: &FeatureEntry, y: &FeatureEntry| a.list.order(x, &b.list, y);
        let each = |x, y| match (x, y) {
            (Some(x), Some(y)) => shared.grow_push((x, y)),
            (Some(x), None) => only_a.grow_push(x),
            (None, Some(y)) => only_b.grow_push(y),
            (None, None) => {}
        };
        merge(a.list.entries(), b.list.entries(), order, each, check);
        let changes = changes([&a, &b], [&only_a, &only_b], &shared, (top, bits_of), check);
        Self {
            changes,
            shared: top_shared(&a, &b, shared, top, check),
            only_a: a.top(only_a, top, check),
            only_b: b.top(only_b, top, check),
        }
    }

    /// Returns the Jaccard similarity of the two feature sets, or `None` if both are empty.
    #[must_use]
    pub fn jaccard_similarity(&self) -> Option<f64> {
        let shared = self.shared.features;
        share(shared, shared + self.only_a.features + self.only_b.features)
    }
}

/// Feature that both texts have: its entry in the feature list of the first text, and its entry in
/// the list of the second text.
type SharedEntry<'a> = (&'a FeatureEntry, &'a FeatureEntry);

/// Returns the `top` largest changes between two texts. `own` holds two lists: the features that
/// only the first text has, and the features that only the second text has. `shared` holds the
/// features that both texts have. If `bits_of` names a fingerprint function, also counts, for each
/// change, how many bits of the two fingerprints differ because of it.
fn changes<'a>(
    sides: [&Side<'a>; 2],
    own: [&[&FeatureEntry]; 2],
    shared: &[SharedEntry],
    (top, bits_of): (usize, Option<BitsOf>),
    check: &mut dyn FnMut(),
) -> TextChanges {
    let (mut in_a, mut in_b) = (Vec::new(), Vec::new());
    in_a.grow_all(shared.iter().map(|(x, _)| *x));
    in_b.grow_all(shared.iter().map(|(_, y)| *y));
    let changed = |n: usize| ChangedText {
        text: sides[n].text,
        list: &sides[n].list,
        own: own[n],
    };
    let (a, b) = (changed(0), changed(1));
    let wanted = Wanted { top, bits_of };
    text_changes([&a, &b], [&in_a, &in_b], sides[0].options, wanted, check)
}

/// Returns the number of shared features, and the `top` heaviest of them in the order of the first
/// text.
fn top_shared<'a>(
    a: &Side,
    b: &Side,
    mut all: Vec<SharedEntry<'a>>,
    top: usize,
    check: &mut dyn FnMut(),
) -> TopFeatures<(LocatedFeature, LocatedFeature)> {
    let features = all.len();
    let weight = |(x, y): &SharedEntry| a.list.weight(x) + b.list.weight(y);
    let by_position = |x: &SharedEntry<'a>, y: &SharedEntry<'a>| x.0.start.cmp(&y.0.start);
    let by_weight = |x: &SharedEntry<'a>, y: &SharedEntry<'a>| {
        (weight(y).cmp(&weight(x))).then_with(|| by_position(x, y))
    };
    cut(&mut all, top, by_weight);
    sort(&mut all, by_position, check);
    let (mut in_a, mut in_b) = (Vec::new(), Vec::new());
    in_a.grow_all(all.iter().map(|(x, _)| *x));
    in_b.grow_all(all.iter().map(|(_, y)| *y));
    let (in_a, in_b) = (a.located(&in_a, check), b.located(&in_b, check));
    let mut heaviest = Vec::new();
    heaviest.grow_all(in_a.into_iter().zip(in_b));
    TopFeatures { features, heaviest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features;
    use crate::options::{Tokens, Weight};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SINGLE: TextOptions = TextOptions {
        shingle: 1,
        ..TextOptions::SET
    };

    proptest! {
        #[test]
        fn divides_the_features(a in "[ab ]{0,30}", b in "[ab ]{0,30}", shingle in 1_usize..4) {
            let options = TextOptions { tokens: Tokens::Char, shingle, ..TextOptions::SET };
            let set = |text: &str| -> BTreeSet<String> {
                features(text, &options, &mut || ()).into_iter().map(|f| f.text).collect()
            };
            let (sa, sb) = (set(&a), set(&b));
            let expected = share(sa.intersection(&sb).count(), sa.union(&sb).count());
            let diff = FeatureDiff::new(&a, &b, &options, usize::MAX, None, &mut || ());
            prop_assert_eq!(diff.jaccard_similarity(), expected);
            prop_assert!(diff.only_a.heaviest.iter().all(|f| !sb.contains(&f.feature.text)));
            prop_assert!(diff.only_b.heaviest.iter().all(|f| !sa.contains(&f.feature.text)));
        }
    }

    #[test]
    fn the_heaviest_in_the_order_of_the_text() {
        let options = TextOptions {
            weight: Weight::Tf,
            ..SINGLE
        };
        let found = FeatureDiff::new("x x y z q q p", "y x z z r", &options, 9, None, &mut || ());
        let texts = |f: &[LocatedFeature]| -> Vec<_> {
            f.iter()
                .map(|f| (f.feature.text.clone(), f.span.unwrap().start))
                .collect()
        };
        let shared: Vec<_> = (found.shared.heaviest.iter())
            .map(|(LocatedFeature { feature: a, .. }, b)| {
                (a.text.as_str(), a.count, b.feature.count)
            })
            .collect();
        assert_eq!(shared, [("x", 2, 1), ("y", 1, 1), ("z", 1, 2)]);
        assert_eq!(
            texts(&found.only_a.heaviest),
            [("q".to_owned(), 8), ("p".to_owned(), 12)]
        );
        assert_eq!(texts(&found.only_b.heaviest), [("r".to_owned(), 8)]);
        let two = FeatureDiff::new("y x x w z z w", "w x y z", &options, 2, None, &mut || ());
        let shared = two
            .shared
            .heaviest
            .iter()
            .map(|(a, _)| a.feature.text.as_str());
        assert_eq!(shared.collect::<Vec<_>>(), ["x", "w"]);
    }

    /// The features kept with a small `top` are a prefix of those kept with a large `top`.
    #[test]
    fn top_features_are_a_prefix() {
        let words = |from: usize, to: usize| -> String {
            (from..to).map(|n| format!("w{} ", n * n % 331)).collect()
        };
        let (a, b) = (words(0, 900), words(500, 1200));
        let compared = |top| FeatureDiff::new(&a, &b, &SINGLE, top, None, &mut || ());
        let all = compared(usize::MAX);
        for top in [0, 1, 7, 100, 10_000] {
            let some = compared(top);
            assert_eq!(some.shared.features, all.shared.features);
            let first = |list: &[LocatedFeature]| list[..top.min(list.len())].to_vec();
            assert_eq!(some.only_a.heaviest, first(&all.only_a.heaviest));
            assert_eq!(some.only_b.heaviest, first(&all.only_b.heaviest));
            let shared = &all.shared.heaviest;
            assert_eq!(some.shared.heaviest, shared[..top.min(shared.len())]);
        }
    }
}
