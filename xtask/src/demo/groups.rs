//! From pairs of near-duplicates to groups, and within a group to its different texts.
use std::collections::HashMap;

/// Disjoint sets of documents, joined pair by pair (Tarjan, JACM 1975: union by size, with path
/// halving).
pub struct Groups {
    parent: Vec<u32>,
    size: Vec<u32>,
}

impl Groups {
    /// `count` documents, numbered from 0, each for itself.
    pub fn new(count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            parent: (0..count).collect(),
            size: vec![1; count as usize],
        }
    }

    /// Puts two documents into one group. A number out of range is passed over.
    pub fn join(&mut self, a: usize, b: usize) {
        let (Some(a), Some(b)) = (self.root(a), self.root(b)) else {
            return;
        };
        if a == b {
            return;
        }
        let (large, small) = if self.size[a] < self.size[b] {
            (b, a)
        } else {
            (a, b)
        };
        self.parent[small] = self.parent[large];
        self.size[large] += self.size[small];
    }

    fn root(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        while *self.parent.get(at)? as usize != at {
            let up = self.parent[at] as usize;
            self.parent[at] = self.parent[up];
            at = up;
        }
        Some(at)
    }

    /// The groups of two documents or more; within each the numbers rise.
    pub fn of_two_or_more(mut self) -> Vec<Vec<usize>> {
        let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
        for number in 0..self.parent.len() {
            if let Some(root) = self.root(number)
                && self.size[root] > 1
            {
                members.entry(root).or_default().push(number);
            }
        }
        let mut groups: Vec<Vec<usize>> = members.into_values().collect();
        groups.sort();
        groups
    }
}

/// One text of a group, and how often it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The first document that has it.
    pub id: i64,
    /// That document's name.
    pub name: String,
    /// Number of documents have it, byte for byte.
    pub copies: usize,
}

/// A group's different texts; the most frequent first, then in the order of documents.
pub fn texts(members: &[Member]) -> Vec<Text> {
    let mut by_digest: HashMap<&str, Text> = HashMap::new();
    for member in members {
        let text = by_digest.entry(&member.digest).or_insert_with(|| Text {
            id: member.id,
            name: member.name.clone(),
            copies: 0,
        });
        text.copies += 1;
        if member.id < text.id {
            text.id = member.id;
            text.name.clone_from(&member.name);
        }
    }
    let mut texts: Vec<Text> = by_digest.into_values().collect();
    texts.sort_by_key(|text| (std::cmp::Reverse(text.copies), text.id));
    texts
}

/// A document of a group.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its identifier.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// A digest of its text: equal for equal texts.
    pub digest: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_chain_into_groups() {
        let mut groups = Groups::new(7);
        for (a, b) in [(0, 3), (5, 3), (1, 2), (3, 0), (6, 99)] {
            groups.join(a, b);
        }
        assert_eq!(groups.of_two_or_more(), [vec![0, 3, 5], vec![1, 2]]);
    }

    #[test]
    fn a_long_chain_is_one_group() {
        let mut groups = Groups::new(100_000);
        for n in 1..100_000 {
            groups.join(n, n - 1);
        }
        let found = groups.of_two_or_more();
        assert_eq!((found.len(), found[0].len()), (1, 100_000));
    }

    #[test]
    fn equal_texts_are_counted_and_the_most_frequent_comes_first() {
        let member = |id: i64, digest: &str| Member {
            id,
            name: format!("n{id}"),
            digest: digest.to_owned(),
        };
        let found = texts(&[
            member(4, "b"),
            member(9, "a"),
            member(2, "c"),
            member(1, "a"),
        ]);
        let summary: Vec<(i64, &str, usize)> = found
            .iter()
            .map(|text| (text.id, text.name.as_str(), text.copies))
            .collect();
        assert_eq!(summary, [(1, "n1", 2), (2, "n2", 1), (4, "n4", 1)]);
    }
}
