//! Makes the nodes of the graph of fingerprints. Merges the index entries, in key order, with the
//! pairs that the search has found.
//!
//! In key order, consecutive entries point to random pages of the table. Fetching each row
//! immediately would read another page each time. Entries therefore wait in memory until many rows
//! can be fetched in address order.
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::clusters::join;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::pairs::Thinning;
use neardup_blocktree::sort::Sorted;

use super::graph::{Gap, Graph, in_front, number};
use crate::am::index::Index;
use crate::dedup::limits::share;
use crate::dedup::scope::{ScopeColumns, ScopeNumbers};
use crate::dedup::tid_set::TidList;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::heap_fetch::HeapFetch;
use neardup_pg::storage::temp::TempSpace;

/// Reader of the ends of pairs, in the key order of the index's first permutation (ordered copy of
/// all keys). An end is one of the two fingerprints of a pair.
pub struct PairEnds<const N: usize> {
    sorted: Sorted<TempSpace, N>,
    /// Next end: the key of its fingerprint in the first permutation, and the number of the pair.
    /// `None` after the last end.
    next: Option<(Key<N>, u64)>,
    /// True if an end was skipped because the index has no entry for it. VACUUM has then removed
    /// the entry since the search.
    has_skipped: bool,
}

impl<const N: usize> PairEnds<N> {
    /// Creates a reader of ends that are sorted in the key order of the first permutation.
    pub fn new(sorted: Sorted<TempSpace, N>, files: &mut TempSpace) -> Self {
        let mut ends = PairEnds {
            sorted,
            next: None,
            has_skipped: false,
        };
        ends.advance(files);
        ends
    }

    fn advance(&mut self, files: &mut TempSpace) {
        self.next = self.sorted.next(files).map(|end| (end.key, end.tid));
    }

    /// Skips ends with lower keys than `key`. Returns whether a pair contains the fingerprint with
    /// this key.
    fn seek(&mut self, files: &mut TempSpace, key: &Key<N>) -> bool {
        while self.next.is_some_and(|(next, _)| next < *key) {
            self.has_skipped = true;
            self.advance(files);
        }
        self.next.is_some_and(|(next, _)| next == *key)
    }

    /// Returns the number of the next pair that contains the fingerprint with this key. `None`
    /// after the last such pair.
    fn next_pair(&mut self, files: &mut TempSpace, key: &Key<N>) -> Option<u64> {
        let (_, pair) = self.next.filter(|(next, _)| next == key)?;
        self.advance(files);
        Some(pair)
    }

    /// Returns whether an end had no entry in the index. Must be called after all entries are
    /// merged.
    fn has_unmatched(&self) -> bool {
        self.has_skipped || self.next.is_some()
    }
}

/// Event in the merge of index entries, in key order, with the sorted list of pairs.
#[derive(Clone, Copy)]
enum MergeEvent<const N: usize> {
    /// Start of the next distinct fingerprint.
    Fingerprint(Key<N>),
    /// Entry with the current fingerprint. Its heap row has not been fetched yet.
    Entry(Tid),
    /// Entry with a visible row, and the row's scope number.
    Visible(Tid, u32),
    /// Entry without a visible row.
    Invisible(Tid),
    /// Number of a pair that contains the current fingerprint. Pairs follow all entries of the
    /// fingerprint.
    Pair(u64),
}

/// Index entry whose heap row has not been fetched yet.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PendingFetch {
    entry: Tid,
    /// Position of the entry's event in the list of events.
    event: usize,
    /// First word of the key, which is the hash of the scope if the index has scopes.
    key_prefix: u64,
}

/// Builds graph nodes from merge events. Batches heap fetches and sorts them by address.
pub struct NodeBuilder<'a, const N: usize, const M: usize> {
    layout: &'a BlockLayout<N>,
    ends: PairEnds<N>,
    rows: RowLookup<'a>,
    nodes: GraphWriter<'a, N, M>,
    /// True if every fingerprint becomes a node, even without a pair.
    singletons: bool,
    /// Fingerprint of the last entry that was added.
    current: Option<Key<N>>,
    /// Key of the current fingerprint in the first permutation. `None` if no pair contains the
    /// fingerprint.
    paired_key: Option<Key<N>>,
    /// First entry of the current fingerprint, as long as it is the only one and no pair contains
    /// the fingerprint. It becomes an event only if a second entry follows, because a single row
    /// without a pair does not become a node.
    lone_entry: Option<Tid>,
    events: Vec<MergeEvent<N>>,
    pending: Vec<PendingFetch>,
    /// Maximum number of events in memory.
    max_events: usize,
}

impl<'a, const N: usize, const M: usize> NodeBuilder<'a, N, M> {
    pub fn new(
        layout: &'a BlockLayout<N>,
        ends: PairEnds<N>,
        rows: RowLookup<'a>,
        nodes: GraphWriter<'a, N, M>,
        singletons: bool,
    ) -> Self {
        // Uses the memory of two lists, because half of the lists of a clustering job do not exist
        // yet.
        let event_bytes = size_of::<MergeEvent<N>>() + size_of::<PendingFetch>();
        NodeBuilder {
            layout,
            ends,
            rows,
            nodes,
            singletons,
            current: None,
            paired_key: None,
            lone_entry: None,
            events: Vec::new(),
            pending: Vec::new(),
            max_events: 2 * share() / event_bytes,
        }
    }

    /// Adds the next index entry, and merges it with the pairs of its fingerprint. Entries must be
    /// added in the key order of the first permutation (ordered copy of all keys).
    pub fn add_entry(&mut self, files: &mut TempSpace, fingerprint: Key<N>, entry: Tid) {
        if self.current != Some(fingerprint) {
            self.add_pairs(files);
            let key = self.layout.permutations()[0].permute(&fingerprint);
            self.current = Some(fingerprint);
            self.paired_key = self.ends.seek(files, &key).then_some(key);
            self.lone_entry = None;
            if self.paired_key.is_none() && !self.singletons {
                self.lone_entry = Some(entry);
                return;
            }
            self.add_event(files, MergeEvent::Fingerprint(fingerprint));
        } else if let Some(first) = self.lone_entry.take() {
            self.add_event(files, MergeEvent::Fingerprint(fingerprint));
            self.add_event(files, MergeEvent::Entry(first));
        }
        self.add_event(files, MergeEvent::Entry(entry));
    }

    /// Adds the pairs of the current fingerprint, after its last entry.
    fn add_pairs(&mut self, files: &mut TempSpace) {
        if let Some(key) = self.paired_key.take() {
            while let Some(pair) = self.ends.next_pair(files, &key) {
                self.add_event(files, MergeEvent::Pair(pair));
            }
        }
    }

    fn add_event(&mut self, files: &mut TempSpace, event: MergeEvent<N>) {
        if self.events.len() >= self.max_events {
            self.flush(files);
        }
        self.events.push(event);
    }

    /// Fetches the rows of all entries among the events, and writes the events to the graph.
    fn flush(&mut self, files: &mut TempSpace) {
        // The first events may belong to a fingerprint that began before the previous flush.
        let mut key = self.nodes.fingerprint;
        for (event, one) in self.events.iter().enumerate() {
            match *one {
                MergeEvent::Fingerprint(next) => key = next,
                MergeEvent::Entry(entry) => self.pending.push(PendingFetch {
                    entry,
                    event,
                    key_prefix: key[0],
                }),
                _ => (),
            }
        }
        // With scopes, rows are fetched in the order of the scope hashes, because `RowLookup` keeps
        // the scope numbers of only one hash.
        if self.rows.scope.is_none() {
            self.pending.sort_unstable();
        }
        for fetch in self.pending.drain(..) {
            self.events[fetch.event] = match self.rows.find(fetch.key_prefix, fetch.entry) {
                Some((row, scope)) => MergeEvent::Visible(row, scope),
                None => MergeEvent::Invisible(fetch.entry),
            };
        }
        for event in self.events.drain(..) {
            self.nodes.write(files, event);
        }
    }

    /// Writes the remaining events and returns the graph. Must be called after the last entry.
    pub fn finish(mut self, files: &mut TempSpace) -> Graph<M, M> {
        self.add_pairs(files);
        self.flush(files);
        self.nodes.end_fingerprint(files);
        if self.ends.has_unmatched() {
            self.nodes.note(Gap::Invisible);
        }
        self.nodes.graph
    }
}

/// Writes merge events to a graph. A fingerprint has one node in each scope.
pub struct GraphWriter<'a, const N: usize, const M: usize> {
    graph: Graph<M, M>,
    thinning: Thinning,
    /// List to which entries without a visible row are added.
    invisible: &'a mut TidList,
    /// Fingerprint whose events are being written.
    fingerprint: Key<N>,
    /// For each scope in which the current fingerprint has a row: the number of the scope, and the
    /// number of the fingerprint's node in this scope.
    scope_nodes: Vec<(u32, u32)>,
    /// Number of pairs of the current fingerprint.
    degree: u32,
    /// Number of visible rows of the current fingerprint.
    rows: u32,
    /// Number of visible rows of a fingerprint above which its nodes become crowded nodes of the
    /// graph.
    max_rows: u32,
}

impl<'a, const N: usize, const M: usize> GraphWriter<'a, N, M> {
    /// Creates a writer with an empty graph. The writer adds entries without a visible row to
    /// `invisible`. If `thinning` is [`Thinning::Degree`], its value is a limit: fingerprints with
    /// more pairs, or with more than `max_rows` rows, also become crowded nodes of the graph.
    pub fn new(thinning: Thinning, max_rows: u32, invisible: &'a mut TidList) -> Self {
        GraphWriter {
            graph: Graph::new(share()),
            thinning,
            invisible,
            fingerprint: [0; N],
            scope_nodes: Vec::new(),
            degree: 0,
            rows: 0,
            max_rows,
        }
    }

    fn note(&mut self, gap: Gap) {
        self.graph.gap = self.graph.gap.max(gap);
    }

    fn write(&mut self, files: &mut TempSpace, event: MergeEvent<N>) {
        match event {
            MergeEvent::Fingerprint(fingerprint) => {
                self.end_fingerprint(files);
                self.fingerprint = fingerprint;
            }
            MergeEvent::Visible(row, scope) => self.add_row(files, row, scope),
            MergeEvent::Entry(entry) | MergeEvent::Invisible(entry) => {
                self.invisible.push(files, entry);
            }
            MergeEvent::Pair(pair) => {
                self.degree = self.degree.saturating_add(1);
                for &(scope, node) in &self.scope_nodes {
                    let end = [pair, join(scope, node)];
                    self.graph.ends.push(files, end, Tid::MIN);
                }
            }
        }
    }

    fn add_row(&mut self, files: &mut TempSpace, row: Tid, scope: u32) {
        self.rows = self.rows.saturating_add(1);
        let known = self.scope_nodes.iter().find(|(other, _)| *other == scope);
        let node = known.map(|(_, node)| *node).unwrap_or_else(|| {
            let node = self.graph.add_node();
            self.scope_nodes.push((scope, node));
            node
        });
        self.graph.add_member(files, row, &self.fingerprint, node);
    }

    fn end_fingerprint(&mut self, files: &mut TempSpace) {
        if self.degree > 0 {
            self.note(match self.scope_nodes[..] {
                [] => Gap::Invisible,
                [(0, _)] => Gap::None,
                _ => Gap::Scopes,
            });
        }
        if let Thinning::Degree(max_pairs) = self.thinning
            && (self.degree > max_pairs || self.rows > self.max_rows)
        {
            for &(scope, node) in &self.scope_nodes {
                let crowded = in_front(u64::from(node), &self.fingerprint);
                self.graph.crowded.push(files, crowded, number(scope));
            }
        }
        self.scope_nodes.clear();
        self.degree = 0;
        self.rows = 0;
    }
}

/// Fetches the rows of index entries and numbers their scopes. For an index with scopes, rows must
/// be looked up in the key order of the first permutation (ordered copy of all keys).
pub struct RowLookup<'a> {
    rows: HeapFetch<'a>,
    scope: Option<ScopeColumns<'a>>,
    numbers: ScopeNumbers,
}

impl<'a> RowLookup<'a> {
    pub fn new<const N: usize>(relations: &'a LockedIndex, index: &Index<N>) -> Self {
        RowLookup {
            rows: HeapFetch::new(relations.table()),
            scope: ScopeColumns::from_index(relations, &index.layout),
            numbers: ScopeNumbers::default(),
        }
    }

    /// Returns the address at which the snapshot sees the row of an entry, and the number of the
    /// row's scope among the scopes with the same hash. `hash` is this hash, and has no effect if
    /// the index has no scope columns. Returns `None` for an invisible row. Also returns `None` for
    /// a row with NULL in a scope column, because it is in no scope.
    fn find(&mut self, hash: u64, entry: Tid) -> Option<(Tid, u32)> {
        pgrx::check_for_interrupts!();
        let row = self.rows.find(entry)?;
        let Some(scope) = &self.scope else {
            return Some((row, 0));
        };
        let values = scope.values(self.rows.slot())?;
        Some((row, self.numbers.number(scope, hash, values)))
    }
}
