//! Sweep over the times of nodes: finds the nodes whose times are near each other without a
//! comparison of all pairs. The time of a node is a span, and two times are near each other if
//! their spans overlap. A node is a row, or several rows with the same time, and has a number.
use core::ops::Range;

use crate::dedup::row_times::Spans;
use neardup_pg::storage::temp::TempSpace;
use neardup_pg::time_span::Span;

/// Callback that takes the numbers of two nodes.
type Push<'a> = &'a mut dyn FnMut(&mut TempSpace, u32, u32);

/// Merge of two ranges of nodes in the order of the low ends of the nodes' times. Each range must
/// be in this order. If both ranges are the same, merges only one of them.
struct Merge {
    /// Nodes of the two ranges that have not been returned.
    ranges: [Range<u32>; 2],
}

impl Merge {
    fn new([first, second]: [Range<u32>; 2]) -> Self {
        let second = if first == second { 0..0 } else { second };
        Merge {
            ranges: [first, second],
        }
    }

    /// Returns the next node, its time, and the index of its range. `None` after the last node.
    fn next(&mut self, files: &mut TempSpace, spans: &mut Spans) -> Option<(u32, Span, usize)> {
        let mut front = |range: &Range<u32>| {
            (!range.is_empty()).then(|| (range.start, spans.get(files, range.start)))
        };
        let [first, second] = [front(&self.ranges[0]), front(&self.ranges[1])];
        let from = match (first, second) {
            (Some((_, a)), Some((_, b))) => usize::from(b.low < a.low),
            (first, _) => usize::from(first.is_none()),
        };
        let (node, span) = [first, second][from]?;
        self.ranges[from].start += 1;
        Some((node, span, from))
    }
}

/// Iterator over the pairs of nodes whose times are near each other.
pub struct Sweep {
    merge: Merge,
    /// True if both ranges are the same, so that both nodes of a pair are from one range.
    is_one: bool,
    /// Node whose pairs are being returned, the high end of its time, and the later nodes that have
    /// not been compared with it.
    current: Option<(u32, i128, Range<u32>)>,
}

impl Sweep {
    /// Begins the search for pairs of two nodes, one from each range. If both ranges are the same,
    /// returns each pair of two of its nodes once. In both ranges, nodes must be in the order of
    /// the low ends of their times.
    pub fn new(nodes: [Range<u32>; 2]) -> Self {
        Sweep {
            is_one: nodes[0] == nodes[1],
            merge: Merge::new(nodes),
            current: None,
        }
    }

    /// Returns the next pair, or `None` after the last one.
    pub fn next(&mut self, files: &mut TempSpace, spans: &mut Spans) -> Option<[u32; 2]> {
        loop {
            if let Some((node, end, others)) = &mut self.current
                && let Some(other) = others.next()
                && spans.get(files, other).low <= *end
            {
                return Some([*node, other]);
            }
            pgrx::check_for_interrupts!();
            // The next node in the merged order. The other nodes that remain begin later, so their
            // times overlap its time if they begin before its end.
            let (node, span, from) = self.merge.next(files, spans)?;
            let others = if self.is_one { 0 } else { 1 - from };
            let others = self.merge.ranges[others].clone();
            self.current = Some((node, span.high, others));
        }
    }
}

/// Links nodes whose times are near each other: passes pairs of such nodes to `push`. Omits a pair
/// if its nodes are already connected by other passed pairs, so there are fewer pairs than nodes.
/// `nodes` are two ranges as in [`Sweep::new`]. The two nodes of a pair may be from one range.
pub fn for_each_link(files: &mut TempSpace, nodes: [Range<u32>; 2], spans: &mut Spans, push: Push) {
    let mut merge = Merge::new(nodes);
    // Node whose time ends last among the previous nodes. If the time of a later node overlaps that
    // of any previous node, it also overlaps the time of this node.
    let mut latest: Option<(u32, i128)> = None;
    while let Some((node, span, _)) = merge.next(files, spans) {
        pgrx::check_for_interrupts!();
        if let Some((other, end)) = latest
            && end >= span.low
        {
            push(files, other, node);
        }
        if latest.is_none_or(|(_, end)| end < span.high) {
            latest = Some((node, span.high));
        }
    }
}
