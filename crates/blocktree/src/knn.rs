//! Nearest-neighbour search: returns rows one by one in the order of their distance from a query.
//! The search reads ring after ring. A ring consists of the rows whose distances are in a range:
//! first all rows within a radius, then the rows between that radius and a greater one, and so on.
//! Each ring has a plan, which states how a search finds all rows within a radius
//! ([`crate::plan`]).
//!
//! The search finds, sorts and returns the rows of a ring before it reads the next ring. So no row
//! is returned before a nearer one, and a caller that stops early pays only for the rings that it
//! needed. If almost no rows are near the query, one ring covers all the remaining rows. If a ring
//! has more rows than fit into memory, the nearest rows are kept and returned, and the ring is read
//! again for the other rows.

use crate::key::{Key, distance};
use crate::leaf;
use crate::page::Result;
use crate::plan::{Plan, expected_nearest};
use crate::scan::{Match, Scan};
use crate::store::{PrefetchPages, ReadPages};
use crate::topk::{TopK, kept_in};
use crate::tree::Tree;
use std::rc::Rc;

/// Maximum ratio of the cost of a ring's plan to the cost of the previous ring's plan. A ring is as
/// wide as this ratio permits, and at least one bit wide even if that costs more.
const GROWTH: f64 = 4.0;

/// Number of nearest rows that the search keeps when it reads a whole permutation (ordered copy of
/// all keys) for the first time. Most callers want no more rows, and keeping a row costs as much as
/// comparing a hundred rows with the query. If the caller wants more rows, the search reads the
/// permutation again and keeps [`MORE_KEPT`] times as many.
const FIRST_KEPT: usize = 64;

/// Factor by which the number of kept rows grows each time that the search reads a whole
/// permutation again, as far as memory allows.
const MORE_KEPT: usize = 8;

/// Number of returned rows from which on the search assumes that there are rows near the query.
/// With fewer returned rows, the search estimates whether one last ring for all remaining rows is
/// cheaper than several rings. The number is above 1 because one of the rows may be the query
/// itself, if it is in the table.
const MIN_NEAR_ROWS: usize = 3;

/// Number of bits by which [`KnnScan::end_ring_early`] extends a ring, because it estimates the end
/// of the ring from the rows of one leaf only.
const MARGIN: u32 = 1;

/// Nearest-neighbour search of an index on fingerprints, in progress.
#[derive(Debug)]
pub struct KnnScan<const N: usize> {
    scan: Scan<N>,
    /// Fingerprint from which the distances are measured that determine the order of the returned
    /// rows. All rows that `scan` finds are then one ring. `None` if rows are ordered by their
    /// distance from the query of `scan`.
    center: Option<Key<N>>,
    /// True if the first ring has been begun.
    begun: bool,
    /// Rows of the leaf that was read last.
    found: Vec<Match<N>>,
    /// Rows of the current ring.
    ring: TopK<N>,
    /// Distance from the scan's query, in bits, up to which all rows are in earlier rings. `None`
    /// in the first ring.
    found_to: Option<u32>,
    /// End of the current ring: the greatest distance of its rows from the scan's query, in bits.
    ring_to: u32,
    /// Greatest wanted distance from the scan's query, in bits.
    limit: u32,
    /// Number of rows to keep when a permutation is next read from start to end.
    keep: usize,
    /// True after the first call of [`KnnScan::end_ring_early`]. Later calls have no effect.
    is_sized: bool,
    /// Number of returned rows. Counting stops at [`MIN_NEAR_ROWS`].
    returned: usize,
}

impl<const N: usize> KnnScan<N> {
    /// Creates a search for rows in the order of their distance from the query of `scan`. No step
    /// of `scan` may have been made. The first ring has the radius of the scan's plan. Rows at the
    /// same distance are ordered by their distance from the first key of `then_by`, then by their
    /// distance from the next key, and finally by row address. Rows at a distance of more than
    /// `limit` bits are not returned. The search keeps as many rows as fit into `memory` bytes, or
    /// a small minimum.
    pub fn new(scan: Scan<N>, then_by: Vec<Key<N>>, limit: u32, memory: usize) -> Self {
        let limit = limit.min(scan.layout().bits());
        let skipped = scan.layout().scope_words();
        let mut nearest = KnnScan {
            center: None,
            begun: false,
            found: Vec::new(),
            ring: TopK::new(then_by, skipped, memory),
            found_to: None,
            ring_to: limit.min(scan.plan().radius),
            limit,
            keep: FIRST_KEPT,
            is_sized: false,
            returned: 0,
            scan,
        };
        nearest.scan.narrow(nearest.ring_to);
        nearest
    }

    /// Creates a search for the rows within `limit` bits of the query of `scan`, in the order of
    /// their distance from another fingerprint, `center`. The other parameters are as for
    /// [`KnnScan::new`].
    pub fn around(
        center: Key<N>,
        scan: Scan<N>,
        then_by: Vec<Key<N>>,
        limit: u32,
        memory: usize,
    ) -> Self {
        KnnScan {
            center: Some(center),
            ..Self::new(scan, then_by, limit, memory)
        }
    }

    /// Returns the next row in order. [`Match::distance`] is the distance by which rows are
    /// ordered. `None` after the last row within the limit. Skips rows for which `admits` returns
    /// false. The search calls `plan_of` with a radius in bits to get the plan for it.
    pub fn next<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        mut plan_of: impl FnMut(u32) -> Rc<Plan<N>>,
        admits: impl Fn(&Match<N>) -> bool,
    ) -> Result<Option<Match<N>>> {
        loop {
            if let Some(row) = self.ring.pop() {
                self.returned = MIN_NEAR_ROWS.min(self.returned + 1);
                return Ok(Some(row));
            }
            if self.begun && !self.begin_pass(&mut plan_of) {
                return Ok(None);
            }
            self.begun = true;
            self.read(tree, &admits)?;
        }
    }

    /// Begins another pass of the scan. If the last pass found rows of the current ring that did
    /// not fit into memory, the new pass finds these rows. Otherwise it finds the rows of the next
    /// ring. Returns false if there are no more rows within the limit.
    fn begin_pass(&mut self, plan_of: &mut impl FnMut(u32) -> Rc<Plan<N>>) -> bool {
        let (plan, beyond) = (self.scan.plan().clone(), self.found_to);
        match (self.ring.begin_pass(), self.center) {
            (Some(0), _) | (Some(_), Some(_)) => self.scan.widen(plan, beyond),
            // Rows of the ring at smaller distances have been returned.
            (Some(distance), None) => self.scan.widen(plan, Some(distance - 1)),
            (None, _) => {
                if self.ring_to >= self.limit {
                    return false;
                }
                self.found_to = Some(self.ring_to);
                let next = self.next_ring(&plan, plan_of);
                self.ring_to = next.radius.min(self.limit);
                self.scan.widen(next, self.found_to);
            }
        }
        self.scan.narrow(self.ring_to);
        true
    }

    /// Returns the plan for the ring after the current one, whose plan is `plan`.
    fn next_ring(
        &self,
        plan: &Rc<Plan<N>>,
        plan_of: &mut impl FnMut(u32) -> Rc<Plan<N>>,
    ) -> Rc<Plan<N>> {
        if plan.is_whole() && plan.radius >= self.limit {
            return plan.clone();
        }
        let last = self.last_ring(self.ring_to, plan_of);
        last.unwrap_or_else(|| next_plan(self.ring_to, self.limit, plan.cost(), plan_of))
    }

    /// Ends the ring at a smaller distance, so that the filter rejects most rows. The search calls
    /// this after each leaf of a whole permutation. Only the first call has an effect: later, rows
    /// beyond a smaller end have been kept or returned. The first call has no effect if the leaf
    /// has too few rows for an estimate, or if the ring already has a smaller end.
    ///
    /// The new end is the distance within which about [`FIRST_KEPT`] rows of the index are
    /// expected. For random fingerprints, this distance is a known number of standard deviations
    /// below the mean distance. The function subtracts the same number of standard deviations from
    /// the mean. It measures the mean and the standard deviation on the first leaf. If the caller
    /// wants more rows, all rows beyond the new end are one more ring.
    fn end_ring_early(&mut self) {
        let bits = self.scan.layout().bits();
        let is_first = !std::mem::replace(&mut self.is_sized, true);
        if !is_first || self.ring_to < bits || self.found.len() < 2 * FIRST_KEPT {
            return;
        }
        let (count, width) = (self.found.len() as f64, f64::from(bits));
        let mean_of = |of: &dyn Fn(f64) -> f64| {
            let distances = self.found.iter().map(|row| of(f64::from(row.distance)));
            distances.sum::<f64>() / count
        };
        let mean = mean_of(&|distance| distance);
        let deviation = mean_of(&|distance| (distance - mean).powi(2)).sqrt();
        let expected = f64::from(expected_nearest(bits, self.rows() / FIRST_KEPT as f64));
        let deviations = (width / 2.0 - expected) / (width.sqrt() / 2.0);
        // The rows of a leaf have the same first bits, so all of them may be a bit or two nearer to
        // the query than the average row.
        let end = (mean - deviations * deviation).ceil() as u32 + MARGIN;
        let end = end.max(self.found_to.map_or(0, |found_to| found_to + 1));
        if end < self.ring_to {
            self.ring_to = end;
            self.found.retain(|row| row.distance <= end);
            self.scan.narrow(end);
        }
    }

    /// Estimates the number of rows in the index.
    fn rows(&self) -> f64 {
        self.scan.plan().permutation_leaves * leaf::usual_count(N)
    }

    /// Decides whether one last ring with all remaining rows within the limit is cheaper than
    /// several rings. Returns the plan of the last ring, or `None` for several rings. All rings up
    /// to `found_to` bits have been returned.
    ///
    /// Several rings are cheaper if `found_to` exceeds the guaranteed radius by at most one bit,
    /// because searches up to there are cheap. They are also cheaper if at least [`MIN_NEAR_ROWS`]
    /// rows were returned. Otherwise the function estimates the distance of the next rows as if
    /// fingerprints were random. If a search up to this distance costs at least half as much as a
    /// search up to the limit, one last ring is cheaper.
    fn last_ring(
        &self,
        found_to: u32,
        plan_of: &mut impl FnMut(u32) -> Rc<Plan<N>>,
    ) -> Option<Rc<Plan<N>>> {
        let layout = self.scan.layout();
        // Searches within the guaranteed radius, and up to one bit beyond it, are cheap.
        if self.returned >= MIN_NEAR_ROWS || found_to <= layout.radius() + 1 {
            return None;
        }
        let expected = expected_nearest(layout.bits(), self.rows());
        let expected = expected.clamp(found_to + 1, self.limit);
        let last = plan_of(self.limit);
        (plan_of(expected).cost() * 2.0 >= last.cost()).then_some(last)
    }

    /// Reads all leaves of the current pass of the scan into the ring, then sorts the ring. Drops
    /// rows for which `admits` returns false.
    fn read<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        admits: &impl Fn(&Match<N>) -> bool,
    ) -> Result<()> {
        if self.scan.plan().is_whole() {
            self.ring.set_keep(self.keep);
            self.keep = self.keep.saturating_mul(MORE_KEPT);
        } else {
            self.ring.set_keep(usize::MAX);
        }
        let skipped = self.scan.layout().scope_words();
        loop {
            if self.found.try_reserve(leaf::most_entries::<N>()).is_err() {
                tree.store.out_of_memory();
            }
            if !self.scan.step(tree, &mut self.found)? {
                break;
            }
            tree.store.check_interrupts();
            if self.found.is_empty() {
                continue;
            }
            if self.scan.plan().is_whole() && self.center.is_none() {
                self.end_ring_early();
            }
            self.found.retain(admits);
            if let Some(center) = &self.center {
                for row in &mut self.found {
                    row.distance = distance(center, &row.fingerprint, skipped);
                }
            }
            if self.ring.take(&mut self.found).is_err() {
                tree.store.out_of_memory();
            }
            if let (Some(radius), None) = (self.ring.cut_distance(), self.center) {
                self.scan.narrow(radius);
            }
        }
        self.ring.sort();
        Ok(())
    }
}

/// Estimates how many times a nearest-neighbour search reads one whole permutation (an ordered copy
/// of all entries of the index) to return `rows` rows in order of distance. Each time, the search
/// returns only as many rows as fit into `memory` bytes. The planner uses this estimate.
pub fn whole_reads<const N: usize>(rows: f64, memory: usize) -> f64 {
    let most = kept_in::<N>(memory);
    let (mut emitted, mut keep, mut reads) = (0, FIRST_KEPT, 0.0);
    while keep < most && (emitted as f64) < rows {
        emitted += keep;
        keep = keep.saturating_mul(MORE_KEPT);
        reads += 1.0;
    }
    reads + ((rows - emitted as f64) / most as f64).ceil().max(0.0)
}

/// Returns the plan for the ring that begins beyond distance `found_to`. `widest` is the greatest
/// wanted distance, and `cost` the cost of the previous ring's plan. `plan_of` returns the plan for
/// a radius in bits. The ring is as wide as [`GROWTH`] permits. If its plan reads a whole
/// permutation, the ring ends at `widest`.
fn next_plan<const N: usize>(
    found_to: u32,
    widest: u32,
    cost: f64,
    plan_of: &mut impl FnMut(u32) -> Rc<Plan<N>>,
) -> Rc<Plan<N>> {
    let mut plan = plan_of(found_to + 1);
    while !plan.is_whole() && plan.radius < widest {
        let wider = plan_of(plan.radius + 1);
        if wider.cost() > GROWTH * cost {
            break;
        }
        plan = wider;
    }
    // Reading a whole permutation finds rows at all distances at once.
    if plan.is_whole() {
        plan_of(widest)
    } else {
        plan
    }
}
