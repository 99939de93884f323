//! Rewrites ORDER BY a similarity to ORDER BY the Hamming distance, which indexes support.
//!
//! | written | planned |
//! |---|---|
//! | `ORDER BY fingerprint_similarity(fp, q) DESC NULLS LAST` | `ORDER BY fp <#> q` |
//! | `ORDER BY fingerprint_similarity(fp, q) DESC` | `ORDER BY fp <#|> q` |
//! | the same by `1 - s` without DESC, by `100 * s`, or by `round(s::numeric, 2)` | the same |
//!
//! In the last row, `s` is the similarity.
//!
//! DESC puts NULL first by default, and `<#|>` returns -1 for NULL. Rows with equal similarity may
//! be in any order, so ordering by distance is correct. A second ORDER BY item would order such
//! rows, so a query with two items is not rewritten.
use super::catalog::Catalog;
use super::comparison::{Comparison, comparison_of};
use super::jaccard::EstimateSide;
use neardup_pg::expr::Expr;
use neardup_pg::planned_order::Order;
use neardup_pg::planner::Planner;

/// Returns a distance expression that replaces the ORDER BY item `order`: an ascending sort by the
/// distance gives the order that the item requires. `None` if no distance gives that order.
pub fn rewritten<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    order: &Order<'a>,
) -> Option<Expr<'a>> {
    let EstimateSide { estimate, function } = EstimateSide::read(catalog, order.expression)?;
    let searched = estimate.searched;
    let nulls_first = searched.nulls_first_operator?;
    if function.replaces_null() || order.expression.is_volatile() {
        return None;
    }
    let number = order.expression.base_type();
    let ascending = match comparison_of(order.operator, number)? {
        Comparison::Less => true,
        Comparison::Greater => false,
        _ => return None,
    };
    let grows = function.is_identity() || function.grows(planner)?;
    // The similarity decreases as the distance increases, so the order must be descending in the
    // similarity.
    if ascending == grows {
        return None;
    }
    let operator = match order.nulls_first {
        true => nulls_first,
        false => searched.distance_operator,
    };
    let [left, right] = estimate
        .values
        .map(|value| value.relabelled(searched.value));
    Some(planner.operator(operator, left, right))
}
