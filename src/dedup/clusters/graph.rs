//! Graph of the fingerprints or signatures that have near-duplicates, and their rows.
//!
//! Each list takes its share of memory. The rest is in temporary files.
use neardup_blocktree::clusters::{join, split};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::sort::ExternalSort;

use crate::dedup::limits::too_many;
use neardup_pg::storage::temp::TempSpace;

/// Nodes, pairs of near nodes, and the rows of each node. A node is a fingerprint in one scope, or
/// rows with equal signatures. `M` is one more than the number of words that identify a node. `D`
/// is the number of words of an entry of a crowded node.
pub struct Graph<const M: usize, const D: usize> {
    /// Number of nodes.
    pub nodes: u32,
    /// Rows of nodes: the address at which the snapshot sees the row, then the words that identify
    /// the node. Behind them the number of the node.
    pub members: ExternalSort<TempSpace, M>,
    /// Two entries for each pair: the number of the pair, then the number of the scope and the
    /// node. A pair that is in several scopes has two entries in each.
    pub ends: ExternalSort<TempSpace, 2>,
    /// Entries of crowded nodes, which are near so many others that not all of their pairs are
    /// known. A crowded fingerprint has one: the node, then the fingerprint, and behind them the
    /// number of the scope. A signature has one for each crowded bucket: the node, the bucket and
    /// the sketch, and behind them the entry in the index.
    pub crowded: ExternalSort<TempSpace, D>,
    /// Number of pairs of the graphs that were appended to this one.
    pairs: u64,
    /// Reason why a skipped pair may connect what no other pairs connect.
    pub gap: Gap,
}

/// Reason why the pairs of [`Thinning::Forest`](neardup_blocktree::pairs::Thinning::Forest) may not
/// connect everything that is connected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// No reason: the pairs connect everything.
    None,
    /// A fingerprint in a pair has no visible row, so it is not a node.
    Invisible,
    /// A fingerprint in a pair is in one of several scopes with the same hash.
    Scopes,
}

impl<const M: usize, const D: usize> Graph<M, D> {
    /// An empty graph, with `memory` bytes for each list.
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
        // The last number means no node.
        if self.nodes == u32::MAX - 1 {
            too_many();
        }
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds another graph. No node of it is near a node of this graph, and both are without crowded
    /// nodes.
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

/// Returns a key with a word in front.
pub fn in_front<const N: usize, const M: usize>(word: u64, key: &Key<N>) -> Key<M> {
    const { assert!(M == N + 1) };
    let mut joined = [0; M];
    joined[0] = word;
    joined[1..].copy_from_slice(key);
    joined
}

/// Returns a number as a row, for lists that have a row behind each key.
pub fn number(number: u32) -> Tid {
    Tid::from_packed(u64::from(number))
}
