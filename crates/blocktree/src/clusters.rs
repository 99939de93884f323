//! Clusters of near-duplicates, made from pairs, within a limit of memory.
//!
//! Nodes are fingerprints, or whatever else is near or far from one another. Each has a number, by
//! which the arrays here are read, and a rank: of two nodes that of the lower rank is kept. Both
//! methods depend on nothing but ranks and pairs, so that they are deterministic.

use crate::key::Tid;
use crate::paged::Paged;
use crate::sort::{Entry, ExternalSort, TempFiles};

/// No rank yet.
pub const UNRANKED: u32 = u32::MAX;

/// Two numbers in one, ordered by the first.
pub fn join(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Reads what [`join`] gave.
pub fn split(joined: u64) -> (u32, u32) {
    ((joined >> 32) as u32, joined as u32)
}

/// Representatives among dense nodes. A dense node is near so many others that not all of its pairs
/// are known: one or several entries of it tell which other dense nodes it may be near. The first
/// word of their keys is the rank and the node.
pub trait Centers<F: TempFiles, const M: usize> {
    /// Returns the lowest rank of a representative near the node with the entries `own`, if that is
    /// less than `below`.
    fn first_near(&mut self, files: &mut F, own: &[Entry<M>], below: u32) -> Option<u32>;

    /// Adds a representative, of a higher rank than those added before.
    fn push(&mut self, files: &mut F, own: &[Entry<M>]);
}

/// Groups around representatives. The first node that belongs to nobody represents all those near
/// it that belong to nobody yet, and so on; so every member is near its representative, and no
/// chain of neighbours draws in what is far from it. (The greedy choice of canopies: McCallum,
/// Nigam, Ungar, KDD 2000, with one radius for both.)
///
/// Turned round, a node's representative is the lowest of those near it that represent; a node for
/// which there is none represents itself. So nodes are taken from the lowest on, and each looks at
/// those before it only (time-forward processing: Zeh, EEF Summer School 2002, has the same for
/// maximal independent sets).
pub struct Star<F: TempFiles, const M: usize> {
    /// Pairs: the ranks, the higher in front, then the node of the higher.
    near: ExternalSort<F, 2>,
    /// Entries of dense nodes, behind rank and number.
    dense: ExternalSort<F, M>,
    /// Bytes for a list.
    memory: usize,
}

/// Of fingerprints: how near is near, and how many words in front are a scope.
#[derive(Clone, Copy, Debug)]
pub struct Nearness {
    /// The radius in bits.
    pub radius: u32,
    /// Words of a fingerprint in front that must be equal.
    pub scope_words: usize,
}

impl<F: TempFiles, const M: usize> Star<F, M> {
    /// No pairs yet. `memory` is for each of four lists.
    pub fn new(memory: usize) -> Self {
        Star {
            near: ExternalSort::new(memory),
            dense: ExternalSort::new(memory),
            memory,
        }
    }

    /// Two nodes are near each other: their numbers, with their ranks behind. Pairs may come in any
    /// order, and again. Those of two dense nodes may be left out.
    pub fn near(&mut self, files: &mut F, a: (u32, u32), b: (u32, u32)) {
        let (low, high) = if a.1 < b.1 { (a, b) } else { (b, a) };
        if low.1 != high.1 {
            let key = [join(high.1, low.1), u64::from(high.0)];
            self.near.push(files, key, Tid::MIN);
        }
    }

    /// Adds an entry of a dense node, whose number is the first word of the key.
    pub fn dense(&mut self, files: &mut F, rank: u32, entry: Entry<M>) {
        let mut key = entry.key;
        key[0] = join(rank, key[0] as u32);
        self.dense.push(files, key, Tid::from_packed(entry.tid));
    }

    /// Number of pairs and of entries of dense nodes.
    pub fn len(&self) -> u64 {
        self.near.len() + self.dense.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replaces the rank of each node that does not represent itself by that of its representative.
    /// Calls `done` once for each pair and each entry of a dense node.
    ///
    /// Nodes come by rank, so that their numbers lie anywhere: what is asked of those before is one
    /// bit each, by rank, and `ranks` is written at the end, by number.
    pub fn finish(
        mut self,
        files: &mut F,
        ranks: &mut Paged<F>,
        centers: &mut impl Centers<F, M>,
        done: &mut impl FnMut(),
    ) {
        let mut pairs = self.near.sorted(files, None);
        let mut dense = self.dense.sorted(files, None);
        let mut own = Vec::new();
        let mut represented = RankSet::new(files, self.memory);
        let mut found = ExternalSort::<F, 1>::new(self.memory);
        let (mut pair, mut other) = (pairs.next(files), dense.next(files));
        loop {
            let of_pair = pair.map(|pair| (split(pair.key[0]).0, pair.key[1] as u32));
            let of_dense = other.map(|other| split(other.key[0]));
            let (rank, node) = match (of_pair, of_dense) {
                (Some(a), Some(b)) => a.min(b),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => break,
            };
            let mut representative = None;
            while let Some(next) = pair
                && split(next.key[0]).0 == rank
            {
                let (_, lower) = split(next.key[0]);
                // The lowest come first.
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
                other = dense.next(files);
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

/// Ranks, a bit each.
struct RankSet<F: TempFiles> {
    words: Paged<F>,
}

impl<F: TempFiles> RankSet<F> {
    fn new(files: &mut F, memory: usize) -> Self {
        RankSet {
            words: Paged::new(files, 0, memory, |_| 0),
        }
    }

    /// The word of a rank, and its bit there.
    fn place(&mut self, files: &mut F, rank: u32) -> (u32, u32) {
        let (word, bit) = (rank / u32::BITS, 1 << (rank % u32::BITS));
        self.words.grow(files, word as usize + 1);
        (word, bit)
    }

    fn insert(&mut self, files: &mut F, rank: u32) {
        let (word, bit) = self.place(files, rank);
        let bits = self.words.get(files, word) | bit;
        self.words.set(files, word, bits);
    }

    fn contains(&mut self, files: &mut F, rank: u32) -> bool {
        let (word, bit) = self.place(files, rank);
        self.words.get(files, word) & bit != 0
    }
}

/// Components: whatever a chain of neighbours connects, each represented by its lowest rank.
pub struct Connected<F: TempFiles> {
    parents: Paged<F>,
    nodes: u32,
}

impl<F: TempFiles> Connected<F> {
    /// A forest of `nodes` nodes, none of which is connected with another.
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

    /// Two nodes are near each other, in any order.
    pub fn near(&mut self, files: &mut F, a: u32, b: u32) {
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
        // A root has the lowest number of its component, so that it comes before the others.
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
