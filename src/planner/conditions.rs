//! Conditions that are written with the server's own comparison operators.
//!
//! `<%>` returns a domain over float8, so that clients see a number. A bound such as `0.2` is a
//! numeric. For (domain over float8, numeric) the parser chooses the server's own operator on two
//! float8, which has no support function of this extension. The extension cannot declare its own
//! operator for that pair of types: integers also convert to the domain, so `1 <= 2.5` would be
//! ambiguous in every query of the database. An untyped parameter gets the type of the operator's
//! operand. This must be float8, which every driver can send, not the domain.
//!
//! The same applies to an untyped parameter that is compared with a `hamming`, which must be an
//! integer, and to `(fp <~> q)::int <= 3`.
//!
//! So the conditions are rewritten one step later: after the planner has simplified them, and
//! before it assigns them to relations, in `get_relation_info_hook`. Loading the library installs
//! the hook. No preloading is needed: `<%>` has a support function, which the planner calls while
//! it simplifies the same conditions.
//!
//! Conditions on a UNION ALL have already been assigned when its parts are opened. They are
//! rewritten in the parent, from which the planner copies them to each part.
use super::catalog;
use super::{forms, jaccard, order};
use neardup_pg::planned_conditions::{self, PlannedRelation};

/// Installs the hook.
pub fn install() {
    planned_conditions::install(rewrite_conditions);
}

/// Rewrites comparisons of estimates and of distances to balls, and orders by similarity to orders
/// by distance.
fn rewrite_conditions(relation: &PlannedRelation) {
    // A backend that has not used the extension's operators has nothing to rewrite.
    let Some(catalog) = catalog::current() else {
        return;
    };
    let planner = relation.planner;
    relation.replace_comparisons(|condition, context| {
        forms::rewritten(&catalog, planner, condition, context.truth_only)
            .or_else(|| jaccard::rewritten(&catalog, planner, condition, context))
    });
    relation.replace_order(|by| order::rewritten(&catalog, planner, &by));
}
