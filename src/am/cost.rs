//! `amcostestimate`: what a scan costs, by the plan that it would follow.
use neardup_blocktree::bands::Bands;
use neardup_blocktree::knn::whole_reads;
use neardup_blocktree::leaf;
use neardup_blocktree::plan::expected_nearest;
use pgrx::pg_sys;

use super::index::{Index, plan_of, rows_of, words_of};
use super::keys::with_words;
use super::strategies;
use crate::pg::backend;
use crate::pg::memory::work_mem;
use crate::pg::rel::OpenRelation;
use crate::types::signature::near_duplicate;
use path_quals::{Order, PathQuals, Radius, Scope};

mod path_quals;

// Measured against a sequential scan that calls `<~>` for each row, on one machine: that scan sets
// the server's cost units at some 5 us. A descent takes a tenth, a leaf in the cache a twentieth.
/// Cost of a descent from the root to a leaf, in `cpu_operator_cost`.
const DESCENT: f64 = 40.0;
/// Cost of measuring the distances of a leaf, in `cpu_operator_cost`.
const LEAF: f64 = 20.0;
// Measured on 200,000 rows in order, which the server reads and sorts at a cost of 25,000 in 0.24
// s: 0.49 to 0.53 s by the index, 1.3 to 1.7 s by the index alone.
/// Cost of keeping, sorting and returning a row, in `cpu_operator_cost`.
const IN_ORDER: f64 = 80.0;
/// Cost of making sure that a row returned in order is still in the index, where the table is not
/// read: a descent and a pass through a leaf, in `cpu_operator_cost`.
const STILL_THERE: f64 = 150.0;
/// Cost of fetching a row that sketches let through and comparing its signature, beyond the
/// server's own cost of a row, in `cpu_operator_cost`. Of 3,000 rows nearly all were let through:
/// 1.7 us for each, where a nested loop of sequential scans takes a tenth.
const RECHECK: f64 = 60.0;

/// Cost of a scan, as the planner asks for it.
pub struct Estimate {
    pub startup: f64,
    pub total: f64,
    /// Share of the table's rows that are fetched.
    pub selectivity: f64,
    /// Pages of the index that are read.
    pub pages: f64,
}

/// Estimates the cost of a scan.
///
/// # Safety
/// `root` is the planner's state, `path` one over an index of this access method, which the planner
/// has locked.
pub unsafe fn estimate(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    loop_count: f64,
) -> Estimate {
    // SAFETY: the caller's promise.
    unsafe {
        let info = &*(*path).indexinfo;
        let on_standby =
            (*path).path.pathtype == pg_sys::NodeTag::T_IndexOnlyScan && backend::in_recovery();
        if on_standby {
            // For a query that needs no column the server does not ask whether the index can
            // return any. On a standby, where replay does not wait for a scan that stays on a
            // leaf, the rows themselves are looked at: the plan is made from the path's type.
            (*path).path.pathtype = pg_sys::NodeTag::T_IndexScan;
        }
        let quals = pg_sys::get_quals_from_indexclauses((*path).indexclauses);
        let with_predicate = pg_sys::add_predicate_to_index_quals((*path).indexinfo, quals);
        let rel = (*info.rel).relid as i32;
        let join = pg_sys::JoinType::JOIN_INNER;
        let share =
            pg_sys::clauselist_selectivity(root, with_predicate, rel, join, core::ptr::null_mut());
        let rows = (share * (*info.rel).tuples).max(1.0);

        let loops = Loops {
            root,
            info,
            count: loop_count,
        };
        let quals = PathQuals::of(root, path);
        let work = Work::of(info, &quals, rows);
        let unit = pg_sys::cpu_operator_cost;
        let startup = loops.cost(&work.to_first) + unit * IN_ORDER * work.sorted_first;
        let mut each = pg_sys::cpu_index_tuple_cost;
        if quals.order != Order::None {
            let index_only = (*path).path.pathtype == pg_sys::NodeTag::T_IndexOnlyScan;
            let check = if index_only { STILL_THERE } else { 0.0 };
            let keep = if work.sorted_first > 0.0 {
                0.0
            } else {
                IN_ORDER
            };
            each += unit * (check + keep);
        }
        let rechecked = work.fetched * (*info.rel).tuples;
        let mut total =
            startup + loops.cost(&work.to_all) + rows * each + rechecked * RECHECK * unit;
        if on_standby {
            // The server goes on to count the pages that are not all visible.
            total += visible_pages_cost(root, info, rows);
        }
        Estimate {
            startup,
            total,
            selectivity: share.max(work.fetched),
            pages: work.to_all.leaves.min(f64::from(info.pages)),
        }
    }
}

/// The cost of the table's pages that the server leaves out of an index-only scan of so many rows.
unsafe fn visible_pages_cost(
    root: *mut pg_sys::PlannerInfo,
    info: &pg_sys::IndexOptInfo,
    rows: f64,
) -> f64 {
    let (mut random, mut sequential) = (0.0, 0.0);
    // SAFETY: the planner's state, from `estimate`.
    unsafe {
        let table = &*info.rel;
        let place = table.reltablespace;
        pg_sys::get_tablespace_page_costs(place, &raw mut random, &raw mut sequential);
        let pages = pg_sys::index_pages_fetched(rows, table.pages, info.pages.into(), root);
        pages * table.allvisfrac * random
    }
}

/// A part of a scan's way through the index.
#[derive(Clone, Copy, Default)]
struct Reads {
    descents: f64,
    leaves: f64,
}

impl Reads {
    fn times(self, factor: f64) -> Self {
        Reads {
            descents: self.descents * factor,
            leaves: self.leaves * factor,
        }
    }

    /// As far as `done` has not read it.
    fn without(self, done: Reads) -> Self {
        Reads {
            descents: (self.descents - done.descents).max(0.0),
            leaves: (self.leaves - done.leaves).max(0.0),
        }
    }
}

/// Number of searches of an index that the planner expects, one after the other.
struct Loops<'a> {
    root: *mut pg_sys::PlannerInfo,
    info: &'a pg_sys::IndexOptInfo,
    count: f64,
}

impl Loops<'_> {
    /// Cost of one search's reads.
    unsafe fn cost(&self, reads: &Reads) -> f64 {
        let pages = f64::from(self.info.pages.max(1));
        let leaves = reads.leaves.min(pages);
        let (mut random, mut sequential) = (0.0, 0.0);
        // SAFETY: the planner's state, from `estimate`.
        let io = unsafe {
            pg_sys::get_tablespace_page_costs(
                self.info.reltablespace,
                &raw mut random,
                &raw mut sequential,
            );
            if self.count > 1.0 {
                // Searched again and again, an index is found ever more in the cache.
                let all = leaves * self.count;
                pg_sys::index_pages_fetched(all, self.info.pages, pages, self.root) * random
                    / self.count
            } else {
                // A descent jumps to a leaf; those beside it are read in order.
                let jumps = reads.descents.min(leaves);
                jumps * random + (leaves - jumps) * sequential
            }
        };
        // SAFETY: a setting of the server.
        let unit = unsafe { pg_sys::cpu_operator_cost };
        io + unit * (reads.descents * DESCENT + reads.leaves * LEAF)
    }
}

/// Work of a search in the index.
#[derive(Default)]
struct Work {
    /// Before the first row comes, as far as it is not part of `to_all`.
    to_first: Reads,
    /// From then on until the last has come.
    to_all: Reads,
    /// Rows that are sorted before the first comes.
    sorted_first: f64,
    /// The share of the table's rows that the server will look at, as far as it is known to be
    /// more than the share of those that fulfil the conditions.
    fetched: f64,
}

impl Work {
    /// Rows come as they are found.
    fn at_once(to_all: Reads) -> Self {
        Work {
            to_all,
            ..Work::default()
        }
    }

    /// All rows, so many, are found and sorted before the first comes.
    fn sorted(to_first: Reads, rows: f64) -> Self {
        Work {
            to_first,
            sorted_first: rows,
            ..Work::default()
        }
    }

    /// `expected` rows are to come.
    fn of(info: &pg_sys::IndexOptInfo, quals: &PathQuals, expected: f64) -> Self {
        if info.hypothetical {
            // There is nothing to look into: the default layout, within its distance.
            return Work::at_once(Reads {
                descents: 4.0,
                leaves: 4.0,
            });
        }
        // The planner holds a lock on it.
        let opened = OpenRelation::index(info.indexoid, pg_sys::NoLock);
        let work = {
            let relation = opened.rel();
            with_words!(words_of(relation), N => {
                let index = Index::<N>::open(relation);
                let all = rows_of(&index.meta, f64::from(info.pages));
                // Of a scope that is given, its own rows only, however they are searched.
                let share = match quals.scope {
                    Scope::One(share) => share,
                    Scope::Without | Scope::All => 1.0,
                };
                let rows = all * share;
                let leaves = |rows: f64| (rows / leaf::usual_count(N)).max(1.0);
                let whole = Reads { descents: 1.0, leaves: leaves(rows) };
                if matches!(quals.radius, Radius::Null) {
                    let nulls = Reads { descents: 1.0, leaves: leaves(expected) };
                    Work::at_once(nulls)
                } else if let Some(bands) = index.metric.bands() {
                    Work::by_bands(bands, quals, whole, share)
                } else {
                    Work::by_distance(&index, quals, whole, rows, expected)
                }
            })
        };
        Work {
            to_first: work.to_first.times(quals.times),
            to_all: work.to_all.times(quals.times),
            ..work
        }
    }

    /// The work in an index on fingerprints, among `rows` rows, all of which `whole` reads.
    fn by_distance<const N: usize>(
        index: &Index<N>,
        quals: &PathQuals,
        whole: Reads,
        rows: f64,
        expected: f64,
    ) -> Self {
        let (bits, guaranteed) = (index.block_layout.bits(), index.block_layout.distance());
        let within = |radius: u32| {
            let plan = plan_of(&index.meta, &index.block_layout, radius, rows);
            Reads {
                descents: plan.descents,
                leaves: plan.leaves,
            }
        };
        let in_order = quals.order != Order::None;
        // Scopes stand apart: without one, a table is read whole, and sorted if need be.
        if quals.scope == Scope::All {
            let twice = whole.times(2.0);
            return if in_order {
                Work::sorted(twice, expected)
            } else {
                Work::at_once(twice)
            };
        }
        let radius = match quals.radius {
            Radius::None | Radius::Null => None,
            Radius::Unknown | Radius::Signatures(_) => Some(guaranteed),
            Radius::Default => Some(strategies::near_radius(index.layout.values.words())),
            Radius::Known(radius) => Some(radius),
        };
        match (radius, quals.order) {
            (None, Order::None) => Work::at_once(whole.times(2.0)),
            (Some(radius), Order::None) => Work::at_once(within(radius)),
            (Some(radius), Order::ByAnother) => Work::sorted(within(radius), expected),
            (radius, _) => {
                // Ring after ring: those before the last cost a third of it, as each costs a
                // quarter of the next.
                let rings = |radius| within(radius).times(4.0 / 3.0);
                let nearest = expected_nearest(bits, rows).max(guaranteed);
                let (first, last) = match radius {
                    Some(radius) if radius <= guaranteed => (within(radius), Reads::default()),
                    Some(radius) => (rings(nearest.min(radius)), rings(radius)),
                    None => (rings(nearest), Reads::default()),
                };
                // Read whole, a table is read again for those further out than could be kept.
                let read_whole = radius.is_none_or(|radius| within(radius).leaves >= whole.leaves);
                let last = if read_whole {
                    whole.times(whole_reads::<N>(expected, work_mem()))
                } else {
                    last
                };
                Work {
                    to_first: first,
                    to_all: last.without(first),
                    ..Work::default()
                }
            }
        }
    }

    /// The work in an index on signatures, among a share of its rows that `whole` reads.
    fn by_bands(bands: &Bands, quals: &PathQuals, whole: Reads, share: f64) -> Self {
        let count = bands.count() as f64;
        let mismatches = match quals.radius {
            Radius::None | Radius::Null => None,
            Radius::Known(mismatches) => Some(mismatches as usize),
            Radius::Signatures(radius) => Some(radius.mismatches(bands.hashes()).max(0) as usize),
            Radius::Unknown => Some(bands.guaranteed()),
            Radius::Default => Some(near_duplicate(bands.hashes())),
        };
        let all_scopes = quals.scope == Scope::All;
        match mismatches {
            Some(mismatches)
                if !all_scopes && (mismatches <= bands.guaranteed() || quals.approximate) =>
            {
                Work {
                    to_first: Reads {
                        descents: count,
                        leaves: count,
                    },
                    ..Work::default()
                }
            }
            mismatches => Work {
                to_all: whole,
                fetched: share
                    * mismatches.map_or(1.0, |mismatches| bands.chance_sketch(mismatches)),
                ..Work::default()
            },
        }
    }
}
