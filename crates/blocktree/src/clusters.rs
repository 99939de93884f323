//! Clusters of near-duplicates, made from pairs.
//!
//! Nodes are fingerprints, or whatever else is near or far from one another, numbered from the most
//! wanted on: of two nodes the lower one is kept. Both methods depend on nothing else, so that they
//! are deterministic.

/// Groups around representatives. The first node that belongs to nobody represents all those near it
/// that belong to nobody yet, and so on; so every member is near its representative, and no chain of
/// neighbours draws in what is far from it. (The greedy choice of canopies: McCallum, Nigam, Ungar,
/// KDD 2000, with one radius for both.)
#[derive(Debug)]
pub struct Star {
    representatives: Vec<Option<u32>>,
    last: (u32, u32),
}

impl Star {
    /// As many nodes, none of which belongs to any.
    pub fn new(nodes: usize) -> Self {
        Star {
            representatives: vec![None; nodes],
            last: (0, 0),
        }
    }

    /// Two nodes are near each other, the first the lower. Pairs come in ascending order; the same
    /// may come again.
    pub fn near(&mut self, a: u32, b: u32) {
        debug_assert!(a < b && (a, b) >= self.last);
        self.last = (a, b);
        // Whatever is near `a` and lower has been here: if none of it took `a`, nobody will.
        let of_a = self.representatives[a as usize].get_or_insert(a);
        if *of_a == a {
            self.representatives[b as usize].get_or_insert(a);
        }
    }

    /// The representative of each node.
    pub fn finish(self) -> Vec<u32> {
        (0..)
            .zip(self.representatives)
            .map(|(node, representative)| representative.unwrap_or(node))
            .collect()
    }
}

/// Components: whatever a chain of neighbours connects, each represented by its lowest node.
#[derive(Debug)]
pub struct Connected {
    parents: Vec<u32>,
}

impl Connected {
    /// As many nodes, none of which is connected.
    pub fn new(nodes: usize) -> Self {
        Connected {
            parents: (0..nodes as u32).collect(),
        }
    }

    fn root(&mut self, mut node: u32) -> u32 {
        loop {
            let parent = self.parents[node as usize];
            let above = self.parents[parent as usize];
            if parent == above {
                return parent;
            }
            // Halving the way up (van Leeuwen and van der Weide, 1977).
            self.parents[node as usize] = above;
            node = above;
        }
    }

    /// Two nodes are near each other, in any order.
    pub fn near(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        // The lowest is the root: it is what has to be told in the end.
        self.parents[a.max(b) as usize] = a.min(b);
    }

    /// The representative of each node.
    pub fn finish(mut self) -> Vec<u32> {
        (0..self.parents.len() as u32)
            .map(|node| self.root(node))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn as_by_definition(
            nodes in 1..60u32, raw in prop::collection::vec((0..60u32, 0..60u32), 0..150),
        ) {
            let pairs: BTreeSet<(u32, u32)> = (raw.iter())
                .map(|&(a, b)| ((a % nodes).min(b % nodes), (a % nodes).max(b % nodes)))
                .filter(|(a, b)| a < b)
                .collect();
            let near = |a: u32, b: u32| pairs.contains(&(a.min(b), a.max(b)));

            let mut star = Star::new(nodes as usize);
            // Twice each, as a search may give them.
            pairs.iter().for_each(|&(a, b)| { star.near(a, b); star.near(a, b); });
            let mut expected: Vec<Option<u32>> = vec![None; nodes as usize];
            for a in 0..nodes {
                if expected[a as usize].is_none() {
                    expected[a as usize] = Some(a);
                    for b in 0..nodes {
                        if near(a, b) {
                            expected[b as usize].get_or_insert(a);
                        }
                    }
                }
            }
            let expected: Vec<u32> = expected.into_iter().flatten().collect();
            prop_assert_eq!(star.finish(), expected);

            let mut connected = Connected::new(nodes as usize);
            raw.iter().for_each(|&(a, b)| connected.near(a % nodes, b % nodes));
            let mut expected: Vec<u32> = (0..nodes).collect();
            for _ in 0..nodes {
                for &(a, b) in &pairs {
                    let lowest = expected[a as usize].min(expected[b as usize]);
                    (expected[a as usize], expected[b as usize]) = (lowest, lowest);
                }
            }
            prop_assert_eq!(connected.finish(), expected);
        }
    }

    #[test]
    fn a_long_chain_takes_no_long() {
        let nodes = 1_000_000;
        let mut connected = Connected::new(nodes as usize);
        (1..nodes)
            .rev()
            .for_each(|node| connected.near(node - 1, node));
        assert!(connected.finish().iter().all(|&root| root == 0));
    }
}
