//! How much of one text another holds.

use std::collections::HashSet;

use crate::extract::each_feature128;
use crate::memory::Grow;
use crate::options::TextOptions;

/// The share of the distinct features of `a` that `b` has too, 0 to 1 (Broder, "On the resemblance
/// and containment of documents", SEQUENCES 1997); `None` if `a` has none.
///
/// Exact, up to features whose hashes of 128 bits agree. Memory: 16 bytes or so for each distinct
/// feature of `a`, beside what finding features takes. `check` is as for
/// [`crate::each_feature64`].
pub fn containment(
    a: &str,
    b: &str,
    options: &TextOptions,
    check: &mut dyn FnMut(),
) -> Option<f64> {
    let mut features = HashSet::new();
    each_feature128(
        a,
        options,
        |hash, _| {
            features.ensure_room(1);
            features.insert(hash);
        },
        check,
    );
    if features.is_empty() {
        return None;
    }
    let mut shared = 0_u64;
    each_feature128(
        b,
        options,
        |hash, _| shared += u64::from(features.contains(&hash)),
        check,
    );
    Some(shared as f64 / features.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::any_text;
    use proptest::prelude::*;

    fn of(a: &str, b: &str) -> Option<f64> {
        containment(a, b, &TextOptions::SET, &mut || ())
    }

    #[test]
    fn shares() {
        let text = "the quick brown fox jumps";
        assert_eq!(of(text, text), Some(1.0));
        assert_eq!(
            of(text, &format!("well, {text} over the lazy dog")),
            Some(1.0)
        );
        // Of three shingles of three words one is there.
        assert_eq!(of(text, "the quick brown bear"), Some(1.0 / 3.0));
        assert_eq!(of(text, ""), Some(0.0));
        assert_eq!(of("", text), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_features_themselves(a in any_text(), b in any_text()) {
            let set = |text: &str| -> HashSet<String> {
                let found = crate::features(text, &TextOptions::SET, &mut || ());
                found.into_iter().map(|feature| feature.text).collect()
            };
            let (x, y) = (set(&a), set(&b));
            let expected = (!x.is_empty()).then(|| x.intersection(&y).count() as f64 / x.len() as f64);
            prop_assert_eq!(of(&a, &b), expected);
        }
    }
}
