//! Compares the clusters that neardup or a Python library found with the true clusters, by pairs of
//! documents.
use std::collections::HashMap;
use std::hash::Hash;

/// Recall and precision of found clusters. A pair is two documents in the same cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Share of the true pairs that were found. 1 if there is no true pair.
    pub recall: f64,
    /// Share of the found pairs that are true. 1 if no pair was found.
    pub precision: f64,
}

/// Compares found clusters with the true ones. `truth[document]` is the document's true cluster.
/// `found` has pairs of a document number and the document's found cluster; documents without a
/// near-duplicate may be missing.
pub fn agreement(truth: &[u64], found: &[(u64, u64)]) -> Agreement {
    let there = pairs(truth.iter());
    let claimed = pairs(found.iter().map(|(_, cluster)| cluster));
    // A document number outside `truth` gets a cluster of its own, so it forms no true pair.
    let common = pairs(found.iter().map(|(document, cluster)| {
        let real = truth.get(*document as usize);
        (cluster, real.ok_or(document))
    }));
    let share = |of: u64| match of {
        0 => 1.0,
        _ => common as f64 / of as f64,
    };
    Agreement {
        recall: share(there),
        precision: share(claimed),
    }
}

/// Returns the number of pairs of two items of `all` that are equal.
fn pairs<T: Eq + Hash>(all: impl Iterator<Item = T>) -> u64 {
    let mut sizes: HashMap<T, u64> = HashMap::new();
    for one in all {
        *sizes.entry(one).or_default() += 1;
    }
    sizes.values().map(|size| size * (size - 1) / 2).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_compared() {
        let truth = [0, 0, 0, 3, 3, 5];
        let of = |found: &[(u64, u64)]| {
            let Agreement { recall, precision } = agreement(&truth, found);
            [recall, precision]
        };
        assert_eq!(of(&[(0, 9), (1, 9), (2, 9), (3, 7), (4, 7)]), [1.0, 1.0]);
        assert_eq!(of(&[(0, 9), (1, 9)]), [0.25, 1.0]);
        assert_eq!(of(&[(0, 9), (1, 9), (5, 9)]), [0.25, 1.0 / 3.0]);
        assert_eq!(of(&[(3, 9), (4, 9), (6, 9)]), [0.25, 1.0 / 3.0]);
        assert_eq!(of(&[]), [0.0, 1.0]);
    }
}
