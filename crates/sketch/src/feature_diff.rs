//! Comparison of the features of two texts, to be shown.

use std::cmp::Ordering;

use crate::feature_list::{Feature, FeatureEntry, FeatureList, sort};
use crate::memory::GrowVec;
use crate::options::TextOptions;
use crate::similarity::share;

/// Steps between two calls of `check`.
const STEPS: usize = 1 << 16;

/// Merges two ascending lists without repetitions; elements of both are passed as a pair.
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

/// Number of features, and the heaviest of them.
#[derive(Clone, Debug, PartialEq)]
pub struct TopFeatures<T> {
    /// Number of all features.
    pub features: usize,
    /// The heaviest features, by weight and then by their bytes.
    pub heaviest: Vec<T>,
}

impl<T> TopFeatures<T> {
    /// Selects the first `top` of `all`.
    fn select<E>(
        mut all: Vec<E>,
        top: usize,
        mut order: impl FnMut(&E, &E) -> Ordering,
        show: impl FnMut(E) -> T,
        check: &mut dyn FnMut(),
    ) -> Self {
        let features = all.len();
        if top < features {
            all.select_nth_unstable_by(top, &mut order);
            all.truncate(top);
        }
        sort(&mut all, order, check);
        let mut heaviest = Vec::new();
        heaviest.grow_all(all.into_iter().map(show));
        Self { features, heaviest }
    }
}

/// Features of two texts, identified by their text.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureDiff {
    /// Features of both texts, with their weight in each, by the sum of the weights.
    pub shared: TopFeatures<(Feature, Feature)>,
    /// Features of the first text only.
    pub only_a: TopFeatures<Feature>,
    /// Features of the second text only.
    pub only_b: TopFeatures<Feature>,
}

impl FeatureDiff {
    /// Compares two texts and keeps the `top` heaviest features of each kind.
    ///
    /// Memory is that of two [`FeatureList`]s, and 8 bytes more for each distinct feature.
    pub fn new(
        a: &str,
        b: &str,
        options: &TextOptions,
        top: usize,
        check: &mut dyn FnMut(),
    ) -> Self {
        let a = FeatureList::by_hash(a, options, check);
        let b = FeatureList::by_hash(b, options, check);
        let (mut shared, mut only_a, mut only_b) = (Vec::new(), Vec::new(), Vec::new());
        let order = |x: &FeatureEntry, y: &FeatureEntry| a.order(x, &b, y);
        let each = |x, y| match (x, y) {
            (Some(x), Some(y)) => shared.grow_push((x, y)),
            (Some(x), None) => only_a.grow_push(x),
            (None, Some(y)) => only_b.grow_push(y),
            (None, None) => {}
        };
        merge(a.entries(), b.entries(), order, each, check);
        type SharedEntry<'a> = (&'a FeatureEntry, &'a FeatureEntry);
        let weight = |(x, y): &SharedEntry| a.weight(x) + b.weight(y);
        let by_weight = |x: &SharedEntry, y: &SharedEntry| {
            (weight(y).cmp(&weight(x))).then_with(|| a.bytes(x.0).cmp(a.bytes(y.0)))
        };
        let one = |list: &FeatureList, all: Vec<&FeatureEntry>, check: &mut dyn FnMut()| {
            let order = |x: &&FeatureEntry, y: &&FeatureEntry| list.by_weight(x, y);
            TopFeatures::select(all, top, order, |entry| list.feature(entry), check)
        };
        let both = |(x, y): SharedEntry| (a.feature(x), b.feature(y));
        Self {
            shared: TopFeatures::select(shared, top, by_weight, both, check),
            only_a: one(&a, only_a, check),
            only_b: one(&b, only_b, check),
        }
    }

    /// The Jaccard similarity of the two sets of features; `None` if both are empty.
    #[must_use]
    pub fn jaccard_similarity(&self) -> Option<f64> {
        let shared = self.shared.features;
        share(shared, shared + self.only_a.features + self.only_b.features)
    }
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
            let diff = FeatureDiff::new(&a, &b, &options, usize::MAX, &mut || ());
            prop_assert_eq!(diff.jaccard_similarity(), expected);
            prop_assert!(diff.only_a.heaviest.iter().all(|f| !sb.contains(&f.text)));
            prop_assert!(diff.only_b.heaviest.iter().all(|f| !sa.contains(&f.text)));
        }
    }

    #[test]
    fn heaviest_first() {
        let options = TextOptions {
            weight: Weight::Tf,
            ..SINGLE
        };
        let found = FeatureDiff::new("x x y z q q p", "y x z z r", &options, 9, &mut || ());
        let texts = |f: &[Feature]| f.iter().map(|f| f.text.clone()).collect::<Vec<_>>();
        let shared: Vec<_> = (found.shared.heaviest.iter())
            .map(|(a, b)| (a.text.as_str(), a.count, b.count))
            .collect();
        assert_eq!(shared, [("x", 2, 1), ("z", 1, 2), ("y", 1, 1)]);
        assert_eq!(texts(&found.only_a.heaviest), ["q", "p"]);
        assert_eq!(texts(&found.only_b.heaviest), ["r"]);
    }

    /// The top features are a prefix of all features.
    #[test]
    fn top_features_are_a_prefix() {
        let words = |from: usize, to: usize| -> String {
            (from..to).map(|n| format!("w{} ", n * n % 331)).collect()
        };
        let (a, b) = (words(0, 900), words(500, 1200));
        let compared = |top| FeatureDiff::new(&a, &b, &SINGLE, top, &mut || ());
        let all = compared(usize::MAX);
        for top in [0, 1, 7, 100, 10_000] {
            let some = compared(top);
            assert_eq!(some.shared.features, all.shared.features);
            let first = |list: &[Feature]| list[..top.min(list.len())].to_vec();
            assert_eq!(some.only_a.heaviest, first(&all.only_a.heaviest));
            assert_eq!(some.only_b.heaviest, first(&all.only_b.heaviest));
            let shared = &all.shared.heaviest;
            assert_eq!(some.shared.heaviest, shared[..top.min(shared.len())]);
        }
    }
}
