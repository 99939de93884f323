//! Radius of a search for candidate pairs, whose texts are then compared exactly. The wanted pairs
//! are the pairs of texts whose similarity is at least a given one. A search compares sketches,
//! which are fingerprints (bits) or signatures (values). It loses a wanted pair if the two sketches
//! differ in more bits or values than the radius.
//!
//! Fingerprints and signatures estimate a similarity, so some pairs of similar texts have an
//! estimate below the wanted similarity. A search for candidates therefore uses a larger radius.
//! The number of bits or values in which two texts with the Jaccard similarity J differ is
//! binomially distributed (Broder, SEQUENCES 1997; Li, Konig, WWW 2010). How the similarities of
//! the wanted pairs are distributed depends on the texts. These functions assume that they are
//! uniform between the wanted similarity and 1. In most collections more pairs are near 1, so fewer
//! pairs are lost than the functions expect.

/// Usual value of the argument `max_loss` of [`Estimator::candidate_bound`]: a search may lose 1 %
/// of the wanted pairs.
pub const USUAL_LOSS: f64 = 0.01;
/// Number of similarities, evenly spaced between the wanted similarity and 1, over which the
/// expected loss is averaged.
const SAMPLES: usize = 100;

/// Kind of sketch that estimates Jaccard similarities by the number of bits or values in which two
/// sketches differ.
#[derive(Clone, Copy, Debug)]
pub struct Estimator {
    /// Number of bits of a fingerprint, or number of values of a signature. All of them are
    /// compared.
    trials: u32,
    /// Probability that the sketches of two sets without a common element differ in a given bit or
    /// value: 1/2 for a bit, 1 for a value.
    rate: f64,
}

impl Estimator {
    /// Returns the estimator for MinHash fingerprints of `bits` bits.
    #[must_use]
    pub fn fingerprint(bits: u32) -> Self {
        Estimator {
            trials: bits,
            rate: 0.5,
        }
    }

    /// Returns the estimator for MinHash signatures of `hashes` values.
    #[must_use]
    pub fn signature(hashes: u32) -> Self {
        Estimator {
            trials: hashes,
            rate: 1.0,
        }
    }

    /// Returns the smallest radius, in differing bits or values, at which a search loses at most
    /// the share `max_loss` (0 to 1) of the wanted pairs. These are the pairs whose Jaccard
    /// similarity is `similarity` (0 to 1) or more.
    #[must_use]
    pub fn candidate_bound(self, similarity: f64, max_loss: f64) -> u32 {
        let mut tails = Tails::new(self, &samples(similarity));
        while tails.bound < self.trials && tails.mean() > max_loss {
            tails.advance();
        }
        tails.bound
    }

    /// Returns the share of the pairs with a Jaccard similarity of `similarity` or more that a
    /// search with the radius `bound` is expected to lose, because they differ in more bits or
    /// values.
    #[must_use]
    pub fn mean_loss(self, similarity: f64, bound: u32) -> f64 {
        self.tails(&samples(similarity), bound).mean()
    }

    /// Returns the share of the pairs with exactly the Jaccard similarity `similarity` that a
    /// search with the radius `bound` is expected to lose, because they differ in more bits or
    /// values.
    #[must_use]
    pub fn loss_at(self, similarity: f64, bound: u32) -> f64 {
        self.tails(&[similarity], bound).mean()
    }

    fn tails(self, similarities: &[f64], bound: u32) -> Tails {
        let mut tails = Tails::new(self, similarities);
        while tails.bound < bound.min(self.trials) {
            tails.advance();
        }
        tails
    }
}

/// Returns [`SAMPLES`] evenly spaced similarities between `similarity` and 1.
fn samples(similarity: f64) -> Vec<f64> {
    let step = (1.0 - similarity) / SAMPLES as f64;
    (0..SAMPLES)
        .map(|n| similarity + (n as f64 + 0.5) * step)
        .collect()
}

/// Probabilities that two sketches differ in more than `bound` bits or values, one for each of
/// several Jaccard similarities.
struct Tails {
    trials: u32,
    bound: u32,
    /// For each similarity that was passed to [`Tails::new`], in the same order, three numbers: the
    /// logarithm of the odds that one bit or value differs, the logarithm of the probability of
    /// exactly `bound` differences, and the probability of at most `bound` differences. The first
    /// two are logarithms, because the probability of no difference underflows for long signatures.
    sums: Vec<(f64, f64, f64)>,
}

impl Tails {
    fn new(estimator: Estimator, similarities: &[f64]) -> Self {
        let sums = similarities.iter().map(|similarity| {
            let differs = (1.0 - similarity) * estimator.rate;
            let term = f64::from(estimator.trials) * (1.0 - differs).ln();
            (differs.ln() - (1.0 - differs).ln(), term, term.exp())
        });
        Tails {
            trials: estimator.trials,
            bound: 0,
            sums: sums.collect(),
        }
    }

    /// Increases `bound` by one, and updates the probabilities in `sums`.
    fn advance(&mut self) {
        self.bound += 1;
        let (left, bound) = (self.trials - self.bound + 1, self.bound);
        let ways = (f64::from(left) / f64::from(bound)).ln();
        for (odds, term, sum) in &mut self.sums {
            *term += ways + *odds;
            *sum += term.exp();
        }
    }

    /// Returns the probability that two sketches differ in more than `bound` bits or values,
    /// averaged over the similarities.
    fn mean(&self) -> f64 {
        let sum: f64 = self.sums.iter().map(|(_, _, sum)| 1.0 - sum).sum();
        (sum / self.sums.len() as f64).max(0.0)
    }
}

/// Returns the Jaccard similarity of two sets of feature hashes, each sorted and without
/// repetitions. Returns `None` if both sets are empty or the similarity is below `min_similarity`.
#[must_use]
pub fn similarity_at_least(a: &[u64], b: &[u64], min_similarity: f64) -> Option<f64> {
    let (fewer, more) = (a.len().min(b.len()), a.len().max(b.len()));
    // The similarity of two sets is at most the ratio of their sizes.
    if more == 0 || (fewer as f64) < min_similarity * more as f64 {
        return None;
    }
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
        shared += usize::from(x == y);
    }
    let similarity = shared as f64 / (a.len() + b.len() - shared) as f64;
    (similarity >= min_similarity).then_some(similarity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The expected bounds were computed with exact binomial coefficients.
    #[test]
    fn bounds_for_one_percent() {
        let bounds = |estimator: Estimator| {
            [0.7, 0.8, 0.9].map(|similarity| estimator.candidate_bound(similarity, USUAL_LOSS))
        };
        assert_eq!(bounds(Estimator::fingerprint(64)), [14, 10, 6]);
        assert_eq!(bounds(Estimator::fingerprint(128)), [24, 17, 10]);
        assert_eq!(bounds(Estimator::signature(128)), [44, 31, 17]);
    }

    #[test]
    fn losses() {
        let fingerprint = Estimator::fingerprint(64);
        assert!((fingerprint.loss_at(0.8, 9) - 0.103).abs() < 0.001);
        assert!((fingerprint.loss_at(0.8, 12) - 0.010).abs() < 0.001);
        assert!((fingerprint.mean_loss(0.8, 10) - 0.0069).abs() < 0.0001);
        let long = Estimator::signature(4096);
        assert!((long.loss_at(0.5, 2048) - 0.494).abs() < 0.01);
    }

    #[test]
    fn equal_texts_and_all_texts() {
        let fingerprint = Estimator::fingerprint(64);
        assert_eq!(fingerprint.candidate_bound(1.0, USUAL_LOSS), 0);
        assert_eq!(fingerprint.loss_at(1.0, 0), 0.0);
        assert!(fingerprint.candidate_bound(0.0, USUAL_LOSS) <= 64);
        assert_eq!(Estimator::signature(128).loss_at(0.0, 128), 0.0);
    }

    proptest! {
        #[test]
        fn similarities_are_those_of_sets(
            a in prop::collection::btree_set(0u64..30, 0..20),
            b in prop::collection::btree_set(0u64..30, 0..20),
            min in 0.0..=1.0,
        ) {
            let [left, right] = [&a, &b].map(|set| set.iter().copied().collect::<Vec<_>>());
            let union = a.union(&b).count();
            let exact = a.intersection(&b).count() as f64 / union as f64;
            let expected = (union > 0 && exact >= min).then_some(exact);
            prop_assert_eq!(similarity_at_least(&left, &right, min), expected);
            let empty = BTreeSet::<u64>::new().into_iter().collect::<Vec<_>>();
            prop_assert_eq!(similarity_at_least(&empty, &empty, min), None);
        }

        #[test]
        fn a_wider_bound_loses_less(similarity in 0.0..1.0, bound in 0u32..63) {
            let fingerprint = Estimator::fingerprint(64);
            let loss = |bound| fingerprint.mean_loss(similarity, bound);
            prop_assert!(loss(bound + 1) <= loss(bound) + 1e-12);
        }
    }
}
