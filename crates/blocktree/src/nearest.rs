//! Finding rows in the order of their distance, one by one.
//!
//! Ring after ring: all rows within a radius are found, sorted and given; then those between it
//! and the next radius. Nothing nearer is still to come when a row is given, and whoever stops
//! early has paid for the rings that were needed only.

use crate::key::{Key, distance};
use crate::leaf;
use crate::page::Result;
use crate::plan::Plan;
use crate::scan::{Match, Scan};
use crate::store::PageStore;
use crate::tree::Tree;
use std::cmp::Ordering;
use std::rc::Rc;

/// A ring's plan costs at most so many times that of the ring before, or covers one bit more.
const GROWTH: f64 = 4.0;

/// Rows that are kept when a table is first read whole, about. Most that ask for the nearest want no
/// more, and each row that is kept for a while costs as much as filtering a hundred.
const FIRST_KEPT: usize = 64;

/// How many times more are kept each time that a table is read again for those further out, up to
/// [`MOST_KEPT`].
const MORE_KEPT: usize = 8;

/// Some megabytes of rows.
const MOST_KEPT: usize = 1 << 15;

/// A search for the nearest rows under way.
#[derive(Debug)]
pub struct Nearest<const N: usize> {
    scan: Scan<N>,
    /// The plan to begin with; `None` once begun.
    first: Option<Rc<Plan<N>>>,
    /// Rows of the ring under way, the nearest last.
    ring: Vec<Match<N>>,
    /// By whose distance rows come that are equally far from the query.
    then_by: Vec<Key<N>>,
    /// All rows up to this distance have been found.
    found_to: u32,
    /// Rows further away are not wanted.
    limit: u32,
    /// Rows, about, to keep of a table that is read whole.
    keep: usize,
}

impl<const N: usize> Nearest<N> {
    /// A search that is to begin with the rows that `scan`, which has not been stepped, looks for.
    /// Rows that are equally far from its query come by their distance to the first of `then_by`,
    /// and so on, and then by their address. Rows beyond `limit` bits are not looked for; the first
    /// plan must keep to it.
    pub fn new(scan: Scan<N>, then_by: Vec<Key<N>>, limit: u32) -> Self {
        debug_assert!(scan.plan().radius <= limit);
        let first = Some(scan.plan().clone());
        let limit = limit.min(scan.design().bits());
        Nearest {
            scan,
            first,
            ring: Vec::new(),
            then_by,
            found_to: 0,
            limit,
            keep: FIRST_KEPT,
        }
    }

    /// The next row; `None` when all with a fingerprint, within the limit, have been given. `plan_of` makes plans by
    /// radius, in bits.
    pub fn next<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        mut plan_of: impl FnMut(u32) -> Rc<Plan<N>>,
    ) -> Result<Option<Match<N>>> {
        loop {
            if let Some(row) = self.ring.pop() {
                return Ok(Some(row));
            }
            if self.first.take().is_none() {
                if self.found_to >= self.limit {
                    return Ok(None);
                }
                let plan = next_plan(
                    self.found_to,
                    self.limit,
                    self.scan.plan().cost(),
                    &mut plan_of,
                );
                self.scan.widen(plan, self.found_to);
            }
            self.find_ring(tree)?;
        }
    }

    fn find_ring<S: PageStore>(&mut self, tree: &Tree<'_, S, N>) -> Result<()> {
        let mut radius = self.scan.plan().radius;
        let mut kept = self.keep;
        if self.scan.plan().is_whole() {
            self.keep = (MORE_KEPT * kept).min(MOST_KEPT);
        }
        loop {
            // Rows at one distance may be very many, and they are sorted by their address.
            if self.ring.try_reserve(leaf::capacity::<N>()).is_err() {
                tree.store.out_of_memory();
            }
            if !self.scan.step(tree, &mut self.ring)? {
                break;
            }
            tree.store.pause();
            if self.ring.len() > 2 * kept && self.scan.plan().is_whole() {
                let (_, middle, _) = self
                    .ring
                    .select_nth_unstable_by_key(kept, |row| row.distance);
                if middle.distance < radius {
                    radius = middle.distance;
                    self.scan.narrow(radius);
                    self.ring.retain(|row| row.distance <= radius);
                }
                // Rows at one distance stay together, however many.
                kept = kept.max(self.ring.len());
            }
        }
        let then_by = &self.then_by;
        let skipped = self.scan.design().scope_words();
        self.ring.sort_unstable_by(|a, b| {
            // The nearest last, where `pop` takes it.
            (b.distance.cmp(&a.distance))
                .then_with(|| {
                    let far = |row: &Match<N>| {
                        then_by
                            .iter()
                            .map(|key| distance(key, &row.fingerprint, skipped))
                            .collect::<Vec<_>>()
                    };
                    if then_by.is_empty() {
                        Ordering::Equal
                    } else {
                        far(b).cmp(&far(a))
                    }
                })
                .then_with(|| b.tid.cmp(&a.tid))
        });
        self.found_to = radius;
        Ok(())
    }
}

/// Times that a table is read whole until about `rows` rows of it have been given in order: the
/// planner's view of what [`Nearest`] keeps.
pub fn whole_reads(rows: f64) -> f64 {
    let (mut given, mut keep, mut reads) = (0, FIRST_KEPT, 0.0);
    while keep < MOST_KEPT && (given as f64) < rows {
        given += keep;
        keep = (MORE_KEPT * keep).min(MOST_KEPT);
        reads += 1.0;
    }
    reads + ((rows - given as f64) / MOST_KEPT as f64).ceil().max(0.0)
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
    // One table read whole finds all distances at once.
    if plan.is_whole() {
        plan_of(widest)
    } else {
        plan
    }
}
