//! Methods of clustering, `star` and `connected`: assign a representative to each node of a graph.
//! Each node has a rank, and the node with the lowest rank of a cluster is kept. The method `star`
//! visits the nodes in the order of their ranks. If representatives are near a node, the one with
//! the lowest rank represents the node. Otherwise the node becomes a representative itself. In the
//! method `connected`, the representative of a node is the node with the lowest rank in its
//! connected component.
use neardup_blocktree::clusters::{Centers, Components, Star, split};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::{Entry, ExternalSort};

use super::graph::number;
use crate::dedup::limits::share;
use crate::dedup::progress::Progress;
use neardup_pg::errors::UserError;
use neardup_pg::storage::temp::TempSpace;

/// Argument `method` of `neardup_clusters` and `neardup_components`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Each member is near its representative.
    Star,
    /// Members are connected by chains of near rows.
    Connected,
}

impl Method {
    /// Returns the method with this name. Raises an error for an unknown name.
    pub fn parse(name: &[u8]) -> Self {
        match name {
            b"star" => Method::Star,
            b"connected" => Method::Connected,
            _ => UserError::invalid_parameter("\"method\" must be 'star' or 'connected'")
                .detail(
                    "With 'star', each member of a cluster is within the radius of the \
                     representative. With 'connected', a chain of rows links any two members. \
                     Consecutive rows in a chain are within the radius of each other.",
                )
                .raise(),
        }
    }
}

/// Callback for progress reports. Called after each entry of a crowded node.
type Done<'a> = &'a mut dyn FnMut();

/// List of entries of crowded nodes (nodes with too many pairs to list), in the form of
/// [`Graph::crowded`](super::graph::Graph::crowded).
pub type Crowded<const D: usize> = ExternalSort<TempSpace, D>;

/// Nodes and pairs of a [`Graph`](super::graph::Graph), without its rows.
pub struct Links<const D: usize> {
    pub nodes: u32,
    pub ends: ExternalSort<TempSpace, 2>,
    pub crowded: Crowded<D>,
}

impl<const D: usize> Links<D> {
    /// Starts the progress report of a phase that handles each end of a pair and each entry of a
    /// crowded node once.
    fn progress(&self, phase: &'static str) -> Progress {
        let total = self.ends.len() + self.crowded.len();
        Progress::new(phase, "entries", total as f64)
    }

    /// Applies the method `star`: replaces the rank of each node in `ranks` by the rank of its
    /// representative. `centers` finds the representatives among crowded nodes, whose pairs are not
    /// all listed.
    pub fn star(
        mut self,
        files: &mut TempSpace,
        ranks: &mut Paged<TempSpace>,
        centers: &mut impl Centers<TempSpace, D>,
    ) {
        let mut star = Star::<TempSpace, D>::new(share());
        // Adds to each end the rank of its node. Reads the ends as they were added, which is mostly
        // the order of the nodes and thus of `ranks`. In the order of pairs, each end would load
        // another page of `ranks`.
        let mut ends = ExternalSort::<TempSpace, 2>::new(share());
        self.ends.as_added(files, |files, end| {
            let (_, node) = split(end.key[1]);
            let rank = ranks.get(files, node);
            ends.push(files, end.key, number(rank));
        });
        let mut pairs = PairJoin::default();
        let mut progress = self.progress("reading pairs");
        drop(self.ends);
        ends.in_order(files, None, |files, end| {
            progress.advance(1);
            pairs.add(end, |a, b| star.add_pair(files, a, b));
        });
        drop(ends);
        self.crowded.as_added(files, |files, entry| {
            progress.advance(1);
            let rank = ranks.get(files, entry.key[0] as u32);
            star.add_crowded(files, rank, entry);
        });
        drop(self.crowded);
        progress.finish();
        let mut progress = Progress::new("making clusters", "entries", star.len() as f64);
        star.finish(files, ranks, centers, &mut || progress.advance(1));
        progress.finish();
    }

    /// Applies the method `connected`: replaces the rank of each node in `ranks` by the lowest rank
    /// in its connected component. First connects the nodes of each listed pair. The list lacks
    /// some pairs of crowded nodes, so `connect` must then connect the crowded nodes that are near
    /// each other. Its arguments are the entries of the crowded nodes, the components so far, and a
    /// callback that `connect` calls after each entry to report progress.
    pub fn connected(
        mut self,
        files: &mut TempSpace,
        ranks: &mut Paged<TempSpace>,
        connect: impl FnOnce(&mut TempSpace, Crowded<D>, &mut Components<TempSpace>, Done),
    ) {
        let mut connected = Components::new(files, self.nodes, share());
        let mut pairs = PairJoin::default();
        let mut progress = self.progress("making clusters");
        self.ends.in_order(files, None, |files, end| {
            progress.advance(1);
            pairs.add(end, |(a, _), (b, _)| connected.connect(files, a, b));
        });
        drop(self.ends);
        connect(files, self.crowded, &mut connected, &mut || {
            progress.advance(1)
        });
        progress.finish();
        connected.finish(files, ranks);
    }
}

/// End of a pair: the number of the node and, for the method `star`, the rank of the node.
type End = (u32, u32);

/// Joins the two ends of each pair of nodes. Ends must be added in the order of their keys, so that
/// the two ends of a pair follow each other.
#[derive(Default)]
struct PairJoin {
    /// Last end added, if the other end of its pair is still missing: the number of the pair, the
    /// scope, and the end.
    open: Option<([u64; 2], End)>,
}

impl PairJoin {
    /// Adds an end. If the last added end belongs to the same pair, calls `near` with both ends.
    fn add(&mut self, end: Entry<2>, near: impl FnOnce(End, End)) {
        let [pair, rest] = end.key;
        let (scope, node) = split(rest);
        let (edge, end) = ([pair, u64::from(scope)], (node, end.tid as u32));
        match self.open.take() {
            Some((open, other)) if open == edge => near(other, end),
            _ => self.open = Some((edge, end)),
        }
    }
}
