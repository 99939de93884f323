//! Groups that were found, compared with those that there are, pair by pair.
use std::collections::HashMap;
use std::hash::Hash;

/// Shares of the pairs of documents of one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Of the pairs that there are: those that were found.
    pub recall: f64,
    /// Of the pairs that were found: those that there are. 1 if none was found.
    pub precision: f64,
}

/// Compares groups. `truth` has each document's group, by the document's number; `found` has
/// numbers of documents with their groups, and need not name documents that are alone.
pub fn agreement(truth: &[u64], found: &[(u64, u64)]) -> Agreement {
    let there = pairs(truth.iter());
    let claimed = pairs(found.iter().map(|(_, group)| group));
    // A number that no document has is in a group of its own, with no other.
    let common = pairs(found.iter().map(|(document, group)| {
        let real = truth.get(*document as usize);
        (group, real.ok_or(document))
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

/// Counts the pairs of equal ones.
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
