//! `amcostestimate`: what a scan costs, by the plan that it would follow.
use neardup_blocktree::bands::Bands;
use neardup_blocktree::leaf;
use neardup_blocktree::plan::expected_nearest;
use pgrx::{pg_guard, pg_sys};

use super::keys::with_words;
use super::state::{Index, plan_of, rows_of, words_of};
use super::validate;
use crate::pg::compat;
use crate::planner::planned_ball::{BallRadius, PlannedBall};
use crate::planner::selectivity;
use crate::types::signature::near_duplicate;

// Measured against a sequential scan that calls `<~>` for each row, on one machine: that scan sets
// the server's cost units at some 5 us. A descent takes a tenth, a leaf in the cache a twentieth.
/// What it costs to come down from the root to a leaf, in `cpu_operator_cost`.
const DESCENT: f64 = 40.0;
/// What it costs to measure the distances of a leaf, in `cpu_operator_cost`.
const LEAF: f64 = 20.0;
/// What it costs to fetch a row that sketches let through and to compare its signature, beyond what
/// the server counts for a row, in `cpu_operator_cost`. Of 3,000 rows nearly all were let through:
/// 1.7 us for each, where a nested loop of sequential scans takes a tenth.
const RECHECK: f64 = 60.0;

/// Estimates the cost of a scan.
#[pg_guard]
#[expect(clippy::too_many_arguments, reason = "the server's signature")]
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
        if (*path).path.pathtype == pg_sys::NodeTag::T_IndexOnlyScan && pg_sys::RecoveryInProgress()
        {
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
        let search = Search::of(root, path);
        let work = Work::of(info, &search, !(*path).indexorderbys.is_null());
        *startup_cost = loops.cost(&work.to_first);
        if search.scope == Scope::All && !(*path).indexorderbys.is_null() {
            *startup_cost += rows * rows.log2() * 2.0 * pg_sys::cpu_operator_cost;
        }
        let rechecked = work.fetched * (*info.rel).tuples;
        *total_cost = loops.cost(&work.to_all)
            + rows * pg_sys::cpu_index_tuple_cost
            + rechecked * RECHECK * pg_sys::cpu_operator_cost
            + *startup_cost;
        *selectivity = share.max(work.fetched);
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
    /// The share of the table's rows that the server will look at, as far as it is known to be
    /// more than the share of those that fulfil the conditions.
    fetched: f64,
}

impl Work {
    unsafe fn of(info: &pg_sys::IndexOptInfo, search: &Search, ordered: bool) -> Self {
        let at_once = |to_all| Work {
            to_first: Reads::default(),
            to_all,
            fetched: 0.0,
        };
        if info.hypothetical {
            // There is nothing to look into: the default design, within its distance.
            return at_once(Reads {
                descents: 4.0,
                leaves: 4.0,
            });
        }
        // SAFETY: the planner holds a lock on the index.
        unsafe {
            let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
            let relation = pg_sys::index_open(info.indexoid, no_lock);
            let work = with_words!(words_of(relation), N => {
                let index = Index::<N>::open(relation);
                let all = rows_of(&index.meta, f64::from(info.pages));
                // Of a scope that is given, its own rows only, however they are searched.
                let share = match search.scope {
                    Scope::One(share) => share,
                    Scope::Without | Scope::All => 1.0,
                };
                let rows = all * share;
                let leaves = (rows / leaf::usual_count(N)).max(1.0);
                let whole = Reads { descents: 1.0, leaves };
                let bits = index.design.bits();
                let within = |radius: u32| {
                    let plan = plan_of(&index.meta, &index.design, radius, rows);
                    Reads { descents: plan.descents, leaves: plan.leaves }
                };
                if let Some(bands) = &index.bands {
                    Work::by_bands(bands, search, whole, share)
                } else { match search.radius {
                    // Scopes stand apart: without one, a table is read whole.
                    // Ordered, its rows are sorted before the first is given.
                    _ if search.scope == Scope::All && ordered => Work {
                        to_first: whole.times(2.0),
                        to_all: Reads::default(),
                        fetched: 0.0,
                    },
                    _ if search.scope == Scope::All => at_once(whole.times(2.0)),
                    Radius::None if ordered => {
                        // Ring after ring: those before the last cost a third of it, as each
                        // costs a quarter of the next.
                        let rings = within(expected_nearest(bits, rows)).times(4.0 / 3.0);
                        Work { to_first: rings, to_all: whole.times(4.0), fetched: 0.0 }
                    }
                    Radius::None => at_once(whole.times(2.0)),
                    Radius::Unknown | Radius::Signatures(_) => {
                        at_once(within(index.design.distance()))
                    }
                    Radius::Default => {
                        at_once(within(validate::near_radius(index.layout.fingerprint_words)))
                    }
                    Radius::Known(radius) => at_once(within(radius)),
                } }
            });
            pg_sys::index_close(relation, no_lock);
            Work {
                to_first: work.to_first.times(search.times),
                to_all: work.to_all.times(search.times),
                fetched: work.fetched,
            }
        }
    }

    /// What is to be done in an index on signatures, among a share of its rows that `whole` reads.
    fn by_bands(bands: &Bands, search: &Search, whole: Reads, share: f64) -> Self {
        let count = bands.count() as f64;
        let mismatches = match search.radius {
            Radius::None => None,
            Radius::Known(mismatches) => Some(mismatches as usize),
            Radius::Signatures(radius) => Some(radius.mismatches(bands.hashes()).max(0) as usize),
            Radius::Unknown => Some(bands.guaranteed()),
            Radius::Default => Some(near_duplicate(bands.hashes())),
        };
        let all_scopes = search.scope == Scope::All;
        match mismatches {
            Some(mismatches)
                if !all_scopes && (mismatches <= bands.guaranteed() || search.approximate) =>
            {
                Work {
                    to_first: Reads {
                        descents: count,
                        leaves: count,
                    },
                    to_all: Reads::default(),
                    fetched: 0.0,
                }
            }
            mismatches => Work {
                to_first: Reads::default(),
                to_all: whole,
                fetched: share
                    * mismatches.map_or(1.0, |mismatches| bands.chance_sketch(mismatches)),
            },
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
    /// That of `~=`.
    Default,
    Known(u32),
    /// That of a ball of signatures, whose length the index knows.
    Signatures(BallRadius),
}

/// The scope of a search.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// The index has none.
    Without,
    /// Some columns of it are not given.
    All,
    /// One, which has this share of the rows.
    One(f64),
}

/// What an index path's conditions ask of the index.
struct Search {
    /// The narrowest radius, which a scan follows.
    radius: Radius,
    scope: Scope,
    /// How often the index is searched: once for each element of an array.
    times: f64,
    /// Whether bands may miss rows.
    approximate: bool,
}

impl Search {
    unsafe fn of(root: *mut pg_sys::PlannerInfo, path: *const pg_sys::IndexPath) -> Self {
        // SAFETY: conditions of an index path are RestrictInfos around operators with the column
        // on the left.
        unsafe {
            let info = &*(*path).indexinfo;
            let last = info.nkeycolumns - 1;
            let mut search = Search {
                radius: Radius::None,
                scope: Scope::Without,
                times: 1.0,
                approximate: false,
            };
            let mut given = vec![false; last as usize];
            let mut on_scope = core::ptr::null_mut();
            for clause in list((*path).indexclauses) {
                let clause = &*clause.cast::<pg_sys::IndexClause>();
                let column = i32::from(clause.indexcol);
                for qual in list(clause.indexquals) {
                    if column < last {
                        given[column as usize] = true;
                        on_scope = pg_sys::lappend(on_scope, qual);
                    } else {
                        search.take(root, info, qual.cast());
                    }
                }
            }
            if last > 0 {
                search.scope = Scope::All;
                if given.iter().all(|&given| given) {
                    let (rel, join) = ((*info.rel).relid as i32, pg_sys::JoinType::JOIN_INNER);
                    let no_join = core::ptr::null_mut();
                    let share = pg_sys::clauselist_selectivity(root, on_scope, rel, join, no_join);
                    search.scope = Scope::One(share);
                }
            }
            search
        }
    }

    /// Takes in one more condition on the fingerprint.
    unsafe fn take(
        &mut self,
        root: *mut pg_sys::PlannerInfo,
        info: &pg_sys::IndexOptInfo,
        qual: *mut pg_sys::RestrictInfo,
    ) {
        // SAFETY: as in `of`; constants are of the operators' types.
        unsafe {
            let clause = (*qual).clause;
            if (*clause).type_ == pg_sys::NodeTag::T_ScalarArrayOpExpr {
                let clause = clause.cast::<pg_sys::ScalarArrayOpExpr>();
                let array = pg_sys::list_nth((*clause).args, 1).cast();
                self.times *= compat::estimate_array_length(root, array).max(1.0);
                self.radius = Radius::Known(0);
                return;
            }
            if (*clause).type_ != pg_sys::NodeTag::T_OpExpr {
                return;
            }
            let clause = clause.cast::<pg_sys::OpExpr>();
            let argument = pg_sys::list_nth((*clause).args, 1).cast::<pg_sys::Node>();
            let family = *info.opfamily.add(info.nkeycolumns as usize - 1);
            let strategy = pg_sys::get_op_opfamily_strategy((*clause).opno, family);
            if strategy as u16 == validate::WITHIN
                && let Some(ball) = PlannedBall::of_operand(root, (*clause).opno, argument)
            {
                self.approximate |= ball.approximate;
                self.radius = match (self.radius, ball.radius) {
                    (known @ Radius::Known(_), _) => known,
                    (_, Some(radius)) => Radius::Signatures(radius),
                    (Radius::None, None) => Radius::Unknown,
                    (other, None) => other,
                };
                return;
            }
            let radius = match strategy as u16 {
                validate::EQUAL => Radius::Known(0),
                strategy => match selectivity::known_radius(root, (*clause).opno, argument) {
                    // Nothing lies within a radius below zero.
                    Some(radius) => Radius::Known(radius.clamp(0, u32::MAX.into()) as u32),
                    None if strategy == validate::NEAR => Radius::Default,
                    None => Radius::Unknown,
                },
            };
            self.radius = match (self.radius, radius) {
                (Radius::Known(a), Radius::Known(b)) => Radius::Known(a.min(b)),
                (Radius::Known(a), _) => Radius::Known(a),
                (_, radius) => radius,
            };
        }
    }
}

/// The elements of a list of the server's.
///
/// # Safety
/// The list is null or alive as long as the iterator.
unsafe fn list(list: *mut pg_sys::List) -> impl Iterator<Item = *mut core::ffi::c_void> {
    // SAFETY: the caller's promise.
    let length = unsafe { pg_sys::list_length(list) };
    // SAFETY: within the list.
    (0..length).map(move |i| unsafe { pg_sys::list_nth(list, i) })
}
