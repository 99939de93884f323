//! Clusters of rows whose texts are compared, for the argument `confirm` of `neardup_clusters`.
//! Another metric finds candidates: nodes of rows with equal fingerprints or signatures (candidate
//! nodes), and pairs of such nodes. Each candidate node is divided into new nodes. The rows of a
//! new node have texts with the same features.
//!
//! Equal texts are thus compared only once. A pair of new nodes remains if the similarity of their
//! texts reaches the bound. Crowded nodes have too many pairs to list. The method `star` compares
//! their texts when necessary.
use neardup_blocktree::clusters::{join, split};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::ExternalSort;
use neardup_sketch::hash::feature_hash128;

use super::clustering::{Accept, ClusterMetric};
use super::graph::{Graph, number};
use super::methods::{Links, Method};
use crate::dedup::compared::Compared;
use crate::dedup::confirm::{Confirmation, FeatureSets};
use crate::dedup::limits::{share, too_many};
use crate::dedup::progress::Progress;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::temp::TempSpace;

/// Metric that compares the texts of the candidates that the metric `I` finds. `N` and `M` are the
/// parameters of `I` as a [`ClusterMetric`].
pub struct ConfirmedClusters<'a, I, const N: usize, const M: usize> {
    candidates: I,
    relations: &'a LockedIndex,
    confirmation: &'a Confirmation,
    sets: FeatureSets,
}

impl<'a, I, const N: usize, const M: usize> ConfirmedClusters<'a, I, N, M> {
    pub fn new(candidates: I, relations: &'a LockedIndex, confirmation: &'a Confirmation) -> Self {
        ConfirmedClusters {
            candidates,
            relations,
            confirmation,
            sets: FeatureSets::new(),
        }
    }
}

/// A new node is identified by the words that identify its candidate node, and one more word: the
/// number of the new node. The features of its text have the same number in [`FeatureSets`].
impl<I, const N: usize, const M: usize, const D: usize, const P: usize, const Q: usize>
    ClusterMetric<P, Q, D> for ConfirmedClusters<'_, I, N, M>
where
    I: ClusterMetric<N, M, D>,
{
    fn graph(&mut self, files: &mut TempSpace, method: Method) -> Graph<Q, D> {
        const { assert!(P == N + 1 && Q == M + 1) };
        let mut found = self.candidates.graph(files, method);
        let texts = self.read_texts(files, &mut found.members);
        let (mut rows, new_nodes) = self.split_nodes(files, &mut found.members, texts, found.nodes);
        let mut graph = Graph::new(share());
        graph.nodes = new_nodes.count;
        let mut numbers = rows.sorted(files, None);
        found.members.in_order(files, None, |files, member| {
            // `numbers` has one entry for each member, in the same order.
            let text = numbers.next(files).map_or(0, |row| row.tid);
            let mut key = [0; Q];
            key[..M].copy_from_slice(&member.key);
            key[M] = text;
            graph.members.push(files, key, Tid::from_packed(text));
        });
        drop((numbers, rows));
        self.confirm(files, found, new_nodes, &mut graph);
        graph
    }

    fn star(
        &mut self,
        files: &mut TempSpace,
        links: Links<D>,
        ranks: &mut Paged<TempSpace>,
        _: Accept,
    ) {
        let (sets, similarity) = (&mut self.sets, self.confirmation.similarity);
        let mut own_files = *files;
        let mut accept = |a, b| {
            sets.similarity(&mut own_files, [a, b], similarity)
                .is_some()
        };
        self.candidates.star(files, links, ranks, &mut accept);
    }

    fn connected(&mut self, files: &mut TempSpace, links: Links<D>, ranks: &mut Paged<TempSpace>) {
        self.candidates.connected(files, links, ranks);
    }

    fn compare(&mut self, member: &Key<P>, representative: &Key<P>) -> Compared {
        let candidate = |key: &Key<P>| {
            let mut identity = [0; N];
            identity.copy_from_slice(&key[..N]);
            identity
        };
        let differing = (self.candidates)
            .compare(&candidate(member), &candidate(representative))
            .differing;
        let [a, b] = [representative, member].map(|key| key[N] as u32);
        let similarity = match a == b {
            true => Some(1.0),
            false => self.sets.similarity(&mut TempSpace, [a, b], 0.0),
        };
        Compared {
            differing,
            similarity,
        }
    }
}

/// List of rows with the features of their texts. The key has four words: the row's address, two
/// words with the hash of the features, and the offset of the features in [`FeatureSets`]. Rows
/// with the same features have the same hash, but a row without features has a hash of its own.
type Texts = ExternalSort<TempSpace, 4>;

/// For each candidate node, the numbers of its new nodes. They are consecutive, so only the first
/// of them is stored.
struct NewNodes {
    first: Paged<TempSpace>,
    /// Total number of new nodes.
    count: u32,
}

impl NewNodes {
    /// Returns the numbers of the new nodes of a candidate node.
    fn of(&mut self, files: &mut TempSpace, node: u32) -> core::ops::Range<u32> {
        self.first.get(files, node)..self.first.get(files, node + 1)
    }
}

impl<I, const N: usize, const M: usize> ConfirmedClusters<'_, I, N, M> {
    /// Reads the text of each row in `members`, which has the rows of the candidate nodes
    /// ([`Graph::members`]). Appends the features of each text to `self.sets`. Returns an entry for
    /// each row, with the hash of its text's features and their offset in `self.sets`.
    fn read_texts(
        &mut self,
        files: &mut TempSpace,
        members: &mut ExternalSort<TempSpace, M>,
    ) -> Texts {
        let mut texts = Texts::new(share() / 2);
        let count = members.len();
        let mut rows = members.sorted(files, None);
        let mut row_files = *files;
        let mut next = || {
            let member = rows.next(&mut row_files)?;
            Some(Tid::from_packed(member.key[0]))
        };
        let (sets, mut bytes) = (&mut self.sets, Vec::new());
        let (relations, confirmation) = (self.relations, self.confirmation);
        confirmation.for_each_text(relations, count, &mut next, |row, features| {
            bytes.clear();
            features
                .iter()
                .for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
            let hash = feature_hash128(&bytes);
            let (high, low) = match features {
                // A text without features is not a near-duplicate of any other, so its row gets a
                // hash of its own.
                [] => (row.packed(), u64::MAX),
                _ => ((hash >> 64) as u64, hash as u64),
            };
            let offset = sets.push(files, features);
            texts.push(files, [row.packed(), high, low, offset], Tid::MIN);
        });
        texts
    }

    /// Divides each of the `nodes` candidate nodes into new nodes: rows whose texts have the same
    /// features. `members` has the rows of the candidate nodes, and `texts` has the features of the
    /// rows. Returns an entry for each row, and the new nodes of each candidate node. The key of an
    /// entry is the row's address, and the value is the number of its new node.
    fn split_nodes(
        &mut self,
        files: &mut TempSpace,
        members: &mut ExternalSort<TempSpace, M>,
        mut texts: Texts,
        nodes: u32,
    ) -> (ExternalSort<TempSpace, 1>, NewNodes) {
        // Entry for each row. The key is the candidate node, two words with the hash of the
        // features, and the row's address. The value is the offset of the features.
        let mut by_node = ExternalSort::<TempSpace, 4>::new(share() / 2);
        let mut found = texts.sorted(files, None);
        let mut text = found.next(files);
        let none = self.sets.push(files, &[]);
        members.in_order(files, None, |files, member| {
            let row = member.key[0];
            while text.is_some_and(|text| text.key[0] < row) {
                text = found.next(files);
            }
            let known = text.filter(|text| text.key[0] == row).map(|text| text.key);
            let [_, high, low, offset] = known.unwrap_or([row, row, u64::MAX, none]);
            by_node.push(
                files,
                [member.tid, high, low, row],
                Tid::from_packed(offset),
            );
        });
        drop((found, texts));
        let mut rows = ExternalSort::<TempSpace, 1>::new(share() / 2);
        let first = Paged::new(files, nodes as usize + 1, share() / 8, |_| 0);
        let mut new_nodes = NewNodes { first, count: 0 };
        let mut last: Option<[u64; 3]> = None;
        let mut next_node = 0;
        let sets = &mut self.sets;
        by_node.in_order(files, None, |files, entry| {
            let [node, high, low, row] = entry.key;
            if last.replace([node, high, low]) != Some([node, high, low]) {
                while next_node <= node {
                    new_nodes
                        .first
                        .set(files, next_node as u32, new_nodes.count);
                    next_node += 1;
                }
                if new_nodes.count == u32::MAX - 1 {
                    too_many();
                }
                sets.set_number(files, new_nodes.count, entry.tid);
                new_nodes.count += 1;
            }
            rows.push(files, [row], number(new_nodes.count - 1));
        });
        while next_node <= u64::from(nodes) {
            new_nodes
                .first
                .set(files, next_node as u32, new_nodes.count);
            next_node += 1;
        }
        (rows, new_nodes)
    }

    /// Adds the pairs of new nodes with similar texts to `graph`. `found` is the graph of the
    /// candidate nodes. If a candidate node is crowded, its new nodes are also crowded in `graph`.
    fn confirm<const Q: usize, const D: usize>(
        &mut self,
        files: &mut TempSpace,
        mut found: Graph<M, D>,
        mut new_nodes: NewNodes,
        graph: &mut Graph<Q, D>,
    ) {
        let mut is_crowded = Paged::new(files, found.nodes as usize, share() / 8, |_| 0);
        found.crowded.as_added(files, |files, entry| {
            let node = entry.key[0] as u32;
            is_crowded.set(files, node, 1);
            for new in new_nodes.of(files, node) {
                let mut key = entry.key;
                key[0] = u64::from(new);
                graph.crowded.push(files, key, Tid::from_packed(entry.tid));
            }
        });
        let mut pairs = ExternalSort::<TempSpace, 1>::new(share() / 2);
        // The new nodes of one candidate node are near each other by the index, so their texts are
        // compared. The method `star` compares the new nodes of crowded candidate nodes later.
        for node in 0..found.nodes {
            let new = new_nodes.of(files, node);
            if new.len() > 1 && is_crowded.get(files, node) == 0 {
                for (a, b) in new
                    .clone()
                    .flat_map(|a| (a + 1..new.end).map(move |b| (a, b)))
                {
                    pairs.push(files, [join(a, b)], Tid::MIN);
                }
            }
        }
        pairs_of_ends(files, &mut found, &mut new_nodes, &mut pairs);
        drop(found);
        let mut progress = Progress::new("comparing texts", "pairs", pairs.len() as f64);
        let (sets, similarity) = (&mut self.sets, self.confirmation.similarity);
        let (mut last, mut count) = (None, 0);
        pairs.in_order(files, None, |files, pair| {
            progress.advance(1);
            if last.replace(pair.key) == Some(pair.key) {
                return;
            }
            let (a, b) = split(pair.key[0]);
            if sets.similarity(files, [a, b], similarity).is_some() {
                for node in [a, b] {
                    graph.ends.push(files, [count, join(0, node)], Tid::MIN);
                }
                count += 1;
            }
        });
        progress.finish();
    }
}

/// For each pair of candidate nodes in `found.ends`, adds to `pairs` each new node of one candidate
/// node with each new node of the other.
fn pairs_of_ends<const M: usize, const D: usize>(
    files: &mut TempSpace,
    found: &mut Graph<M, D>,
    new_nodes: &mut NewNodes,
    pairs: &mut ExternalSort<TempSpace, 1>,
) {
    let mut open: Option<([u64; 2], u32)> = None;
    found.ends.in_order(files, None, |files, end| {
        let [pair, rest] = end.key;
        let (scope, node) = split(rest);
        let pair = [pair, u64::from(scope)];
        let Some((_, other)) = open.take().filter(|(open, _)| *open == pair) else {
            open = Some((pair, node));
            return;
        };
        let [ours, others] = [node, other].map(|node| new_nodes.of(files, node));
        for (a, b) in ours.flat_map(|a| others.clone().map(move |b| (a, b))) {
            pairs.push(files, [join(a.min(b), a.max(b))], Tid::MIN);
        }
    });
}
