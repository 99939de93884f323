//! Clusters of near-duplicates, computed from the pairs of a search within a memory limit. A node
//! is a fingerprint or a signature. It has a number, which is its index in arrays, and a rank: the
//! node with the lowest rank of a cluster is kept. There are two methods: stars around
//! representatives ([`Star`]) and connected components ([`Components`]). Both depend only on ranks
//! and pairs, so they are deterministic.

use crate::key::Tid;
use crate::paged::Paged;
use crate::sort::{Entry, ExternalSort, TempFiles};

/// Mark in an array of ranks for a node to which no rank has been assigned. It is greater than all
/// ranks.
pub const UNRANKED: u32 = u32::MAX;

/// Packs two numbers into one word: `a` in the upper half, `b` in the lower half. Words are ordered
/// by `a`, then by `b`.
pub fn join(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Unpacks the two numbers of a word that [`join`] returned.
pub fn split(joined: u64) -> (u32, u32) {
    ((joined >> 32) as u32, joined as u32)
}

/// Collection of the representatives among crowded nodes. A crowded node is near so many others
/// that the search has not reported all its pairs. So it is compared with the crowded
/// representatives instead. For this purpose, each crowded node has one or more entries. An entry
/// has the address of the node's row, and a key. The first word of the key has the rank and the
/// number of the node ([`join`]).
pub trait Centers<F: TempFiles, const M: usize> {
    /// Returns the lowest rank of a representative that is near the node with the entries `own`.
    /// `None` if no representative with a rank less than `below` is near the node.
    fn first_near(&mut self, files: &mut F, own: &[Entry<M>], below: u32) -> Option<u32>;

    /// Adds the node with the entries `own` as a representative. Its rank must be greater than the
    /// ranks of all representatives so far.
    fn push(&mut self, files: &mut F, own: &[Entry<M>]);
}

/// Clusters around representatives (stars). Nodes are visited in the order of ranks. A node that
/// has no representative becomes one: it represents itself and all near nodes that have no
/// representative. So each member of a cluster is near its representative. This is the greedy
/// choice of canopies (McCallum, Nigam, Ungar, KDD 2000) with equal radii.
///
/// In other words, the representative of a node is the near representative with the lowest rank, or
/// the node itself. So the result for a node depends only on nodes of lower rank. It can be
/// computed from lists that are sorted by rank, without random access to nodes. This is
/// time-forward processing, which Zeh (EEF Summer School 2002) uses for maximal independent sets.
pub struct Star<F: TempFiles, const M: usize> {
    /// Pairs of near nodes. The first word of a key has the higher and the lower rank of the pair
    /// ([`join`]). The second word is the number of the node with the higher rank.
    pairs: ExternalSort<F, 2>,
    /// Entries of crowded nodes, as in [`Centers`].
    crowded: ExternalSort<F, M>,
    /// Number of bytes of memory that each sort and each set of ranks may use.
    memory: usize,
}

impl<F: TempFiles, const M: usize> Star<F, M> {
    /// Creates a clustering without pairs. It uses up to four times `memory` bytes: for the pairs,
    /// the entries of crowded nodes, the set of represented ranks, and the result.
    pub fn new(memory: usize) -> Self {
        Star {
            pairs: ExternalSort::new(memory),
            crowded: ExternalSort::new(memory),
            memory,
        }
    }

    /// Adds a pair of near nodes. `a` and `b` each have a node's number and its rank. Pairs may be
    /// added in any order and more than once. Pairs of two crowded nodes may be omitted.
    pub fn add_pair(&mut self, files: &mut F, a: (u32, u32), b: (u32, u32)) {
        let (low, high) = if a.1 < b.1 { (a, b) } else { (b, a) };
        if low.1 != high.1 {
            let key = [join(high.1, low.1), u64::from(high.0)];
            self.pairs.push(files, key, Tid::MIN);
        }
    }

    /// Adds an entry of a crowded node with the rank `rank`. The first word of the entry's key must
    /// be the number of the node. The function adds the rank to this word, as [`Centers`] requires.
    pub fn add_crowded(&mut self, files: &mut F, rank: u32, entry: Entry<M>) {
        let mut key = entry.key;
        key[0] = join(rank, key[0] as u32);
        self.crowded.push(files, key, Tid::from_packed(entry.tid));
    }

    /// Returns the number of pairs plus the number of entries of crowded nodes.
    pub fn len(&self) -> u64 {
        self.pairs.len() + self.crowded.len()
    }

    /// Returns whether there are neither pairs nor entries of crowded nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Computes the clusters. `ranks` has the rank of each node at the index of the node's number.
    /// Replaces the rank of each node by the rank of its representative, unless the node represents
    /// itself. `centers` is an empty collection, to which the function adds the representatives
    /// among crowded nodes (nodes with too many pairs to list). Calls `done` once for each pair and
    /// for each record of a crowded node, to report progress.
    ///
    /// Nodes are visited in the order of ranks, so their numbers are in random order. To avoid
    /// random access to `ranks`, a set with a bit for each rank records which nodes have a
    /// representative, and `ranks` is written at the end in the order of numbers.
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
                // The pairs of a node are in ascending order of the lower rank, so the first match
                // is the lowest.
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

/// Set of the ranks of nodes that have a representative, with a bit for each rank.
struct RankSet<F: TempFiles> {
    words: Paged<F>,
}

impl<F: TempFiles> RankSet<F> {
    fn new(files: &mut F, memory: usize) -> Self {
        RankSet {
            words: Paged::new(files, 0, memory, |_| 0),
        }
    }

    /// Returns the index of the word that has the bit of a rank, and the mask of that bit.
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

/// Clusters as connected components: two nodes are in one component if a chain of pairs connects
/// them. The components are stored as a union-find forest. The node with the lowest rank represents
/// a component.
pub struct Components<F: TempFiles> {
    /// Parent of each node, at the index of its number.
    parents: Paged<F>,
    /// Number of nodes.
    nodes: u32,
}

impl<F: TempFiles> Components<F> {
    /// Creates a forest of `nodes` unconnected nodes, which takes `memory` bytes of memory.
    pub fn new(files: &mut F, nodes: u32, memory: usize) -> Self {
        Components {
            parents: Paged::new(files, nodes as usize, memory, |node| node),
            nodes,
        }
    }

    /// Returns the root of a node's component, which is the component's node with the lowest
    /// number.
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

    /// Joins the components of the nodes `a` and `b`.
    pub fn connect(&mut self, files: &mut F, a: u32, b: u32) {
        let (a, b) = (self.root(files, a), self.root(files, b));
        self.join(files, a, b);
    }

    /// Joins the components with the roots `a` and `b`. Returns the root of the joined component.
    pub fn join(&mut self, files: &mut F, a: u32, b: u32) -> u32 {
        if a != b {
            self.parents.set(files, a.max(b), a.min(b));
        }
        a.min(b)
    }

    /// Replaces the rank of each node by the lowest rank in the node's component. `ranks` has the
    /// rank of each node at the index of the node's number.
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
