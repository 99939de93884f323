//! Nearest-neighbour search: returns rows one by one in the order of their distance from a query.
//!
//! The search reads ring after ring. A ring consists of the rows whose distances are in a range:
//! first all rows within a radius, then the rows between that radius and a greater one, and so on.
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

/// Maximum ratio of the cost of a ring's plan to the cost of the previous ring's plan. A ring that
/// is only one bit wide may cost more.
const GROWTH: f64 = 4.0;

/// Number of rows that are kept when a permutation (ordered copy of all keys) is first read from
/// start to end. Most callers of a nearest-neighbour search want no more rows. Keeping a row costs
/// as much as comparing a hundred rows with the query.
const FIRST_KEPT: usize = 64;

/// Factor by which the number of kept rows grows each time that a permutation is read again from
/// start to end, as far as memory allows.
const MORE_KEPT: usize = 8;

/// Number of returned rows from which a query counts as one with near rows. Below it, the search
/// estimates whether one last ring for all remaining rows is cheaper than several rings. One of the
/// returned rows may be the query itself, if it is in the table.
const MIN_NEAR_ROWS: usize = 3;

/// Number of bits that [`KnnScan::end_ring_early`] adds to the end of a ring that it estimates from
/// one leaf.
const MARGIN: u32 = 1;

/// Nearest-neighbour search of an index on fingerprints, in progress.
#[derive(Debug)]
pub struct KnnScan<const N: usize> {
    scan: Scan<N>,
    /// Fingerprint from which the distances that order the rows are measured. All rows that `scan`
    /// finds are then one ring. `None` to order rows by their distance from the query of `scan`.
    center: Option<Key<N>>,
    /// True if the first ring has been begun.
    begun: bool,
    /// Rows of the leaf that was read last.
    found: Vec<Match<N>>,
    /// Rows of the current ring.
    ring: TopK<N>,
    /// All rows up to this distance from the scan's query are in earlier rings. `None` in the first
    /// ring.
    found_to: Option<u32>,
    /// Greatest distance from the scan's query of the rows in the current ring.
    ring_to: u32,
    /// Greatest distance from the scan's query of the rows that are wanted.
    limit: u32,
    /// Number of rows to keep when a permutation is next read from start to end.
    keep: usize,
    /// True if [`KnnScan::end_ring_early`] has decided on the end of a ring.
    is_sized: bool,
    /// Number of returned rows, counted up to [`MIN_NEAR_ROWS`].
    returned: usize,
}

impl<const N: usize> KnnScan<N> {
    /// Creates a search for rows in the order of their distance to the query of `scan`, which must
    /// not have been stepped. The first ring has the radius of the scan's plan. Rows at the same
    /// distance are ordered by their distance to the first key of `then_by`, then by their distance
    /// to the next key, and finally by address. Rows at a distance of more than `limit` bits are
    /// not returned. The search keeps as many rows as fit into `memory` bytes, or a small minimum.
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
    /// their distance to `center`. The other parameters are as for [`KnnScan::new`].
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

    /// Returns the next row in order, with the distance by which rows are ordered. Skips rows for
    /// which `admits` returns false. `None` after the last row within the limit. `plan_of` returns
    /// the plan for a radius in bits.
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

    /// Restarts the scan for the rows of the current ring that did not fit into memory. If all rows
    /// did fit, restarts it for the next ring. Returns false if there are no more rows within the
    /// limit.
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

    /// Ends the ring at a smaller distance when a permutation is first read from start to end, so
    /// that the filter rejects most rows. The new end is the distance within which about
    /// [`FIRST_KEPT`] rows are expected. The estimate uses the mean and the standard deviation of
    /// the distances on the first leaf. It assumes that the end is as many standard deviations
    /// below the mean as among random fingerprints. If the caller wants more rows, all rows beyond
    /// the new end are one more ring. Has no effect after the first leaf, because rows that are
    /// further away have been kept or returned by then.
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

    /// Returns the plan for one last ring with all rows within the limit, if several rings would
    /// cost more. `None` if several rings are cheaper. Rings up to `found_to` bits have been
    /// returned. If there are almost no near rows, the nearest other rows are expected at the same
    /// distance as among random fingerprints. If a search to that distance costs at least half as
    /// much as a search to the limit, rings on the way there do not pay.
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

    /// Reads all leaves of the current scan into the ring, then sorts the ring.
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

/// Returns how many times [`KnnScan`] reads a permutation from start to end before it has returned
/// `rows` rows in order. This is an estimate for the planner. The search keeps as many rows as fit
/// into `memory` bytes.
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

/// Returns the plan for the ring after distance `found_to`. `widest` is the greatest wanted
/// distance, and `cost` the cost of the previous ring's plan. A plan that reads a whole permutation
/// is for a ring with all remaining distances.
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
