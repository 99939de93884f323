//! Rewrites comparisons of Hamming distances to operators that indexes support. Most become
//! `fp <@ ball(q, radius)`: the fingerprint is in the ball, which contains all fingerprints within
//! the radius of `q`.
//!
//! | written | planned |
//! |---|---|
//! | `a <~> b` | `a <#> b`, relabelled as `hamming` |
//! | `fp <~> q <= r`, `r >= q <~> fp` | `fp <@ ball(q, r)` |
//! | `fp <~> q < r` | `fp <@ ball(q, r - 1)` |
//! | `fp <~> q > r` | `NOT fp <@ ball(q, r)` |
//! | `fp <~> q = 0` | `fp <@ ball(q, 0)` |
//! | `fp <~> q = r` | `_neardup_at_distance(fp, q, r)`, for which an index is searched by `<@` |
//! | `fp <~> q = column` | `fp <@ ball(q, column)` and the server's `fp <#> q = column` |
//! | the same with columns on both sides | `_neardup_within(a, b, r)` |
//! | `distance_column <= r` | the server's own integer comparison |
//!
//! [`super::within`] turns `_neardup_within` into `<@` for an index on either argument.
//!
//! A floating-point `r` is rounded down first. In an equality, an `r` that is not an integer
//! becomes -1, which no distance equals.
//!
//! The server calls the support functions with simplified arguments and does not simplify their
//! results. So this file must fold constants itself.
use neardup_blocktree::metric::Metric;
use pgrx::pg_sys::{Datum, Oid};

use super::catalog::{Catalog, SearchedType, catalog};
use super::comparison::Comparison;
use super::radius::{self, Rounding, integer_comparison};
use super::within::within;
use neardup_pg::expr::{Expr, ExprKind};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::planner::Planner;
use neardup_pg::planner_request::{SupportRequest, UNHANDLED, replaced_by};

/// A call of `left <#> right`, the Hamming distance as an integer, in a comparison.
pub struct Distance<'c, 'a> {
    /// Type of the two values.
    pub searched: &'c SearchedType,
    /// Width of the fingerprints in bits.
    pub bits: u32,
    /// The operands of `<#>`.
    pub values: [Expr<'a>; 2],
    /// The call itself, an expression of type int4.
    expression: Expr<'a>,
    /// OID of `_neardup_at_distance` for the type of the two values, see
    /// [`SearchedType::at_distance_function`].
    at_distance_function: Oid,
}

impl<'a> Distance<'_, 'a> {
    /// Returns the condition that the distance is exactly `number`.
    pub fn equals(&self, planner: Planner<'a>, number: Expr<'a>) -> Expr<'a> {
        let [left, right] = self.values;
        planner.call(self.at_distance_function, &[left, right, number])
    }
}

/// Answers the planner's request to simplify a call with two arguments. `rewrite` gets the
/// arguments and returns the expression that replaces the call, or `None` to keep the call.
fn simplify(
    call: &Call,
    rewrite: impl for<'a> FnOnce(&Catalog, Planner<'a>, [Expr<'a>; 2]) -> Option<Expr<'a>>,
) -> Datum {
    let SupportRequest::Simplify(planner, arguments) = call.support_request() else {
        return UNHANDLED;
    };
    let replacement = catalog(call.function_oid())
        .and_then(|catalog| rewrite(&catalog, planner, arguments.elements()?));
    replaced_by(replacement)
}

/// Support function of `<~>`: replaces `a <~> b` by `a <#> b`, which returns a plain integer,
/// because indexes support ORDER BY `<#>`.
fn distance_support(call: &mut Call) -> Datum {
    simplify(call, |catalog, planner, [left, right]| {
        let searched = catalog.by_value(left.base_type())?;
        let bits = planner.operator(searched.distance_operator, left, right);
        Some(bits.relabelled(catalog.hamming))
    })
}

/// Support function of the operators that compare a distance with a number or with another
/// distance. `comparison` is the comparison that the operator makes.
fn support(call: &mut Call, comparison: Comparison) -> Datum {
    simplify(call, |catalog, planner, [left, right]| {
        if let Some(distance) = distance_below(catalog, left) {
            rewrite(catalog, planner, &distance, comparison, right)
        } else if let Some(distance) = distance_below(catalog, right) {
            rewrite(catalog, planner, &distance, comparison.commuted(), left)
        } else if is_final(catalog, planner, left) && is_final(catalog, planner, right) {
            integer_comparison(planner, comparison, left, right)
        } else {
            None
        }
    })
}

/// Parses an expression that is a call of `<#>`; `None` for other expressions. Ignores the type
/// relabelling that `distance_support` adds around the call.
pub fn distance_below<'c, 'a>(
    catalog: &'c Catalog,
    expression: Expr<'a>,
) -> Option<Distance<'c, 'a>> {
    let expression = expression.strip_relabel();
    let ExprKind::Operator(operator, operands) = expression.kind() else {
        return None;
    };
    let searched = catalog.by_distance(operator)?;
    let Metric::Hamming { bits } = searched.metric else {
        return None;
    };
    Some(Distance {
        searched,
        bits,
        values: operands.elements()?,
        expression,
        at_distance_function: searched.at_distance_function?,
    })
}

/// Rewrites `distance comparison number` to a condition with a ball, to a call of
/// `_neardup_at_distance`, or to the negation of one of them. An equality with a column remains a
/// comparison of integers, because joins need it. Returns `None` if the extension cannot compare a
/// distance with the type of `number`.
pub fn rewrite<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    distance: &Distance<'_, 'a>,
    comparison: Comparison,
    number: Expr<'a>,
) -> Option<Expr<'a>> {
    let bits = distance.bits;
    let values = distance.values;
    let radius = |rounding| radius::expression(catalog, planner, bits, number, rounding);
    let ball = |rounding| {
        Some(within(
            planner,
            distance.searched,
            values,
            &[radius(rounding)?],
        ))
    };
    let at_distance = || {
        let exactly = radius(Rounding::Whole)?;
        Some(match exactly.integer() {
            Some(0) => within(planner, distance.searched, values, &[exactly]),
            _ => distance.equals(planner, exactly),
        })
    };
    let not = |condition| planner.not(condition);
    match comparison {
        Comparison::LessOrEqual => ball(Rounding::Floor),
        Comparison::Less => ball(Rounding::Below),
        Comparison::Greater => ball(Rounding::Floor).map(not),
        Comparison::GreaterOrEqual => ball(Rounding::Below).map(not),
        // Keep an operator of the server for an equality with a column, because joins need it.
        Comparison::Equal | Comparison::NotEqual if number.has_columns() => {
            let equal = integer_comparison(planner, comparison, distance.expression, number)?;
            // The replacement evaluates the arguments twice, so they must cost nothing.
            let indexable = comparison == Comparison::Equal
                && values.into_iter().chain([number]).all(is_trivial);
            if !indexable {
                return Some(equal);
            }
            Some(planner.and(ball(Rounding::Floor)?, equal))
        }
        Comparison::Equal => at_distance(),
        Comparison::NotEqual => at_distance().map(not),
    }
}

/// Returns whether `argument`, an operand of a comparison, is final: no later step of planning
/// replaces it by a distance of two fingerprints. If both operands are final, [`support`] replaces
/// the comparison by the server's own comparison of integers. Otherwise the extension's operator
/// must stay, because after the replacement it can become a condition that indexes support.
///
/// Also returns true if [`super::conditions`] sees the comparison after the later step, because it
/// also rewrites the server's own operators. An example is a column that comes from DISTINCT or
/// GROUP BY. The server moves the comparison below DISTINCT or GROUP BY, to where the column is
/// computed. From version 18.6 on, it moves only its own operators, because it knows that they
/// agree with the equality that groups the rows. So the comparison needs such an operator before.
fn is_final(catalog: &Catalog, planner: Planner, argument: Expr) -> bool {
    if argument.type_oid() != catalog.hamming {
        return true;
    }
    match argument.strip_relabel().kind() {
        ExprKind::Constant(_) | ExprKind::Parameter => true,
        ExprKind::Column { entry, levels_up } => planner.can_rewrite_on(entry, levels_up),
        _ => false,
    }
}

/// Returns whether evaluating an expression twice costs nothing: it is a column, a constant or a
/// parameter.
pub fn is_trivial(expression: Expr) -> bool {
    let form = expression.strip_relabel().kind();
    matches!(
        form,
        ExprKind::Column { .. } | ExprKind::Constant(_) | ExprKind::Parameter
    )
}

export! {
    guarded "_neardup_distance_support" => distance_support;
    guarded "_neardup_lt_support" => |call: &mut Call| support(call, Comparison::Less);
    guarded "_neardup_le_support" => |call: &mut Call| support(call, Comparison::LessOrEqual);
    guarded "_neardup_eq_support" => |call: &mut Call| support(call, Comparison::Equal);
    guarded "_neardup_ne_support" => |call: &mut Call| support(call, Comparison::NotEqual);
    guarded "_neardup_ge_support" => |call: &mut Call| support(call, Comparison::GreaterOrEqual);
    guarded "_neardup_gt_support" => |call: &mut Call| support(call, Comparison::Greater);
}
