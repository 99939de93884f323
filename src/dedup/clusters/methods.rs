//! Methods of grouping nodes that are near each other.
use neardup_blocktree::clusters::{Centers, Connected, Star, split};
use neardup_blocktree::paged::Paged;
use neardup_blocktree::sort::ExternalSort;

use crate::dedup::limits::share;
use crate::dedup::progress::Progress;
use crate::pg::errors::UserError;
use crate::storage::temp::TempSpace;

/// Method of grouping rows that are near each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Star,
    Connected,
}

impl Method {
    pub fn parse(name: &[u8]) -> Self {
        match name {
            b"star" => Method::Star,
            b"connected" => Method::Connected,
            _ => UserError::invalid_parameter("method must be 'star' or 'connected'")
                .detail(
                    "star: each member is within the distance of its representative. connected: \
                     members are linked by chains of rows within the distance of each other.",
                )
                .raise(),
        }
    }
}

/// Entries of dense nodes.
pub type Dense<const D: usize> = ExternalSort<TempSpace, D>;

/// The parts of a [`Graph`](super::graph::Graph) that grouping needs.
pub struct Links<const D: usize> {
    pub nodes: u32,
    pub ends: ExternalSort<TempSpace, 2>,
    pub dense: Dense<D>,
}

impl<const D: usize> Links<D> {
    /// A phase that comes once to each end of a pair, and to each entry of a dense node.
    fn progress(&self, phase: &'static str) -> Progress {
        let total = self.ends.len() + self.dense.len();
        Progress::new(phase, "entries", total as f64)
    }

    /// Replaces the rank of each node by that of its representative.
    pub fn star(
        mut self,
        files: &mut TempSpace,
        ranks: &mut Paged<TempSpace>,
        centers: &mut impl Centers<TempSpace, D>,
    ) {
        let mut star = Star::<TempSpace, D>::new(share());
        let mut pairs = Pairs::default();
        let mut progress = self.progress("reading pairs");
        self.ends.in_order(files, None, |files, end| {
            progress.advance(1);
            pairs.add(end.key, |a, b| {
                let [a, b] = [a, b].map(|node| (node, ranks.get(files, node)));
                star.near(files, a, b);
            });
        });
        drop(self.ends);
        self.dense.as_added(files, |files, entry| {
            progress.advance(1);
            let rank = ranks.get(files, entry.key[0] as u32);
            star.dense(files, rank, entry);
        });
        drop(self.dense);
        let mut progress = Progress::new("making clusters", "entries", star.len() as f64);
        star.finish(files, ranks, centers, &mut || progress.advance(1));
    }

    /// Replaces the rank of each node by the lowest of its component. `connect` joins dense nodes
    /// that are near each other.
    pub fn connected(
        mut self,
        files: &mut TempSpace,
        ranks: &mut Paged<TempSpace>,
        connect: impl FnOnce(&mut TempSpace, Dense<D>, &mut Connected<TempSpace>, &mut dyn FnMut()),
    ) {
        let mut connected = Connected::new(files, self.nodes, share());
        let mut pairs = Pairs::default();
        let mut progress = self.progress("making clusters");
        self.ends.in_order(files, None, |files, end| {
            progress.advance(1);
            pairs.add(end.key, |a, b| connected.near(files, a, b));
        });
        drop(self.ends);
        connect(files, self.dense, &mut connected, &mut || {
            progress.advance(1)
        });
        connected.finish(files, ranks);
    }
}

/// Pairs of nodes, from their ends.
#[derive(Default)]
struct Pairs {
    /// An end whose other has not come yet: the pair and the scope, and the node.
    open: Option<([u64; 2], u32)>,
}

impl Pairs {
    fn add(&mut self, [pair, rest]: [u64; 2], near: impl FnOnce(u32, u32)) {
        let (scope, node) = split(rest);
        let edge = [pair, u64::from(scope)];
        match self.open.take() {
            Some((open, other)) if open == edge => near(other, node),
            _ => self.open = Some((edge, node)),
        }
    }
}
