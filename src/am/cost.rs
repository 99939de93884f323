//! `amcostestimate`: what a scan costs, by the plan that it would follow.
use neardup_blocktree::design::ENTRIES_PER_LEAF;
use neardup_blocktree::plan::{Plan, expected_nearest};
use pgrx::{pg_guard, pg_sys};

use super::state::{BITS, Index, WORDS, plan_of, rows_of};
use super::validate;
use crate::types::{Ball, Fingerprint64};

// Measured against a sequential scan that calls `<~>` for each row, on one machine: that scan sets
// the server's cost units at some 5 us. A descent takes a tenth, a leaf in the cache a twentieth.
/// What it costs to come down from the root to a leaf, in `cpu_operator_cost`.
const DESCENT: f64 = 40.0;
/// What it costs to measure the distances of a leaf, in `cpu_operator_cost`.
const LEAF: f64 = 20.0;

/// Estimates the cost of a scan.
#[pg_guard]
pub unsafe extern "C-unwind" fn estimate(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    loop_count: f64,
    startup_cost: *mut pg_sys::Cost,
    total_cost: *mut pg_sys::Cost,
    selectivity: *mut pg_sys::Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    // SAFETY: the planner passes its state, a path over an index of this access method on which it
    // holds a lock, and places for the results.
    unsafe {
        let info = &*(*path).indexinfo;
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
        let work = Work::of(
            info,
            radius_of(quals, info),
            !(*path).indexorderbys.is_null(),
        );
        *startup_cost = loops.cost(&work.to_first);
        *total_cost =
            loops.cost(&work.to_all) + rows * pg_sys::cpu_index_tuple_cost + *startup_cost;
        *selectivity = share;
        *correlation = 0.0;
        *pages = work.to_all.leaves.min(f64::from(info.pages));
    }
}

/// A part of a scan's way through the index.
#[derive(Clone, Copy, Default)]
struct Reads {
    descents: f64,
    leaves: f64,
}

impl Reads {
    fn of(plan: &Plan<WORDS>) -> Self {
        Reads {
            descents: plan.descents,
            leaves: plan.leaves,
        }
    }

    fn times(self, factor: f64) -> Self {
        Reads {
            descents: self.descents * factor,
            leaves: self.leaves * factor,
        }
    }
}

/// How often the planner expects an index to be searched, one search after the other.
struct Loops<'a> {
    root: *mut pg_sys::PlannerInfo,
    info: &'a pg_sys::IndexOptInfo,
    count: f64,
}

impl Loops<'_> {
    /// What one search's reads cost.
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

/// What is to be done in the index.
struct Work {
    /// Before the first row comes, as far as it is not part of `to_all`.
    to_first: Reads,
    /// Until the last has come.
    to_all: Reads,
}

impl Work {
    unsafe fn of(info: &pg_sys::IndexOptInfo, radius: Radius, ordered: bool) -> Self {
        if info.hypothetical {
            // There is nothing to look into: the default design, within its distance.
            let probes = Reads {
                descents: 4.0,
                leaves: 4.0,
            };
            return Work {
                to_first: Reads::default(),
                to_all: probes,
            };
        }
        // SAFETY: the planner holds a lock on the index.
        unsafe {
            let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
            let relation = pg_sys::index_open(info.indexoid, no_lock);
            let index = Index::open(relation);
            let rows = rows_of(&index.meta, f64::from(info.pages));
            let reads_within =
                |radius| Reads::of(&plan_of(&index.meta, &index.design, radius, rows));
            let whole = Reads {
                descents: 1.0,
                leaves: (rows / ENTRIES_PER_LEAF).max(1.0),
            };
            let work = match radius {
                // Ring after ring: those before the last cost a third of it, as each costs a
                // quarter of the next.
                Radius::None if ordered => Work {
                    to_first: reads_within(expected_nearest(BITS, rows)).times(4.0 / 3.0),
                    to_all: whole.times(4.0),
                },
                Radius::None => Work {
                    to_first: Reads::default(),
                    to_all: whole.times(2.0),
                },
                Radius::Unknown | Radius::Known(_) => {
                    let radius = match radius {
                        Radius::Known(radius) => radius,
                        _ => index.design.distance(),
                    };
                    Work {
                        to_first: Reads::default(),
                        to_all: reads_within(radius),
                    }
                }
            };
            pg_sys::index_close(relation, no_lock);
            work
        }
    }
}

/// The radius of a search as far as the planner can know it.
#[derive(Clone, Copy)]
enum Radius {
    /// There is no condition.
    None,
    /// Known only when the query runs.
    Unknown,
    Known(u32),
}

/// The narrowest radius among the conditions: the one that a scan follows.
unsafe fn radius_of(quals: *mut pg_sys::List, info: &pg_sys::IndexOptInfo) -> Radius {
    let mut narrowest = Radius::None;
    // SAFETY: conditions of an index path are RestrictInfos around operators with the column on
    // the left, whose constants are of the operators' types.
    unsafe {
        for i in 0..pg_sys::list_length(quals) {
            let qual = pg_sys::list_nth(quals, i).cast::<pg_sys::RestrictInfo>();
            let clause = (*qual).clause.cast::<pg_sys::OpExpr>();
            if (*clause).xpr.type_ != pg_sys::NodeTag::T_OpExpr {
                continue;
            }
            let argument = pg_sys::list_nth((*clause).args, 1).cast::<pg_sys::Const>();
            let strategy = pg_sys::get_op_opfamily_strategy((*clause).opno, *info.opfamily);
            let radius = match strategy as u16 {
                validate::NEAR => Radius::Known(validate::NEAR_RADIUS),
                validate::EQUAL => Radius::Known(0),
                _ if (*argument).xpr.type_ == pg_sys::NodeTag::T_Const
                    && !(*argument).constisnull =>
                {
                    let ball = Ball::<Fingerprint64>::from_datum((*argument).constvalue);
                    Radius::Known(u32::try_from(ball.radius).unwrap_or(0))
                }
                _ => Radius::Unknown,
            };
            narrowest = match (narrowest, radius) {
                (Radius::Known(a), Radius::Known(b)) => Radius::Known(a.min(b)),
                (Radius::Known(a), _) => Radius::Known(a),
                (_, radius) => radius,
            };
        }
    }
    narrowest
}
