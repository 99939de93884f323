//! Conditions that are written with the server's own comparison operators.
//!
//! `<%>` returns a domain over float8, so that clients see a number. A bound such as `0.2` is a
//! numeric, and for (domain over float8, numeric) the parser takes the server's own operator on two
//! float8, which has no support function of this extension. An operator of the extension's own for
//! that pair of types is no way out: integers, too, can be brought to the domain, so that
//! `1 <= 2.5` would be ambiguous in every query of the database. An untyped parameter has the type
//! of the operator found, and is to be a float8, which every driver can send, not the domain.
//!
//! The same holds for an untyped parameter that is compared with a `hamming`, which is to be an
//! integer, and for `(fp <~> q)::int <= 3`.
//!
//! So the conditions are rewritten one step later: after the planner has simplified them, and
//! before it assigns them to relations. `get_relation_info_hook` runs just there. It is installed
//! when the library is loaded, which needs no preloading: `<%>` has a support function, which the
//! planner calls while it simplifies the very conditions that are to be rewritten.
//!
//! Conditions on a UNION ALL have been assigned already when its parts are opened. They are
//! rewritten where they then stand, from where the planner copies them to each part.
use core::cell::Cell;

use pgrx::pg_sys::{Oid, PlannerInfo, RelOptInfo};
use pgrx::{pg_guard, pg_sys};

use super::catalog;
use super::comparison::comparison_of;
use super::{forms, jaccard};
use crate::pg::expr::Form;
use crate::pg::planned_conditions::PlannedRelation;

thread_local! {
    /// The hook that stood there before.
    static PREVIOUS: Cell<pg_sys::get_relation_info_hook_type> = const { Cell::new(None) };
}

/// Installs the hook.
pub fn install() {
    // SAFETY: the server loads the library once, and runs in one thread.
    unsafe {
        PREVIOUS.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(relation_info);
    }
}

/// Called by the planner for each table of a query, when it has read the table's indexes.
#[pg_guard]
unsafe extern "C-unwind" fn relation_info(
    root: *mut PlannerInfo,
    table: Oid,
    has_children: bool,
    rel: *mut RelOptInfo,
) {
    // SAFETY: the planner passes its state and the relation that it is about to plan.
    let relation = unsafe {
        if let Some(previous) = PREVIOUS.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, table, has_children, rel));
        }
        PlannedRelation::new(root, rel)
    };
    rewrite_conditions(&relation);
}

/// Brings comparisons with estimates of signatures and distances of fingerprints into terms of
/// balls.
fn rewrite_conditions(relation: &PlannedRelation) {
    // A backend that has not met the extension's operators has nothing to rewrite.
    let Some(catalog) = catalog::current() else {
        return;
    };
    let planner = relation.planner;
    relation.replace_comparisons(|condition, truth_only| {
        forms::rewritten(&catalog, planner, condition, truth_only).or_else(|| {
            let Form::Operator(operator, operands) = condition.form() else {
                return None;
            };
            let of_floats = || comparison_of(operator, pg_sys::FLOAT8OID);
            jaccard::comparison(&catalog, planner, operands.elements()?, of_floats)
        })
    });
}
