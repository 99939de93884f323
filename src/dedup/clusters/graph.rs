//! The fingerprints, or signatures, and rows of a table that have near-duplicates, numbered.
//!
//! No list here is kept in memory beyond its share: they are sorted, in temporary files if they are
//! long.
use neardup_blocktree::clusters::{join, split};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::sort::ExternalSort;

use crate::dedup::limits::too_many;
use crate::storage::temp::TempSpace;

/// Nodes, what is near what, and the rows of each node. A node is a fingerprint in one scope, or
/// rows with equal signatures. `M` is one more than the words of what is known of a row, `D` than
/// those of what is known of a dense node.
pub struct Graph<const M: usize, const D: usize> {
    /// Number of nodes.
    pub nodes: u32,
    /// Their rows: the address, as the snapshot sees it, then what is known of the row; behind it
    /// the node.
    pub members: ExternalSort<TempSpace, M>,
    /// Pairs, two entries each: the pair's number, then the scope's number and the node. Of a pair
    /// that is in several scopes the two of each scope follow each other.
    pub ends: ExternalSort<TempSpace, 2>,
    /// Nodes near so many others that not all of those pairs are known. Of fingerprints: the node,
    /// then the fingerprint; behind it the scope's number. Of signatures, an entry for each crowded
    /// bucket: the node, the bucket and the sketch; behind them the entry in the index.
    pub dense: ExternalSort<TempSpace, D>,
    /// Number of pairs of the graphs that were appended to this one.
    pairs: u64,
    /// Reason why pairs may have been left out that no others connect.
    pub gap: Gap,
}

/// Why the pairs that [`Thinning::Forest`] leaves do not connect all that is connected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// No reason: the pairs connect all that is connected.
    None,
    /// A fingerprint in a pair has no row that the snapshot sees, and is no node.
    Unseen,
    /// A fingerprint in a pair is of one of several scopes with the same hash.
    Scopes,
}

impl<const M: usize, const D: usize> Graph<M, D> {
    /// An empty graph, with `memory` bytes for each list.
    pub fn new(memory: usize) -> Self {
        Graph {
            nodes: 0,
            members: ExternalSort::new(memory),
            ends: ExternalSort::new(memory),
            dense: ExternalSort::new(memory),
            pairs: 0,
            gap: Gap::None,
        }
    }

    /// A new node.
    pub fn node(&mut self) -> u32 {
        // The last number stands for none.
        if self.nodes == u32::MAX - 1 {
            too_many();
        }
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds the nodes of another graph, none of which is near one of these. Neither has dense ones.
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

    /// Adds a row of a node.
    pub fn member<const N: usize>(
        &mut self,
        files: &mut TempSpace,
        row: Tid,
        known: &Key<N>,
        node: u32,
    ) {
        self.members
            .push(files, in_front(row.packed(), known), number(node));
    }
}

/// A key with a word in front.
pub fn in_front<const N: usize, const M: usize>(word: u64, key: &Key<N>) -> Key<M> {
    const { assert!(M == N + 1) };
    let mut joined = [0; M];
    joined[0] = word;
    joined[1..].copy_from_slice(key);
    joined
}

/// A number where a list has a row.
pub fn number(number: u32) -> Tid {
    Tid::from_packed(u64::from(number))
}
