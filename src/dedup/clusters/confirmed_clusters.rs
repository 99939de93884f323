//! Clusters of rows whose texts or times are compared, for the arguments `confirm` and `row_time`
//! of `neardup_clusters`. Another metric finds candidates: nodes of rows with equal fingerprints or
//! signatures (candidate nodes), and pairs of such nodes. Each candidate node is divided into new
//! nodes. The rows of a new node have the same time, and texts with the same features.
//!
//! Equal rows are thus compared only once. A pair of new nodes remains if the similarity of their
//! texts reaches the bound and their times are near each other. Crowded nodes have too many pairs
//! to list. The method `star` compares their texts and times when necessary.
use neardup_blocktree::clusters::{join, split};
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::{Entry, ExternalSort};
use neardup_sketch::hash::feature_hash128;

use super::ClusterArguments;
use super::clustering::{Accept, ClusterMetric};
use super::graph::{Graph, number};
use super::methods::{Links, Method};
use crate::dedup::compared::Compared;
use crate::dedup::confirm::{Confirmation, FeatureSets};
use crate::dedup::limits::{share, too_many};
use crate::dedup::progress::Progress;
use crate::dedup::row_times::{RowTimes, Spans};
use crate::dedup::time_sweep::{Sweep, for_each_link};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::time_span::Span;

/// Metric that compares the texts and times of the candidates that the metric `I` finds. `N` and
/// `M` are the parameters of `I` as a [`ClusterMetric`].
pub struct ConfirmedClusters<'a, I, const N: usize, const M: usize> {
    candidates: I,
    relations: &'a LockedIndex,
    arguments: &'a ClusterArguments,
    rule: NodeRule<'a>,
}

/// Conditions on the texts and times of two new nodes that are near each other by the index, and
/// the texts' features and the times of all new nodes.
struct NodeRule<'a> {
    /// Condition on the texts. `None` if texts are not compared.
    confirmation: Option<&'a Confirmation>,
    /// Features of each new node's text.
    sets: FeatureSets,
    /// Time of each new node. `None` if times are not compared.
    spans: Option<Spans>,
}

impl NodeRule<'_> {
    /// Returns whether the texts and the times of two new nodes are near each other.
    fn accepts(&mut self, files: &mut TempSpace, nodes: [u32; 2]) -> bool {
        if let Some(spans) = &mut self.spans {
            let [a, b] = nodes.map(|node| spans.get(files, node));
            if !a.overlaps(b) {
                return false;
            }
        }
        self.confirmation.is_none_or(|confirmation| {
            let similarity = confirmation.similarity;
            self.sets.similarity(files, nodes, similarity).is_some()
        })
    }
}

impl<'a, I, const N: usize, const M: usize> ConfirmedClusters<'a, I, N, M> {
    pub fn new(candidates: I, relations: &'a LockedIndex, arguments: &'a ClusterArguments) -> Self {
        ConfirmedClusters {
            candidates,
            relations,
            arguments,
            rule: NodeRule {
                confirmation: arguments.conditions.confirmation.as_ref(),
                sets: FeatureSets::new(),
                spans: None,
            },
        }
    }
}

/// A new node is identified by the words that identify its candidate node, and one more word: the
/// number of the new node. So `P` is `N + 1`, and `Q` is `M + 1`. The features of the new node's
/// text have the same number in [`FeatureSets`], and its time has the same number in [`Spans`].
impl<I, const N: usize, const M: usize, const D: usize, const P: usize, const Q: usize>
    ClusterMetric<P, Q, D> for ConfirmedClusters<'_, I, N, M>
where
    I: ClusterMetric<N, M, D>,
{
    fn graph(&mut self, files: &mut TempSpace, method: Method) -> Graph<Q, D> {
        const { assert!(P == N + 1 && Q == M + 1) };
        let mut found = self.candidates.graph(files, method);
        let (mut rows, new_nodes) = self.split_nodes(files, &mut found.members, found.nodes);
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
        self.confirm(files, found, new_nodes, &mut graph, method);
        graph
    }

    fn star(
        &mut self,
        files: &mut TempSpace,
        links: Links<D>,
        ranks: &mut Paged<TempSpace>,
        _: Accept,
    ) {
        let (rule, mut own_files) = (&mut self.rule, *files);
        let mut accept = |a, b| rule.accepts(&mut own_files, [a, b]);
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
        let similarity = match self.rule.confirmation {
            None => None,
            Some(_) if a == b => Some(1.0),
            Some(_) => self.rule.sets.similarity(&mut TempSpace, [a, b], 0.0),
        };
        Compared {
            differing,
            similarity,
        }
    }
}

/// List of rows with the features of their texts. The key has four words: the row's address, two
/// words with the hash of the features, and the offset of the features in [`FeatureSets`]. Rows
/// with the same features have the same hash. A row without features has a hash that no other row
/// has, because it is not near any other row.
type Texts = ExternalSort<TempSpace, 4>;

/// Returns a 128-bit hash of `words`, as two words. `bytes` is a buffer.
fn hash(words: &[u64], bytes: &mut Vec<u8>) -> [u64; 2] {
    bytes.clear();
    (words.iter()).for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
    let hash = feature_hash128(bytes);
    [(hash >> 64) as u64, hash as u64]
}

/// Returns two words in place of a hash, for a row that is not near any other row. They have the
/// row's address, so no two rows have the same words.
fn own_hash(row: Tid) -> [u64; 2] {
    [row.packed(), u64::MAX]
}

/// Numbers of the new nodes of each candidate node. They are consecutive, so `first` holds only the
/// first of them, indexed by the number of the candidate node.
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
    /// ([`Graph::members`]). Appends the features of each text to the feature sets of `self.rule`.
    /// Returns an entry for each row, with the hash of the text's features and the offset of these
    /// features in the feature sets.
    fn read_texts(
        &mut self,
        files: &mut TempSpace,
        members: &mut ExternalSort<TempSpace, M>,
        confirmation: &Confirmation,
    ) -> Texts {
        let mut texts = Texts::new(share() / 2);
        let count = members.len();
        let mut rows = members.sorted(files, None);
        let mut row_files = *files;
        let mut next = || {
            let member = rows.next(&mut row_files)?;
            Some(Tid::from_packed(member.key[0]))
        };
        let (sets, mut bytes) = (&mut self.rule.sets, Vec::new());
        confirmation.for_each_text(self.relations, count, &mut next, |row, features| {
            let [high, low] = match features {
                // A text without features is not a near-duplicate of any other, so its row gets a
                // hash of its own.
                [] => own_hash(row),
                _ => hash(features, &mut bytes),
            };
            let offset = sets.push(files, features);
            texts.push(files, [row.packed(), high, low, offset], Tid::MIN);
        });
        texts
    }

    /// Divides each of the `nodes` candidate nodes into new nodes: rows with the same time whose
    /// texts have the same features. The new nodes of a candidate node are in the order of the low
    /// ends of their times. `members` has the rows of the candidate nodes. Returns an entry for
    /// each row, and the numbers of each candidate node's new nodes. The key of an entry is the
    /// row's address, and the value is the number of its new node.
    fn split_nodes(
        &mut self,
        files: &mut TempSpace,
        members: &mut ExternalSort<TempSpace, M>,
        nodes: u32,
    ) -> (ExternalSort<TempSpace, 1>, NewNodes) {
        let confirmation = self.rule.confirmation;
        let mut texts = confirmation.map(|texts| self.read_texts(files, members, texts));
        let mut texts = texts.as_mut().map(|texts| texts.sorted(files, None));
        let arguments = self.arguments;
        let mut times = arguments.conditions.window.as_ref().map(|window| {
            let table = self.relations.table();
            RowTimes::read(files, table, window, arguments.filter.as_ref())
        });
        // Entry for each row. The key has the number of the candidate node, two words with the low
        // end of the row's time, two words with the hash, and the row's address. The value is the
        // offset of the text's features in the rule's sets.
        let mut by_node = ExternalSort::<TempSpace, 6>::new(share() / 2);
        let none = self.rule.sets.push(files, &[]);
        let (mut text, mut bytes) = (None::<Entry<4>>, Vec::new());
        members.in_order(files, None, |files, member| {
            let row = Tid::from_packed(member.key[0]);
            let ([mut high, mut low], mut offset) = ([0; 2], none);
            if let Some(texts) = &mut texts {
                while text.is_none_or(|text| text.key[0] < row.packed()) {
                    text = texts.next(files);
                    if text.is_none() {
                        break;
                    }
                }
                match text.filter(|text| text.key[0] == row.packed()) {
                    Some(text) => [_, high, low, offset] = text.key,
                    None => [high, low] = own_hash(row),
                }
            }
            let mut start = [0; 2];
            if let Some(times) = &mut times {
                let span = times.get(files, row);
                let [a, b, c, d] = span.unwrap_or(Span::NOWHERE).to_words();
                start = [a, b];
                [high, low] = match span {
                    Some(_) => hash(&[high, low, c, d], &mut bytes),
                    None => own_hash(row),
                };
            }
            let [a, b] = start;
            let key = [member.tid, a, b, high, low, row.packed()];
            by_node.push(files, key, Tid::from_packed(offset));
        });
        drop(texts);
        let mut rows = ExternalSort::<TempSpace, 1>::new(share() / 2);
        let first = Paged::new(files, nodes as usize + 1, share() / 8, |_| 0);
        let mut new_nodes = NewNodes { first, count: 0 };
        let mut last: Option<[u64; 5]> = None;
        let mut next_node = 0;
        let rule = &mut self.rule;
        rule.spans = times.as_ref().map(|_| Spans::new(files, share()));
        by_node.in_order(files, None, |files, entry| {
            let [node, a, b, high, low, row] = entry.key;
            let new = [node, a, b, high, low];
            if last.replace(new) != Some(new) {
                while next_node <= node {
                    new_nodes
                        .first
                        .set(files, next_node as u32, new_nodes.count);
                    next_node += 1;
                }
                if new_nodes.count == u32::MAX - 1 {
                    too_many();
                }
                rule.sets.set_number(files, new_nodes.count, entry.tid);
                if let (Some(spans), Some(times)) = (&mut rule.spans, &mut times) {
                    let span = times.get(files, Tid::from_packed(row));
                    spans.push(files, span.unwrap_or(Span::NOWHERE));
                }
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

    /// Adds pairs of new nodes to `graph` if their texts are similar and their times are near each
    /// other. `found` is the graph of the candidate nodes, and `new_nodes` has the new nodes of
    /// each candidate node. A node is crowded if it has too many pairs to list. The new nodes of
    /// a crowded candidate node become crowded nodes of `graph`. The method `star` compares them
    /// later.
    fn confirm<const Q: usize, const D: usize>(
        &mut self,
        files: &mut TempSpace,
        mut found: Graph<M, D>,
        mut new_nodes: NewNodes,
        graph: &mut Graph<Q, D>,
        method: Method,
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
        // If only times are compared, the method `connected` does not need all pairs: a chain of
        // pairs connects the same nodes.
        let is_chain = method == Method::Connected && self.rule.confirmation.is_none();
        let spans = &mut self.rule.spans;
        let mut add = |files: &mut TempSpace, nodes: [core::ops::Range<u32>; 2]| {
            let mut push = |files: &mut TempSpace, a: u32, b: u32| {
                pairs.push(files, [join(a.min(b), a.max(b))], Tid::MIN);
            };
            match spans {
                Some(spans) if is_chain => for_each_link(files, nodes, spans, &mut push),
                Some(spans) => {
                    let mut sweep = Sweep::new(nodes);
                    while let Some([a, b]) = sweep.next(files, spans) {
                        push(files, a, b);
                    }
                }
                None => all_pairs(files, nodes, &mut push),
            }
        };
        // The new nodes of one candidate node are near each other by the index, so their texts and
        // times are compared. The method `star` compares the new nodes of crowded candidate nodes
        // later.
        for node in 0..found.nodes {
            let new = new_nodes.of(files, node);
            if new.len() > 1 && is_crowded.get(files, node) == 0 {
                add(files, [new.clone(), new]);
            }
        }
        let has_times = self.arguments.conditions.window.is_some();
        let mut open: Option<([u64; 2], u32)> = None;
        found.ends.in_order(files, None, |files, end| {
            let [pair, rest] = end.key;
            let (scope, node) = split(rest);
            let pair = [pair, u64::from(scope)];
            let Some((_, other)) = open.take().filter(|(open, _)| *open == pair) else {
                open = Some((pair, node));
                return;
            };
            // Pairs of two crowded nodes may be omitted, because the method `star` compares crowded
            // nodes later. With times, the pairs of their new nodes may be very many.
            let is_omitted = has_times
                && [node, other]
                    .iter()
                    .all(|&node| is_crowded.get(files, node) == 1);
            if !is_omitted {
                let nodes = [node, other].map(|node| new_nodes.of(files, node));
                add(files, nodes);
            }
        });
        drop(found);
        let mut progress = Progress::new("comparing near rows", "pairs", pairs.len() as f64);
        let rule = &mut self.rule;
        let (mut last, mut count) = (None, 0);
        pairs.in_order(files, None, |files, pair| {
            progress.advance(1);
            if last.replace(pair.key) == Some(pair.key) {
                return;
            }
            let (a, b) = split(pair.key[0]);
            if rule.accepts(files, [a, b]) {
                for node in [a, b] {
                    graph.ends.push(files, [count, join(0, node)], Tid::MIN);
                }
                count += 1;
            }
        });
        progress.finish();
    }
}

/// Passes pairs of two nodes to `push`: each node in the range `first` with each node in the range
/// `second`. If both ranges are the same, passes each pair of two different nodes in it once.
fn all_pairs(
    files: &mut TempSpace,
    [first, second]: [core::ops::Range<u32>; 2],
    push: &mut impl FnMut(&mut TempSpace, u32, u32),
) {
    let is_one = first == second;
    for a in first {
        pgrx::check_for_interrupts!();
        let others = if is_one {
            a + 1..second.end
        } else {
            second.clone()
        };
        others.for_each(|b| push(files, a, b));
    }
}
