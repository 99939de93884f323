//! Collection of the nearest rows of a nearest-neighbour search, within a memory limit. The search
//! may read the index in several passes. Each pass collects the nearest rows that earlier passes
//! have not returned.

use crate::key::{Key, distance};
use crate::scan::Match;
use std::cmp::Ordering;
use std::collections::TryReserveError;

/// Minimum number of rows for which a collection has room, even with little memory.
const MIN_ROOM: usize = 128;

/// Returns the number of rows that fit into `memory` bytes, or [`MIN_ROOM`] if that is more.
fn room<const N: usize>(memory: usize) -> usize {
    (memory / size_of::<Match<N>>()).max(MIN_ROOM)
}

/// Returns the maximum number of rows to keep in a collection with memory for `room` rows. The
/// remaining memory is for further rows that are collected before the nearest rows are selected.
fn most_kept(room: usize) -> usize {
    room / 5 * 4
}

/// Returns the maximum number of rows that a collection of `memory` bytes keeps.
pub(crate) fn kept_in<const N: usize>(memory: usize) -> usize {
    most_kept(room::<N>(memory))
}

/// Collection that keeps the first rows in an order: by distance, then by the distances to further
/// keys, then by row address. The order has no ties, so a row has the same rank in each pass over
/// the index. Rows that do not fit into memory are dropped. Another pass over the index finds the
/// rows after the last row that was kept.
#[derive(Debug)]
pub(crate) struct TopK<const N: usize> {
    /// Further keys by which rows at the same distance are ordered: by the distance to the first
    /// key, then by the distance to the next key, and so on.
    then_by: Vec<Key<N>>,
    /// Number of words at the start of a key that do not count for distances: the scope.
    skipped: usize,
    rows: Vec<Match<N>>,
    /// Number of rows to keep. Later rows in the order are dropped.
    keep: usize,
    /// Number of rows for which memory has room. It exceeds `keep`, because more rows are collected
    /// before the first `keep` of them are selected.
    room: usize,
    /// Last row, in the order of [`TopK`], that earlier passes returned. This pass skips rows up to
    /// this row. `None` in the first pass.
    after: Option<Match<N>>,
    /// Last row, in the order of [`TopK`], that this pass keeps. Rows after this row have been
    /// dropped. `None` if this pass has dropped no rows.
    cut: Option<Match<N>>,
}

impl<const N: usize> TopK<N> {
    /// Creates an empty collection that takes at most `memory` bytes, or a small minimum. `then_by`
    /// and `skipped` are the fields of the same names.
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

    /// Sets the number of rows to keep from now on, limited by memory.
    pub(crate) fn set_keep(&mut self, rows: usize) {
        self.keep = rows.min(most_kept(self.room));
    }

    /// Returns the number of rows that are collected before the first `keep` are selected.
    fn collected(&self) -> usize {
        self.room.min(2 * self.keep)
    }

    /// Compares two rows: by distance, then by the distances to further keys, then by row address.
    /// The nearer row is less.
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

    /// Moves the rows of `found` into the collection and leaves `found` empty. Drops rows that
    /// earlier passes returned, and rows that are after the last row to keep. Fails only if memory
    /// is exhausted.
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

    /// Allocates room for `more` further rows. Doubles the capacity if it is too small, but does
    /// not exceed the number of rows that the collection can have at once.
    fn reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        let (length, capacity) = (self.rows.len(), self.rows.capacity());
        if capacity - length < more {
            let needed = length + more;
            let wanted = (2 * capacity).min(self.collected() + more).max(needed);
            self.rows.try_reserve_exact(wanted - length)?;
        }
        Ok(())
    }

    /// Returns the distance beyond which rows are dropped. `None` if no row has been dropped.
    pub(crate) fn cut_distance(&self) -> Option<u32> {
        self.cut.as_ref().map(|row| row.distance)
    }

    /// Ends a pass over the index: sorts the collected rows, so that [`TopK::pop`] returns them in
    /// order.
    pub(crate) fn sort(&mut self) {
        let mut rows = core::mem::take(&mut self.rows);
        // In descending order, because `pop` takes the last row.
        rows.sort_unstable_by(|a, b| self.compare(b, a));
        self.rows = rows;
    }

    /// Returns the next row in order. `None` if all collected rows have been returned.
    pub(crate) fn pop(&mut self) -> Option<Match<N>> {
        self.rows.pop()
    }

    /// Begins another pass over the index. If the previous pass dropped rows, returns the distance
    /// of the last row that it kept, which precedes all dropped rows. Returns `None` if it dropped
    /// none.
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
            // Rows at four distances. Each three rows have the same fingerprint.
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
