//! Clusters of near-duplicates, made from pairs, within a limit of memory.
//!
//! Nodes are fingerprints or signatures. A node has a number, which is its index in the arrays
//! here, and a rank: of two nodes, the one with the lower rank is kept. Both methods depend only on
//! ranks and pairs, so they are deterministic.

use crate::key::Tid;
use crate::paged::Paged;
use crate::sort::{Entry, ExternalSort, TempFiles};

/// Rank of a node without a rank.
pub const UNRANKED: u32 = u32::MAX;

/// Joins two numbers to one, which is ordered by the first.
pub fn join(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Returns the two numbers of [`join`].
pub fn split(joined: u64) -> (u32, u32) {
    ((joined >> 32) as u32, joined as u32)
}

/// Representatives among crowded nodes. A crowded node is near so many others that not all of its
/// pairs are known. It has one or more entries, by which other crowded nodes near it are found.
/// The first word of their keys is the rank and the node.
pub trait Centers<F: TempFiles, const M: usize> {
    /// Returns the lowest rank of a representative near the node with the entries `own`, if that is
    /// less than `below`.
    fn first_near(&mut self, files: &mut F, own: &[Entry<M>], below: u32) -> Option<u32>;

    /// Adds a representative. Its rank is above the ranks of all before.
    fn push(&mut self, files: &mut F, own: &[Entry<M>]);
}

/// Clusters around representatives. In the order of ranks, each node without a representative
/// represents itself and all nodes near it that have none. So every member is near its
/// representative. (The greedy choice of canopies: McCallum, Nigam, Ungar, KDD 2000, with one
/// radius for both.)
///
/// In other words, the representative of a node is the lowest representative near it, or the node
/// itself. So each node needs only the nodes before it (time-forward processing: Zeh, EEF Summer
/// School 2002, has the same for maximal independent sets).
pub struct Star<F: TempFiles, const M: usize> {
    /// Pairs: the higher and the lower rank, then the node with the higher rank.
    pairs: ExternalSort<F, 2>,
    /// Entries of crowded nodes: rank and node, then the rest of the entry.
    crowded: ExternalSort<F, M>,
    /// Bytes for a list.
    memory: usize,
}

/// Definition of near fingerprints.
#[derive(Clone, Copy, Debug)]
pub struct Nearness {
    /// The radius in bits.
    pub radius: u32,
    /// Number of words in front of a fingerprint that must be equal.
    pub scope_words: usize,
}

impl<F: TempFiles, const M: usize> Star<F, M> {
    /// Creates empty lists. `memory` is the number of bytes for each of four lists.
    pub fn new(memory: usize) -> Self {
        Star {
            pairs: ExternalSort::new(memory),
            crowded: ExternalSort::new(memory),
            memory,
        }
    }

    /// Adds a pair of nodes: number and rank of each. Pairs may be added in any order and more than
    /// once. Pairs of two crowded nodes may be missing.
    pub fn add_pair(&mut self, files: &mut F, a: (u32, u32), b: (u32, u32)) {
        let (low, high) = if a.1 < b.1 { (a, b) } else { (b, a) };
        if low.1 != high.1 {
            let key = [join(high.1, low.1), u64::from(high.0)];
            self.pairs.push(files, key, Tid::MIN);
        }
    }

    /// Adds an entry of a crowded node. The first word of its key is the number of the node.
    pub fn add_crowded(&mut self, files: &mut F, rank: u32, entry: Entry<M>) {
        let mut key = entry.key;
        key[0] = join(rank, key[0] as u32);
        self.crowded.push(files, key, Tid::from_packed(entry.tid));
    }

    /// Number of pairs and of entries of crowded nodes.
    pub fn len(&self) -> u64 {
        self.pairs.len() + self.crowded.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replaces the rank of each node that does not represent itself by that of its representative.
    /// Calls `done` once for each pair and each entry of a crowded node.
    ///
    /// Visits nodes in the order of ranks, in which node numbers are random. So a bit for each rank
    /// records whether the node has a representative. `ranks` is written at the end, in the order
    /// of numbers.
    pub fn finish(
        mut self,
        files: &mut F,
        ranks: &mut Paged<F>,
        centers: &mut impl Centers<F, M>,
        done: &mut impl FnMut(),
    ) {
        let mut pairs = self.pairs.sorted(files, None);
        let mut crowded = self.crowded.sorted(files, None);
        let mut own = Vec::new();
        let mut represented = RankSet::new(files, self.memory);
        let mut found = ExternalSort::<F, 1>::new(self.memory);
        let (mut pair, mut other) = (pairs.next(files), crowded.next(files));
        loop {
            let of_pair = pair.map(|pair| (split(pair.key[0]).0, pair.key[1] as u32));
            let of_crowded = other.map(|other| split(other.key[0]));
            let (rank, node) = match (of_pair, of_crowded) {
                (Some(a), Some(b)) => a.min(b),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => break,
            };
            let mut representative = None;
            while let Some(next) = pair
                && split(next.key[0]).0 == rank
            {
                let (_, lower) = split(next.key[0]);
                // Nodes are visited in ascending order of rank.
                if representative.is_none() && !represented.contains(files, lower) {
                    representative = Some(lower);
                }
                pair = pairs.next(files);
                done();
            }
            own.clear();
            while let Some(entry) = other
                && split(entry.key[0]).0 == rank
            {
                own.push(entry);
                other = crowded.next(files);
                done();
            }
            if !own.is_empty() {
                let below = representative.unwrap_or(rank);
                let center = centers.first_near(files, &own, below);
                representative = center.or(representative);
                if representative.is_none() {
                    centers.push(files, &own);
                }
            }
            if let Some(representative) = representative {
                represented.insert(files, rank);
                found.push(files, [join(node, representative)], Tid::MIN);
            }
        }
        found.in_order(files, None, |files, found| {
            let (node, representative) = split(found.key[0]);
            ranks.set(files, node, representative);
        });
    }
}

/// Set of ranks, with a bit for each rank.
struct RankSet<F: TempFiles> {
    words: Paged<F>,
}

impl<F: TempFiles> RankSet<F> {
    fn new(files: &mut F, memory: usize) -> Self {
        RankSet {
            words: Paged::new(files, 0, memory, |_| 0),
        }
    }

    /// Returns the word of a rank, and the rank's bit.
    fn locate(&mut self, files: &mut F, rank: u32) -> (u32, u32) {
        let (word, bit) = (rank / u32::BITS, 1 << (rank % u32::BITS));
        self.words.grow(files, word as usize + 1);
        (word, bit)
    }

    fn insert(&mut self, files: &mut F, rank: u32) {
        let (word, bit) = self.locate(files, rank);
        let bits = self.words.get(files, word) | bit;
        self.words.set(files, word, bits);
    }

    fn contains(&mut self, files: &mut F, rank: u32) -> bool {
        let (word, bit) = self.locate(files, rank);
        self.words.get(files, word) & bit != 0
    }
}

/// Components: nodes that a chain of pairs connects. The lowest rank represents a component.
pub struct Connected<F: TempFiles> {
    parents: Paged<F>,
    nodes: u32,
}

impl<F: TempFiles> Connected<F> {
    /// Creates a forest of `nodes` unconnected nodes.
    pub fn new(files: &mut F, nodes: u32, memory: usize) -> Self {
        Connected {
            parents: Paged::new(files, nodes as usize, memory, |node| node),
            nodes,
        }
    }

    /// Returns the root of a node's component: its lowest node.
    pub fn root(&mut self, files: &mut F, mut node: u32) -> u32 {
        loop {
            let parent = self.parents.get(files, node);
            let above = self.parents.get(files, parent);
            if parent == above {
                return parent;
            }
            // Path halving (van Leeuwen and van der Weide, 1977).
            self.parents.set(files, node, above);
            node = above;
        }
    }

    /// Joins the components of two nodes.
    pub fn connect(&mut self, files: &mut F, a: u32, b: u32) {
        let (a, b) = (self.root(files, a), self.root(files, b));
        self.join(files, a, b);
    }

    /// Joins the components of two roots, and returns the root of both.
    pub fn join(&mut self, files: &mut F, a: u32, b: u32) -> u32 {
        if a != b {
            self.parents.set(files, a.max(b), a.min(b));
        }
        a.min(b)
    }

    /// Replaces the rank of each node by the lowest of its component.
    pub fn finish(mut self, files: &mut F, ranks: &mut Paged<F>) {
        // A root has the lowest number of its component, so it precedes the other nodes.
        for node in 0..self.nodes {
            let root = self.root(files, node);
            let rank = ranks.get(files, node);
            if root != node && rank < ranks.get(files, root) {
                ranks.set(files, root, rank);
            }
        }
        for node in 0..self.nodes {
            let root = self.root(files, node);
            if root != node {
                let rank = ranks.get(files, root);
                ranks.set(files, node, rank);
            }
        }
    }
}
