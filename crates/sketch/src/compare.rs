//! Two texts side by side: how much of their features they share.

use std::cmp::Ordering;

use crate::counts::Counted;
use crate::extract::{Extracted, Feature, features};
use crate::options::TextOptions;

/// The Jaccard similarity of the sets of features of two texts: the number of features in both,
/// divided by the number in either. `None` if neither has any.
///
/// Exact as far as features are told apart by 128-bit hashes.
pub fn jaccard_similarity(
    a: &str,
    b: &str,
    options: &TextOptions,
    check: &mut dyn FnMut(),
) -> Option<f64> {
    let mut set = |text| {
        let mut hashes: Vec<[u64; 2]> = Vec::new();
        let each = |counted: &[Counted<2>]| {
            hashes.extend(counted.iter().map(|feature| feature.hash));
        };
        <[u64; 2]>::each(text, options, each, check);
        hashes.sort_unstable();
        hashes
    };
    let (a, b) = (set(a), set(b));
    let mut shared = 0;
    walk(&a, &b, Ord::cmp, |a, b| {
        shared += usize::from(a.is_some() && b.is_some())
    });
    share(shared, a.len() + b.len() - shared)
}

fn share(shared: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| shared as f64 / all as f64)
}

/// Walks through two ascending lists without repetitions: what stands in both comes as a pair.
fn walk<'a, T>(
    mut a: &'a [T],
    mut b: &'a [T],
    order: impl Fn(&T, &T) -> Ordering,
    mut each: impl FnMut(Option<&'a T>, Option<&'a T>),
) {
    loop {
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

/// The features of two texts, told apart by their text.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What both have, with the weight in each; those of the largest weights taken together first.
    pub shared: Vec<(Feature, Feature)>,
    /// What only the first text has, the heaviest first.
    pub only_a: Vec<Feature>,
    /// What only the second text has, the heaviest first.
    pub only_b: Vec<Feature>,
}

impl Comparison {
    /// Compares two texts. Keeps all their distinct features in memory as text.
    pub fn new(a: &str, b: &str, options: &TextOptions, check: &mut dyn FnMut()) -> Self {
        let mut sorted = |text| {
            let mut features = features(text, options, check);
            features.sort_unstable_by(by_text);
            features
        };
        let (a, b) = (sorted(a), sorted(b));
        let (mut shared, mut only_a, mut only_b) = (Vec::new(), Vec::new(), Vec::new());
        walk(&a, &b, by_text, |a, b| match (a, b) {
            (Some(a), Some(b)) => shared.push((a.clone(), b.clone())),
            (a, b) => {
                only_a.extend(a.cloned());
                only_b.extend(b.cloned());
            }
        });
        // Stable sorts: features of one weight stay in the order of their bytes.
        shared.sort_by_key(|(a, b)| std::cmp::Reverse(a.weight + b.weight));
        only_a.sort_by_key(|a| std::cmp::Reverse(a.weight));
        only_b.sort_by_key(|b| std::cmp::Reverse(b.weight));
        Self {
            shared,
            only_a,
            only_b,
        }
    }

    /// The Jaccard similarity of the two sets of features; `None` if both are empty.
    #[must_use]
    pub fn jaccard_similarity(&self) -> Option<f64> {
        let shared = self.shared.len();
        share(shared, shared + self.only_a.len() + self.only_b.len())
    }
}

fn by_text(a: &Feature, b: &Feature) -> Ordering {
    a.text.cmp(&b.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Tokens, Weight};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SINGLE: TextOptions = TextOptions {
        shingle: 1,
        ..TextOptions::SET
    };

    fn jaccard(a: &str, b: &str, options: &TextOptions) -> Option<f64> {
        jaccard_similarity(a, b, options, &mut || ())
    }

    #[test]
    fn similarity_of_words() {
        assert_eq!(jaccard("a b c", "b c d", &SINGLE), Some(0.5));
        assert_eq!(jaccard("a a a b", "A, b!", &SINGLE), Some(1.0));
        assert_eq!(jaccard("a b", "c", &SINGLE), Some(0.0));
        assert_eq!(jaccard("a", "", &SINGLE), Some(0.0));
        assert_eq!(jaccard("...", "", &SINGLE), None);
        assert_eq!(
            jaccard("a b c d", "a b c e", &TextOptions::SET),
            Some(1.0 / 3.0)
        );
    }

    proptest! {
        #[test]
        fn is_the_share_of_sets(a in "[ab ]{0,30}", b in "[ab ]{0,30}", shingle in 1_usize..4) {
            let options = TextOptions { tokens: Tokens::Char, shingle, ..TextOptions::SET };
            let set = |text: &str| -> BTreeSet<String> {
                features(text, &options, &mut || ()).into_iter().map(|f| f.text).collect()
            };
            let (sa, sb) = (set(&a), set(&b));
            let all = sa.union(&sb).count();
            let expected = (all > 0).then(|| sa.intersection(&sb).count() as f64 / all as f64);
            prop_assert_eq!(jaccard(&a, &b, &options), expected);
            let comparison = Comparison::new(&a, &b, &options, &mut || ());
            prop_assert_eq!(comparison.jaccard_similarity(), expected);
            prop_assert!(comparison.only_a.iter().all(|f| !sb.contains(&f.text)));
            prop_assert!(comparison.only_b.iter().all(|f| !sa.contains(&f.text)));
        }
    }

    #[test]
    fn heaviest_first() {
        let options = TextOptions {
            weight: Weight::Tf,
            ..SINGLE
        };
        let found = Comparison::new("x x y z q q p", "y x z z r", &options, &mut || ());
        let texts = |f: &[Feature]| f.iter().map(|f| f.text.clone()).collect::<Vec<_>>();
        let shared: Vec<_> = (found.shared.iter())
            .map(|(a, b)| (a.text.as_str(), a.count, b.count))
            .collect();
        assert_eq!(shared, [("x", 2, 1), ("z", 1, 2), ("y", 1, 1)]);
        assert_eq!(texts(&found.only_a), ["q", "p"]);
        assert_eq!(texts(&found.only_b), ["r"]);
    }
}
