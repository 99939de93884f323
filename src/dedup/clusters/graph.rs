//! Graph from which clusters are made. Its nodes are distinct fingerprints or signatures with their
//! rows, and its pairs are nodes that are near each other. The rows with equal values in the scope
//! columns of the index form a scope. A pair is always within one scope.
//!
//! Each list uses its share of memory, and temporary files beyond it.
use neardup_blocktree::clusters::{join, split};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::sort::ExternalSort;

use crate::dedup::limits::too_many;
use neardup_pg::storage::temp::TempSpace;

/// Nodes, pairs of near nodes, and the rows of each node. A node is a fingerprint in one scope, or
/// rows with equal signatures. `M` is one more than the number of words that identify a node. `D`
/// is the number of words of a key in `crowded`.
pub struct Graph<const M: usize, const D: usize> {
    /// Number of nodes.
    pub nodes: u32,
    /// Rows of the nodes. The key is the address at which the snapshot sees the row, then the words
    /// that identify the node. The value is the number of the node.
    pub members: ExternalSort<TempSpace, M>,
    /// Two entries for each pair of near nodes, one for each node. The first word of the key is the
    /// number of the pair. The second word has the numbers of the scope and of the node. If a pair
    /// of fingerprints is in several scopes, it has two entries for each scope.
    pub ends: ExternalSort<TempSpace, 2>,
    /// Entries of crowded nodes, which have so many pairs that `ends` lacks some of them. The first
    /// word of a key is the number of the node. A crowded fingerprint has one entry: its key
    /// continues with the fingerprint, and its value is the number of the scope. A signature has an
    /// entry for each bucket (rows with equal leading key bits) in which it is crowded: its key
    /// continues with the bucket and the sketch (summary of the signature in the index), and its
    /// value is the index entry.
    pub crowded: ExternalSort<TempSpace, D>,
    /// Number of pairs in the graphs that were appended to this graph. It is also the number of the
    /// first pair of the next appended graph.
    pairs: u64,
    /// For the graph of a search for a forest (a small set of pairs that connects the same nodes as
    /// all pairs): the reason why its pairs may not be a forest. Ignored for other graphs.
    pub gap: Gap,
}

/// Reason why the pairs of a search with
/// [`Thinning::Forest`](neardup_blocktree::pairs::Thinning::Forest) may not connect all nodes that
/// the full set of pairs connects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// No reason: the pairs connect all nodes that the full set of pairs connects.
    None,
    /// A fingerprint in a pair has no visible row. It is not a node, so it connects no other nodes.
    Invisible,
    /// Several scopes have the same hash. The forest may connect two nodes of one scope through a
    /// fingerprint of another scope, which is not a valid connection.
    Scopes,
}

impl<const M: usize, const D: usize> Graph<M, D> {
    /// Creates an empty graph with `memory` bytes for each list.
    pub fn new(memory: usize) -> Self {
        Graph {
            nodes: 0,
            members: ExternalSort::new(memory),
            ends: ExternalSort::new(memory),
            crowded: ExternalSort::new(memory),
            pairs: 0,
            gap: Gap::None,
        }
    }

    /// Adds a node and returns its number.
    pub fn add_node(&mut self) -> u32 {
        // `u32::MAX` means "no node".
        if self.nodes == u32::MAX - 1 {
            too_many();
        }
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds the nodes, rows and pairs of another graph under new numbers. Neither graph may have
    /// crowded nodes, and no node of one graph may be near a node of the other.
    pub fn append(&mut self, files: &mut TempSpace, mut other: Self) {
        let (nodes, mut pairs) = (self.nodes, 0);
        if u64::from(nodes) + u64::from(other.nodes) >= u64::from(u32::MAX) {
            too_many();
        }
        self.nodes += other.nodes;
        self.gap = self.gap.max(other.gap);
        other.members.as_added(files, |files, member| {
            let node = number(member.tid as u32 + nodes);
            self.members.push(files, member.key, node);
        });
        other.ends.as_added(files, |files, end| {
            let [pair, rest] = end.key;
            let (scope, node) = split(rest);
            let key = [self.pairs + pair, join(scope, node + nodes)];
            self.ends.push(files, key, Tid::from_packed(end.tid));
            pairs = pairs.max(pair + 1);
        });
        self.pairs += pairs;
    }

    /// Adds a row to a node. `row` is the address at which the snapshot sees the row, `identity`
    /// has the words that identify the node, and `node` is the node's number.
    pub fn add_member<const N: usize>(
        &mut self,
        files: &mut TempSpace,
        row: Tid,
        identity: &Key<N>,
        node: u32,
    ) {
        self.members
            .push(files, in_front(row.packed(), identity), number(node));
    }
}

/// Returns a key with `word` prepended.
pub fn in_front<const N: usize, const M: usize>(word: u64, key: &Key<N>) -> Key<M> {
    const { assert!(M == N + 1) };
    let mut joined = [0; M];
    joined[0] = word;
    joined[1..].copy_from_slice(key);
    joined
}

/// Encodes a number as a row address, for sorted lists that store a row address with each key.
pub fn number(number: u32) -> Tid {
    Tid::from_packed(u64::from(number))
}
