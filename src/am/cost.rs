//! `amcostestimate`: what a scan costs, by the plan that it would follow.
use neardup_blocktree::design::ENTRIES_PER_LEAF;
use pgrx::{pg_guard, pg_sys};

use super::state::{Index, plan_of, rows_of};
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
        let share = pg_sys::clauselist_selectivity(
            root,
            with_predicate,
            rel,
            join,
            core::ptr::null_mut(),
        );
        let rows = (share * (*info.rel).tuples).max(1.0);

        let work = Work::of(info, radius_of(quals, info));
        // Leaves that follow each other are read in order; a descent jumps, and so does an index
        // that is searched again and again, which then finds ever more of it in the cache.
        let leaves = work.leaves.min(f64::from(info.pages.max(1)));
        let mut spc_random = 0.0;
        let mut spc_sequential = 0.0;
        pg_sys::get_tablespace_page_costs(
            info.reltablespace,
            &raw mut spc_random,
            &raw mut spc_sequential,
        );
        let io = if loop_count > 1.0 {
            let fetched = pg_sys::index_pages_fetched(
                leaves * loop_count,
                info.pages,
                f64::from(info.pages),
                root,
            );
            fetched * spc_random / loop_count
        } else {
            let jumps = work.descents.min(leaves);
            jumps * spc_random + (leaves - jumps) * spc_sequential
        };
        let descents = work.descents * DESCENT * pg_sys::cpu_operator_cost;
        let cpu = work.leaves * LEAF * pg_sys::cpu_operator_cost
            + rows * pg_sys::cpu_index_tuple_cost;
        // The first row comes, on average, half way: the tables are probed one after the other.
        *startup_cost = descents / work.descents.max(1.0);
        *total_cost = io + descents + cpu;
        *selectivity = share;
        *correlation = 0.0;
        *pages = leaves;
    }
}

/// What is to be done in the index.
struct Work {
    descents: f64,
    leaves: f64,
}

impl Work {
    unsafe fn of(info: &pg_sys::IndexOptInfo, radius: Radius) -> Self {
        let pages = f64::from(info.pages);
        if info.hypothetical {
            // There is nothing to look into: the default design, within its distance.
            return Work { descents: 4.0, leaves: 4.0 };
        }
        // SAFETY: the planner holds a lock on the index.
        unsafe {
            let relation =
                pg_sys::index_open(info.indexoid, pg_sys::NoLock as pg_sys::LOCKMODE);
            let index = Index::open(relation);
            let rows = rows_of(&index.meta, pages);
            let radius = match radius {
                Radius::None => None,
                Radius::Unknown => Some(index.design.distance()),
                Radius::Known(radius) => Some(radius),
            };
            let work = match radius {
                None => Work { descents: 2.0, leaves: (rows / ENTRIES_PER_LEAF).max(1.0) },
                Some(radius) => {
                    let plan = plan_of(&index.meta, &index.design, radius, rows);
                    Work { descents: plan.descents, leaves: plan.leaves }
                }
            };
            pg_sys::index_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
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
