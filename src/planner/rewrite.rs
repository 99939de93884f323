//! From comparisons of distances to operators that an index knows.
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
//! From `_neardup_within` the index of either side gets `<@` ([`super::within`]).
//!
//! A floating-point `r` is rounded down to an integer first, or becomes -1 where it is to be equal.
//!
//! The server calls these functions with expressions whose arguments are already simplified, and
//! takes the result as it is, so what can be folded to a constant must be folded here.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, PlannerInfo};

use super::catalog::{Catalog, Hamming, Metric, catalog};
use super::comparison::Comparison;
use super::nodes;
use super::radius::{self, Rounding, integer_comparison};
use super::support::{UNHANDLED, answer, simplify_request};
use super::within::{at_distance, within};
use crate::pg::fmgr::{Call, export};

/// `left <#> right`, found below a comparison.
pub struct Distance<'a> {
    pub metric: &'a Metric,
    pub hamming: &'a Hamming,
    pub left: *mut Node,
    pub right: *mut Node,
    /// The operator expression itself, of type int4.
    expression: *mut Node,
}

/// Behind the operator `<~>`: plans it as `<#>`, whose plain integer can be an index's order.
fn distance_support(call: &mut Call) -> Datum {
    let Some(request) = simplify_request(call) else {
        return UNHANDLED;
    };
    let Some(catalog) = catalog(call.function_oid()) else {
        return UNHANDLED;
    };
    // SAFETY: the request holds a call of the function behind `<~>`, whose two arguments have the
    // type of the operator `<#>` that is chosen by them.
    unsafe {
        let Some([left, right]) = nodes::elements((*(*request).fcall).args) else {
            return UNHANDLED;
        };
        let Some(metric) = catalog.by_value(nodes::types(left).1) else {
            return UNHANDLED;
        };
        let none = pg_sys::InvalidOid;
        let operator = metric.distance_operator;
        let bits = pg_sys::make_opclause(
            operator,
            pg_sys::INT4OID,
            false,
            left.cast(),
            right.cast(),
            none,
            none,
        );
        pg_sys::set_opfuncid(bits.cast());
        answer(Some(nodes::relabel(bits.cast(), catalog.hamming)))
    }
}

/// Behind the comparisons of distances with integers.
fn support(call: &mut Call, comparison: Comparison) -> Datum {
    let Some(request) = simplify_request(call) else {
        return UNHANDLED;
    };
    let Some(catalog) = catalog(call.function_oid()) else {
        return UNHANDLED;
    };
    // SAFETY: the request holds a call of a comparison with two arguments.
    unsafe {
        let root = (*request).root;
        let Some([left, right]) = nodes::elements((*(*request).fcall).args) else {
            return UNHANDLED;
        };
        answer(if let Some(distance) = distance_below(&catalog, left) {
            rewrite(&catalog, root, &distance, comparison, right)
        } else if let Some(distance) = distance_below(&catalog, right) {
            rewrite(&catalog, root, &distance, comparison.commuted(), left)
        } else if settled(&catalog, root, left) && settled(&catalog, root, right) {
            integer_comparison(comparison, left, right)
        } else {
            None
        })
    }
}

/// The `<#>` below the relabelling that `distance_support` has put around it.
///
/// # Safety
/// `node` points to an expression.
pub unsafe fn distance_below(catalog: &Catalog, node: *mut Node) -> Option<Distance<'_>> {
    // SAFETY: the tag is checked before the fields are read.
    unsafe {
        let expression = nodes::strip_relabel(node);
        let operator: *mut pg_sys::OpExpr = nodes::downcast(expression, NodeTag::T_OpExpr)?;
        let metric = catalog.by_distance((*operator).opno)?;
        let [left, right] = nodes::elements((*operator).args)?;
        Some(Distance {
            metric,
            hamming: metric.hamming()?,
            left,
            right,
            expression,
        })
    }
}

/// `distance comparison number` in terms of balls.
///
/// # Safety
/// `root` is null or the planner's state, `number` an expression of a type that the comparisons
/// are declared with.
pub unsafe fn rewrite(
    catalog: &Catalog,
    root: *mut PlannerInfo,
    distance: &Distance,
    comparison: Comparison,
    number: *mut Node,
) -> Option<*mut Node> {
    // SAFETY: all expressions come from the server's request and are put together with the types
    // that the operators are declared with.
    unsafe {
        let bits = distance.hamming.traits.bits;
        let (left, right) = (distance.left, distance.right);
        let ball = |rounding| -> Option<*mut Node> {
            let radius = radius::expression(catalog, bits, number, rounding)?;
            Some(within(root, distance.metric, left, right, &[radius]))
        };
        let at_distance = || -> Option<*mut Node> {
            let exactly = radius::expression(catalog, bits, number, Rounding::Whole)?;
            Some(match nodes::constant_integer(exactly) {
                Some(0) => within(root, distance.metric, left, right, &[exactly]),
                _ => at_distance(distance.hamming, left, right, exactly),
            })
        };
        match comparison {
            Comparison::LessOrEqual => ball(Rounding::Floor),
            Comparison::Less => ball(Rounding::Below),
            Comparison::Greater => ball(Rounding::Floor).map(|ball| nodes::not(ball)),
            Comparison::GreaterOrEqual => ball(Rounding::Below).map(|ball| nodes::not(ball)),
            // An equality with a column may be what two tables are joined or merged by, which
            // takes an operator of the server.
            Comparison::Equal | Comparison::NotEqual
                if pg_sys::contain_vars_of_level(number, 0) =>
            {
                let equal = integer_comparison(comparison, distance.expression, number)?;
                // Both conditions evaluate the arguments; that is only right if it costs nothing.
                let indexable = comparison == Comparison::Equal
                    && [left, right, number].iter().all(|node| trivial(*node));
                if !indexable {
                    return Some(equal);
                }
                let near = ball(Rounding::Floor)?;
                Some(pg_sys::make_andclause(nodes::list([near, equal])).cast())
            }
            Comparison::Equal => at_distance(),
            Comparison::NotEqual => at_distance().map(|equal| nodes::not(equal)),
        }
    }
}

/// Returns whether an argument of a comparison can no longer turn into a distance of two
/// fingerprints. A column of a subquery can: the comparison may be moved down to where the column
/// is computed.
///
/// # Safety
/// `root` is null or the planner's state, `node` an expression.
unsafe fn settled(catalog: &Catalog, root: *mut PlannerInfo, node: *mut Node) -> bool {
    // SAFETY: tags are checked before casts, and a variable of this query level has its entry in
    // the range table of the planner's state. Without that state (expressions stored in the
    // catalogue) variables are columns of a table.
    unsafe {
        if nodes::types(node).0 != catalog.hamming {
            return true;
        }
        let node = nodes::strip_relabel(node);
        match nodes::tag(node) {
            NodeTag::T_Const | NodeTag::T_Param => true,
            NodeTag::T_Var => {
                let var: *mut pg_sys::Var = node.cast();
                if root.is_null() || (*var).varlevelsup > 0 {
                    return true;
                }
                let tables = (*(*root).parse).rtable;
                let position = (*var).varno as i64 - 1;
                if tables.is_null() || !(0..i64::from((*tables).length)).contains(&position) {
                    return false;
                }
                let entry: *mut pg_sys::RangeTblEntry =
                    pg_sys::list_nth(tables, position as core::ffi::c_int).cast();
                (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
            }
            _ => false,
        }
    }
}

/// Returns whether evaluating an expression once more costs nothing.
///
/// # Safety
/// `node` points to an expression.
unsafe fn trivial(node: *mut Node) -> bool {
    // SAFETY: as the caller promises.
    let tag = unsafe { nodes::tag(nodes::strip_relabel(node)) };
    matches!(tag, NodeTag::T_Var | NodeTag::T_Const | NodeTag::T_Param)
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
