//! Exact similarity of the feature sets of two texts: containment and Jaccard similarity.
//!
//! Features are identified by 128-bit hashes. A comparison takes 16 bytes and the overhead of a
//! hash set for each distinct feature of the first text, in addition to the memory for finding
//! features.

use std::collections::HashSet;

use crate::memory::Grow;
use crate::sketcher::Sketcher;

/// Number of distinct features of text `a`, of text `b`, and of both texts in common.
struct Overlap {
    a: usize,
    b: usize,
    shared: usize,
}

impl Sketcher {
    /// Returns the containment of `a` in `b`: the share of the distinct features of `a` that `b`
    /// also has, 0 to 1 (Broder, "On the resemblance and containment of documents", SEQUENCES
    /// 1997). Returns `None` if `a` has no features.
    pub fn containment(&mut self, a: &str, b: &str, check: &mut dyn FnMut()) -> Option<f64> {
        let overlap = self.overlap(a, b, check);
        share(overlap.shared, overlap.a)
    }

    /// Returns the Jaccard similarity of the feature sets of two texts, 0 to 1, or `None` if
    /// neither text has a feature. The similarity is the number of distinct features in both texts,
    /// divided by the number of distinct features in at least one of them.
    ///
    /// ```
    /// use neardup_sketch::{Sketcher, TextOptions};
    ///
    /// let words = TextOptions { shingle: 1, ..TextOptions::SET };
    /// let mut sketcher = Sketcher::new(words);
    /// assert_eq!(sketcher.jaccard_similarity("a b c", "B, c: d!", &mut || ()), Some(0.5));
    /// ```
    pub fn jaccard_similarity(&mut self, a: &str, b: &str, check: &mut dyn FnMut()) -> Option<f64> {
        let Overlap { a, b, shared } = self.overlap(a, b, check);
        share(shared, a + b - shared)
    }

    /// Counts the distinct features of text `a`, of text `b`, and those that both texts have. Calls
    /// the cancellation check `check`.
    fn overlap(&mut self, a: &str, b: &str, check: &mut dyn FnMut()) -> Overlap {
        let (extractor, options) = (&mut self.extractor, &self.options);
        let counter = &mut self.scratch128.counter;
        let mut features: HashSet<[u64; 2]> = HashSet::new();
        counter.count_text(
            extractor,
            a,
            options,
            None,
            |counted| {
                features.ensure_room(counted.hashes.len());
                features.extend(counted.hashes);
            },
            check,
        );
        let (mut in_b, mut shared) = (0, 0);
        counter.count_text(
            extractor,
            b,
            options,
            None,
            |counted| {
                in_b += counted.hashes.len();
                let found = (counted.hashes.iter()).filter(|hash| features.contains(*hash));
                shared += found.count();
            },
            check,
        );
        Overlap {
            a: features.len(),
            b: in_b,
            shared,
        }
    }
}

/// Returns `part / whole`, or `None` if `whole` is 0.
pub(crate) fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features;
    use crate::options::{TextOptions, Tokens};
    use crate::test_texts::any_text;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SINGLE: TextOptions = TextOptions {
        shingle: 1,
        ..TextOptions::SET
    };

    fn containment(a: &str, b: &str) -> Option<f64> {
        Sketcher::new(TextOptions::SET).containment(a, b, &mut || ())
    }

    fn jaccard(a: &str, b: &str, options: &TextOptions) -> Option<f64> {
        Sketcher::new(*options).jaccard_similarity(a, b, &mut || ())
    }

    fn set(text: &str, options: &TextOptions) -> BTreeSet<String> {
        let found = features(text, options, &mut || ()).into_iter();
        found.map(|feature| feature.text).collect()
    }

    #[test]
    fn containment_of_words() {
        let text = "the quick brown fox jumps";
        assert_eq!(containment(text, text), Some(1.0));
        assert_eq!(
            containment(text, &format!("well, {text} over the lazy dog")),
            Some(1.0)
        );
        // Text `a` has three shingles of three words, of which text `b` has one.
        assert_eq!(containment(text, "the quick brown bear"), Some(1.0 / 3.0));
        assert_eq!(containment(text, ""), Some(0.0));
        assert_eq!(containment("", text), None);
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
        fn agrees_with_the_features_themselves(a in any_text(), b in any_text()) {
            let (x, y) = (set(&a, &TextOptions::SET), set(&b, &TextOptions::SET));
            let shared = x.intersection(&y).count();
            prop_assert_eq!(containment(&a, &b), share(shared, x.len()));
            prop_assert_eq!(jaccard(&a, &b, &TextOptions::SET), share(shared, x.union(&y).count()));
        }

        #[test]
        fn jaccard_of_similar_texts(a in "[ab ]{0,30}", b in "[ab ]{0,30}", shingle in 1_usize..4) {
            let options = TextOptions { tokens: Tokens::Char, shingle, ..TextOptions::SET };
            let (x, y) = (set(&a, &options), set(&b, &options));
            let expected = share(x.intersection(&y).count(), x.union(&y).count());
            prop_assert_eq!(jaccard(&a, &b, &options), expected);
        }
    }
}
