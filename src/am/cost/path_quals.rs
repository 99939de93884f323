//! The conditions and the order of an index path, as far as the planner can know them.
use pgrx::pg_sys;

use crate::am::strategies;
use crate::pg::compat;
use crate::pg::expr::Expr;
use crate::pg::planner::Planner;
use crate::planner::planned_ball::{BallRadius, PlannedBall, SignatureRadius};

/// The radius of a search as far as the planner can know it.
#[derive(Clone, Copy)]
pub enum Radius {
    /// There is no condition.
    None,
    /// Rows without a fingerprint are asked for.
    Null,
    /// Known only when the query runs.
    Unknown,
    /// That of `~=`.
    Default,
    Known(u32),
    /// That of a ball of signatures, whose length the index knows.
    Signatures(SignatureRadius),
}

/// The order in which rows are asked for.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    /// None.
    None,
    /// By the distance from the centre of the condition, if there is one: ring after ring.
    ByCenter,
    /// By the distance from something else than the condition's centre.
    ByAnother,
}

/// The scope of a search.
#[derive(Clone, Copy, PartialEq)]
pub enum Scope {
    /// The index has none.
    Without,
    /// Some columns of it are not given.
    All,
    /// One, which has this share of the rows.
    One(f64),
}

/// An index path's conditions and order, as the planner knows them.
pub struct PathQuals {
    /// The narrowest radius, which a scan follows.
    pub radius: Radius,
    /// The centre of that radius; null if it is not known, or there is none.
    center: *mut pg_sys::Node,
    pub order: Order,
    pub scope: Scope,
    /// Number of searches: one for each element of an array.
    pub times: f64,
    /// True if bands may miss rows.
    pub approximate: bool,
}

impl PathQuals {
    /// Reads the conditions and the order of a path.
    ///
    /// # Safety
    /// `root` is the planner's state, `path` a path over an index of this access method.
    pub unsafe fn of(root: *mut pg_sys::PlannerInfo, path: *const pg_sys::IndexPath) -> Self {
        // SAFETY: conditions of an index path are RestrictInfos around operators with the column
        // on the left.
        unsafe {
            let info = &*(*path).indexinfo;
            let last = info.nkeycolumns - 1;
            let mut quals = PathQuals {
                radius: Radius::None,
                center: core::ptr::null_mut(),
                order: Order::None,
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
                        // Rows with any value stand in many scopes.
                        given[column as usize] |= !is_not_null(qual.cast());
                        on_scope = pg_sys::lappend(on_scope, qual);
                    } else {
                        quals.take(root, info, qual.cast());
                    }
                }
            }
            if last > 0 {
                quals.scope = Scope::All;
                if given.iter().all(|&given| given) {
                    let (rel, join) = ((*info.rel).relid as i32, pg_sys::JoinType::JOIN_INNER);
                    let no_join = core::ptr::null_mut();
                    let share = pg_sys::clauselist_selectivity(root, on_scope, rel, join, no_join);
                    quals.scope = Scope::One(share);
                }
            }
            if let Some(first) = list((*path).indexorderbys).next() {
                let by = first.cast::<pg_sys::OpExpr>();
                let from = pg_sys::list_nth((*by).args, 1).cast::<core::ffi::c_void>();
                let has_radius = matches!(
                    quals.radius,
                    Radius::Unknown | Radius::Default | Radius::Known(_)
                );
                let same = !quals.center.is_null() && pg_sys::equal(quals.center.cast(), from);
                quals.order = if has_radius && !same {
                    Order::ByAnother
                } else {
                    Order::ByCenter
                };
            }
            quals
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
            if (*clause).type_ == pg_sys::NodeTag::T_NullTest && !is_not_null(qual) {
                self.radius = Radius::Null;
            }
            if (*clause).type_ != pg_sys::NodeTag::T_OpExpr {
                return;
            }
            let clause = clause.cast::<pg_sys::OpExpr>();
            let argument = pg_sys::list_nth((*clause).args, 1).cast::<pg_sys::Node>();
            let family = *info.opfamily.add(info.nkeycolumns as usize - 1);
            let strategy = pg_sys::get_op_opfamily_strategy((*clause).opno, family);
            let (planner, operand) = (Planner::new(root), Expr::new(argument));
            let ball = PlannedBall::of_operand(planner, (*clause).opno, operand);
            self.approximate |= ball.as_ref().is_some_and(|ball| ball.approximate);
            let radius = match (strategy as u16, ball.as_ref().and_then(|ball| ball.radius)) {
                (strategies::EQUAL, _) => Radius::Known(0),
                // Nothing lies within a radius below zero.
                (_, Some(BallRadius::Bits(radius))) => Radius::Known(radius.max(0) as u32),
                (_, Some(BallRadius::Signatures(radius))) => Radius::Signatures(radius),
                (strategies::NEAR, None) => Radius::Default,
                (_, None) => Radius::Unknown,
            };
            let is_narrower = match (self.radius, radius) {
                (Radius::Known(a), Radius::Known(b)) => b < a,
                (Radius::Known(_), _) | (Radius::Signatures(_), Radius::Unknown) => false,
                (_, _) => true,
            };
            if is_narrower {
                self.radius = radius;
                self.center = match ball {
                    Some(ball) if strategy as u16 == strategies::WITHIN => {
                        ball.center.map_or(core::ptr::null_mut(), Expr::as_ptr)
                    }
                    _ => argument,
                };
            }
        }
    }
}

/// Returns whether a condition is `IS NOT NULL`.
unsafe fn is_not_null(qual: *mut pg_sys::RestrictInfo) -> bool {
    // SAFETY: as in `PathQuals::of`.
    unsafe {
        let test = (*qual).clause.cast::<pg_sys::NullTest>();
        (*test).xpr.type_ == pg_sys::NodeTag::T_NullTest
            && (*test).nulltesttype == pg_sys::NullTestType::IS_NOT_NULL
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
