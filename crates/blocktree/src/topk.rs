//! The first rows of an order, of as many as come, in bounded memory.

use crate::key::{Key, distance};
use crate::scan::Match;
use std::cmp::Ordering;
use std::collections::TryReserveError;

/// Minimum capacity in rows, even with little memory.
const MIN_ROOM: usize = 128;

/// The rows that there is room for in `memory` bytes, or a small minimum.
fn room<const N: usize>(memory: usize) -> usize {
    (memory / size_of::<Match<N>>()).max(MIN_ROOM)
}

/// Number of rows that are kept, for a capacity.
fn most_kept(room: usize) -> usize {
    room / 5 * 4
}

/// The most rows that a collection in `memory` bytes keeps.
pub(crate) fn kept_in<const N: usize>(memory: usize) -> usize {
    most_kept(room::<N>(memory))
}

/// Collects rows and keeps the first ones in the order of distance, then of the distances to
/// further keys, then of address. The order has no ties, so each row keeps its rank while it is in
/// the index. Rows that do not fit are dropped. Another pass over the index finds the rows after
/// the last one that was kept.
#[derive(Debug)]
pub(crate) struct TopK<const N: usize> {
    /// Rows at one distance are ordered by the distances to these.
    then_by: Vec<Key<N>>,
    /// Words in front of the keys that do not count for distances.
    skipped: usize,
    rows: Vec<Match<N>>,
    /// Rows to keep.
    keep: usize,
    /// Rows that memory has room for. More than are kept are collected before the ones that come
    /// first are chosen.
    room: usize,
    /// Rows up to this one have been returned by earlier passes.
    after: Option<Match<N>>,
    /// Rows behind this one have been left out.
    cut: Option<Match<N>>,
}

impl<const N: usize> TopK<N> {
    /// An empty collection that takes at most `memory` bytes, but for a small minimum.
    pub(crate) fn new(then_by: Vec<Key<N>>, skipped: usize, memory: usize) -> Self {
        let room = room::<N>(memory);
        TopK {
            then_by,
            skipped,
            rows: Vec::new(),
            keep: most_kept(room),
            room,
            after: None,
            cut: None,
        }
    }

    /// Keeps this number of rows from here on, as far as memory allows.
    pub(crate) fn set_keep(&mut self, rows: usize) {
        self.keep = rows.min(most_kept(self.room));
    }

    /// Number of rows that are collected before the first ones are selected.
    fn collected(&self) -> usize {
        self.room.min(2 * self.keep)
    }

    fn compare(&self, a: &Match<N>, b: &Match<N>) -> Ordering {
        (a.distance.cmp(&b.distance))
            .then_with(|| {
                let far = |key, row: &Match<N>| distance(key, &row.fingerprint, self.skipped);
                (self.then_by.iter())
                    .map(|key| far(key, a).cmp(&far(key, b)))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            })
            .then_with(|| a.tid.cmp(&b.tid))
    }

    /// Takes rows out of a list, which is empty then. Fails for want of memory only.
    pub(crate) fn take(&mut self, found: &mut Vec<Match<N>>) -> Result<(), TryReserveError> {
        self.reserve(found.len())?;
        for row in found.drain(..) {
            let is_before = |other: &Option<Match<N>>| {
                (other.as_ref()).is_some_and(|other| self.compare(&row, other).is_le())
            };
            if !is_before(&self.after) && (self.cut.is_none() || is_before(&self.cut)) {
                self.rows.push(row);
            }
        }
        if self.rows.len() > self.collected() {
            let mut rows = core::mem::take(&mut self.rows);
            let (_, last, _) =
                rows.select_nth_unstable_by(self.keep - 1, |a, b| self.compare(a, b));
            self.cut = Some(*last);
            rows.truncate(self.keep);
            self.rows = rows;
        }
        Ok(())
    }

    /// Makes room by doubling, but for no more rows than there can be.
    fn reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        let (length, capacity) = (self.rows.len(), self.rows.capacity());
        if capacity - length < more {
            let needed = length + more;
            let wanted = (2 * capacity).min(self.collected() + more).max(needed);
            self.rows.try_reserve_exact(wanted - length)?;
        }
        Ok(())
    }

    /// The distance beyond which rows are left out, if any are.
    pub(crate) fn cut_distance(&self) -> Option<u32> {
        self.cut.as_ref().map(|row| row.distance)
    }

    /// Ends a pass: from now on [`TopK::pop`] returns its rows.
    pub(crate) fn sort(&mut self) {
        let mut rows = core::mem::take(&mut self.rows);
        // The first one last, where `pop` takes it.
        rows.sort_unstable_by(|a, b| self.compare(b, a));
        self.rows = rows;
    }

    /// The next row of the pass.
    pub(crate) fn pop(&mut self) -> Option<Match<N>> {
        self.rows.pop()
    }

    /// Begins another pass. If the previous pass dropped rows, returns the distance of its last
    /// row, which precedes them. Otherwise all rows so far have been returned.
    pub(crate) fn begin_pass(&mut self) -> Option<u32> {
        self.after = self.cut.take();
        self.after.as_ref().map(|row| row.distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Tid;

    #[test]
    fn memory_is_bounded_and_passes_return_each_row_once_in_order() {
        for (memory, leaf) in [(0, 500), (1 << 14, 7), (1 << 16, 500)] {
            // Four distances, the same fingerprint for three rows each.
            let rows: Vec<Match<1>> = (0..20_000u32)
                .map(|i| Match {
                    tid: Tid {
                        block: i.wrapping_mul(7_919) % 20_000,
                        offset: 1,
                    },
                    fingerprint: [u64::from(i / 3)],
                    distance: i % 4,
                })
                .collect();
            let mut best = TopK::new(vec![[0x55]], 0, memory);
            let most = (memory / size_of::<Match<1>>()).max(MIN_ROOM) + leaf;
            let (mut returned, mut passes) = (Vec::new(), 0);
            loop {
                for chunk in rows.chunks(leaf) {
                    best.take(&mut chunk.to_vec()).unwrap();
                    assert!(best.rows.capacity() <= most, "{}", best.rows.capacity());
                }
                best.sort();
                returned.extend(std::iter::from_fn(|| best.pop()));
                passes += 1;
                if best.begin_pass().is_none() {
                    break;
                }
            }
            let mut expected = rows;
            expected.sort_by_key(|row| {
                let far = distance(&[0x55], &row.fingerprint, 0);
                (row.distance, far, row.tid)
            });
            assert!(returned == expected, "{memory} bytes");
            assert!(passes > 5);
        }
    }
}
