//! Finds comparisons of distances and similarities that use the server's own operators, and
//! replaces them by conditions that indexes support.
//!
//! `<%>` returns a domain over float8, so that clients see a number. A bound such as `0.2` is a
//! numeric. For (domain over float8, numeric) the parser chooses the server's own operator on two
//! float8, which has no support function of this extension. The extension cannot declare its own
//! operator for these types: integers also convert to the domain, so `1 <= 2.5` would be ambiguous
//! in every query of the database. Also, an untyped parameter gets the type of the operator's
//! operand. This type must be float8, which every driver can send, not the domain.
//!
//! The same applies to `(fp <~> q)::int <= 3`, and to a `hamming` compared with an untyped
//! parameter, which must become an integer.
//!
//! So these conditions are rewritten in `get_relation_info_hook`: after the planner has simplified
//! them, and before it assigns them to relations. Loading the library installs the hook. The
//! library need not be preloaded: `<%>` has a support function, which the planner calls while it
//! simplifies the same conditions.
//!
//! In a UNION ALL, the conditions have already been assigned when the planner opens the relations
//! of the UNION's parts. They are rewritten in the parent relation, from which the planner copies
//! them to each part.
use super::catalog;
use super::{distance_forms, jaccard, order};
use neardup_pg::planned_conditions::{self, PlannedRelation};

/// Installs `rewrite_conditions` as `get_relation_info_hook`. Called when the library is loaded.
pub fn install() {
    planned_conditions::install(rewrite_conditions);
}

/// Rewrites a relation's comparisons of distances and similarities to conditions that indexes
/// support, such as `fp <@ ball(q, r)`. A ball contains all values within the radius `r` of the
/// value `q`. Rewrites ORDER BY a similarity to ORDER BY a distance.
fn rewrite_conditions(relation: &PlannedRelation) {
    // If this backend has not used the extension's operators, there is nothing to rewrite.
    let Some(catalog) = catalog::current() else {
        return;
    };
    let planner = relation.planner;
    relation.replace_comparisons(|condition, context| {
        distance_forms::rewritten(&catalog, planner, condition, context.truth_only)
            .or_else(|| jaccard::rewritten(&catalog, planner, condition, context))
    });
    relation.replace_order(|by| order::rewritten(&catalog, planner, &by));
}
