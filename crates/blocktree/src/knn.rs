//! Returns rows in the order of their distance, one by one.
//!
//! A search reads ring after ring: it finds, sorts and returns all rows within a radius, then the
//! rows between that radius and the next. So no row is returned before a nearer one, and a caller
//! that stops early pays only for the rings that it needed. If almost no rows are near, one ring
//! covers all the rest. If a ring has more rows than fit into memory, the nearest are kept and
//! returned, and the ring is read again for the others.

use crate::key::{Key, distance};
use crate::leaf;
use crate::page::Result;
use crate::plan::{Plan, expected_nearest};
use crate::scan::{Match, Scan};
use crate::store::{PrefetchPages, ReadPages};
use crate::topk::{TopK, kept_in};
use crate::tree::Tree;
use std::rc::Rc;

/// A ring's plan costs at most this many times as much as that of the ring before, or covers one
/// bit more.
const GROWTH: f64 = 4.0;

/// Rows that are kept when a permutation is first read whole, about. Most that ask for the nearest
/// want no more, and each row that is kept for a while costs as much as filtering a hundred.
const FIRST_KEPT: usize = 64;

/// Factor by which more rows are kept each time that a permutation is read again for those further
/// out, as far as memory allows.
const MORE_KEPT: usize = 8;

/// Rows found below which a query is taken for one with nothing near it. One of them may be the
/// query itself, if it is in the table.
const FEW: usize = 3;

/// Bits that the ring of a permutation read whole reaches further than its first leaf suggests.
const MARGIN: u32 = 1;

/// Nearest-neighbour search in progress.
#[derive(Debug)]
pub struct KnnScan<const N: usize> {
    scan: Scan<N>,
    /// Key by whose distance rows are ordered, if it is not the query of the scan. Then the scan's
    /// rows are one ring.
    center: Option<Key<N>>,
    /// The scan has been stepped.
    begun: bool,
    /// Rows of the leaf that was read last.
    found: Vec<Match<N>>,
    /// Rows of the current ring.
    ring: TopK<N>,
    /// All rows up to this distance from the scan's query have been found.
    found_to: Option<u32>,
    /// The current ring reaches to this distance from it.
    ring_to: u32,
    /// Rows further away from it are not wanted.
    limit: u32,
    /// Rows to keep of a permutation that is read whole.
    keep: usize,
    /// Rows of a permutation read whole have been found, and its ring ended early or not.
    is_sized: bool,
    /// Rows returned, as far as they are told apart from [`FEW`].
    returned: usize,
}

impl<const N: usize> KnnScan<N> {
    /// A search by the distance to the query of `scan`, which has not been stepped, beginning with
    /// the rows that it finds. Rows that are equally far from the query are ordered by their
    /// distance to the first of `then_by`, and so on, and then by their address. Rows beyond
    /// `limit` bits are not found. It keeps as many rows as fit into `memory` bytes, but for a
    /// small minimum.
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

    /// A search for the rows within `limit` bits of the query of `scan`, in the order of their
    /// distance to `center`.
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

    /// Returns the next admitted row, with the distance that rows are ordered by; `None` after all
    /// rows with a fingerprint within the limit. `plan_of` makes plans by radius, in bits.
    pub fn next<S: ReadPages + PrefetchPages>(
        &mut self,
        tree: &Tree<'_, S, N>,
        mut plan_of: impl FnMut(u32) -> Rc<Plan<N>>,
        admits: impl Fn(&Match<N>) -> bool,
    ) -> Result<Option<Match<N>>> {
        loop {
            if let Some(row) = self.ring.pop() {
                self.returned = FEW.min(self.returned + 1);
                return Ok(Some(row));
            }
            if self.begun && !self.begin_pass(&mut plan_of) {
                return Ok(None);
            }
            self.begun = true;
            self.read(tree, &admits)?;
        }
    }

    /// Prepares the scan for further rows of the same ring, or for the next ring. Returns false if
    /// there is none.
    fn begin_pass(&mut self, plan_of: &mut impl FnMut(u32) -> Rc<Plan<N>>) -> bool {
        let (plan, beyond) = (self.scan.plan().clone(), self.found_to);
        match (self.ring.begin_pass(), self.center) {
            (Some(0), _) | (Some(_), Some(_)) => self.scan.widen(plan, beyond),
            // Nearer rows of the ring have been given.
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

    /// The plan for the ring beyond that of a plan.
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

    /// Ends the ring of a permutation that is first read whole early, by the distances on its first
    /// leaf: as many standard deviations below their mean as [`FIRST_KEPT`] rows lie among random
    /// values. So few rows of the other leaves are looked at more closely than by the filter. Where
    /// they do not suffice, all others are one more ring. Behind the first leaf it is too late:
    /// rows that are further away have been kept then, or given.
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
        // The rows of a leaf share their first bits: they may all be a bit or two too near.
        let end = (mean - deviations * deviation).ceil() as u32 + MARGIN;
        let end = end.max(self.found_to.map_or(0, |found_to| found_to + 1));
        if end < self.ring_to {
            self.ring_to = end;
            self.found.retain(|row| row.distance <= end);
            self.scan.narrow(end);
        }
    }

    /// Rows among which is searched, about.
    fn rows(&self) -> f64 {
        self.scan.plan().permutation_leaves * leaf::usual_count(N)
    }

    /// The plan for all that is left at once, where rings would cost more. With next to nothing
    /// near, a query's nearest rows are as far away as among random values. If the ring that finds
    /// those costs half of what finding all does, rings on the way there are not worth their cost.
    fn last_ring(
        &self,
        found_to: u32,
        plan_of: &mut impl FnMut(u32) -> Rc<Plan<N>>,
    ) -> Option<Rc<Plan<N>>> {
        let layout = self.scan.layout();
        // The guaranteed radius costs next to nothing, and a ring beyond it not much.
        if self.returned >= FEW || found_to <= layout.radius() + 1 {
            return None;
        }
        let expected = expected_nearest(layout.bits(), self.rows());
        let expected = expected.clamp(found_to + 1, self.limit);
        let last = plan_of(self.limit);
        (plan_of(expected).cost() * 2.0 >= last.cost()).then_some(last)
    }

    /// Reads the rest of the current scan.
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

/// Times that a permutation is read whole until about `rows` rows of it have been given in order,
/// where `memory` bytes may be taken: the planner's view of what [`KnnScan`] keeps.
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

/// The plan for the ring beyond a distance, after a plan of some cost.
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
    // One permutation read whole finds all distances at once.
    if plan.is_whole() {
        plan_of(widest)
    } else {
        plan
    }
}
