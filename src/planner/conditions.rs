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
use super::catalog;
use super::{forms, jaccard, order};
use neardup_pg::planned_conditions::{self, PlannedRelation};

/// Installs the hook.
pub fn install() {
    planned_conditions::install(rewrite_conditions);
}

/// Brings comparisons with estimates of signatures and distances of fingerprints into terms of
/// balls, and orders by similarity into terms of distances.
fn rewrite_conditions(relation: &PlannedRelation) {
    // A backend that has not met the extension's operators has nothing to rewrite.
    let Some(catalog) = catalog::current() else {
        return;
    };
    let planner = relation.planner;
    relation.replace_comparisons(|condition, place| {
        forms::rewritten(&catalog, planner, condition, place.truth_only)
            .or_else(|| jaccard::rewritten(&catalog, planner, condition, place))
    });
    relation.replace_order(|by| order::rewritten(&catalog, planner, &by));
}
