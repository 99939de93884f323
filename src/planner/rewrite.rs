//! From comparisons of distances to operators that an index knows.
//!
//! | written | planned |
//! |---|---|
//! | `a <~> b` | `a <#> b`, relabelled as `hamming` |
//! | `fp <~> q <= r`, `r >= q <~> fp` | `fp <@ ball(q, r)` |
//! | `fp <~> q < r` | `fp <@ ball(q, r - 1)` |
//! | `fp <~> q > r` | `NOT fp <@ ball(q, r)` |
//! | `fp <~> q = r` | `fp <@ ball(q, r)`, and unless `r` is 0, `fp <#> q = r` as well |
//! | the same with columns on both sides | `neardup_within(a, b, r)`, from which either side's index gets `<@` |
//! | `distance_column <= r` | the server's own integer comparison |
//!
//! The server calls these functions with expressions whose arguments are already simplified, and
//! takes the result as it is, so what can be folded to a constant must be folded here.
use pgrx::pg_sys::{self, CoercionForm, Datum, Node, NodeTag, Oid, PlannerInfo};

use super::catalog::{Catalog, Kind, catalog};
use super::nodes;
use super::within::within;
use crate::pg::call::{Call, export};

/// A comparison of a distance with a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl Comparison {
    /// The comparison that holds for `(b, a)` whenever this one holds for `(a, b)`.
    pub fn commuted(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Greater => Comparison::Less,
            symmetric => symmetric,
        }
    }
}

/// `left <#> right`, found below a comparison.
struct Distance<'a> {
    kind: &'a Kind,
    left: *mut Node,
    right: *mut Node,
    /// The operator expression itself, of type int4.
    expression: *mut Node,
}

/// The answer to a request that is not handled: a null pointer, which is not SQL NULL.
pub const UNHANDLED: Datum = Datum::null();

/// The answer to a request that is handled if there is a replacement.
pub fn answer(replacement: Option<*mut Node>) -> Datum {
    replacement.map_or(UNHANDLED, Datum::from)
}

/// The request to simplify a function call, if that is what the server asks for.
pub fn simplify_request(call: &Call) -> Option<*mut pg_sys::SupportRequestSimplify> {
    // SAFETY: support functions are called with one of the server's request nodes.
    unsafe {
        nodes::downcast(
            call.arg(0).cast_mut_ptr(),
            NodeTag::T_SupportRequestSimplify,
        )
    }
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
        let Some(kind) = catalog.by_fingerprint(nodes::types(left).1) else {
            return UNHANDLED;
        };
        let none = pg_sys::InvalidOid;
        let operator = kind.distance_operator;
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
fn comparison_support(call: &mut Call, comparison: Comparison) -> Datum {
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

/// A comparison of a distance by one of the server's own operators on integers; `None` if neither
/// side is a distance, or if `comparison` finds the operator to be another.
///
/// # Safety
/// `root` is the planner's state, `left` and `right` are expressions that have been simplified.
pub unsafe fn server_comparison(
    catalog: &Catalog,
    root: *mut PlannerInfo,
    left: *mut Node,
    right: *mut Node,
    comparison: impl FnOnce() -> Option<Comparison>,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(distance) = distance_below(catalog, left) {
            rewrite(catalog, root, &distance, comparison()?, right)
        } else {
            let distance = distance_below(catalog, right)?;
            rewrite(catalog, root, &distance, comparison()?.commuted(), left)
        }
    }
}

/// The `<#>` below the relabelling that `distance_support` has put around it.
///
/// # Safety
/// `node` points to an expression.
unsafe fn distance_below(catalog: &Catalog, node: *mut Node) -> Option<Distance<'_>> {
    // SAFETY: the tag is checked before the fields are read.
    unsafe {
        let expression = nodes::strip_relabel(node);
        let operator: *mut pg_sys::OpExpr = nodes::downcast(expression, NodeTag::T_OpExpr)?;
        let kind = catalog
            .kinds
            .iter()
            .find(|kind| kind.distance_operator == (*operator).opno)?;
        let [left, right] = nodes::elements((*operator).args)?;
        Some(Distance {
            kind,
            left,
            right,
            expression,
        })
    }
}

/// `distance comparison radius` in terms of balls.
///
/// # Safety
/// `root` is null or the planner's state, `radius` an expression of an integer type.
unsafe fn rewrite(
    catalog: &Catalog,
    root: *mut PlannerInfo,
    distance: &Distance,
    comparison: Comparison,
    radius: *mut Node,
) -> Option<*mut Node> {
    // SAFETY: all expressions come from the server's request and are put together with the types
    // that the operators are declared with.
    unsafe {
        let bits = distance.kind.traits.bits;
        let ball = |below| -> Option<*mut Node> {
            Some(within(
                root,
                distance.kind,
                distance.left,
                distance.right,
                radius_expression(catalog, bits, radius, below)?,
            ))
        };
        match comparison {
            Comparison::LessOrEqual => ball(false),
            Comparison::Less => ball(true),
            Comparison::Greater => ball(false).map(|ball| nodes::not(ball)),
            Comparison::GreaterOrEqual => ball(true).map(|ball| nodes::not(ball)),
            Comparison::Equal if nodes::constant_integer(radius) == Some(0) => ball(false),
            Comparison::NotEqual if nodes::constant_integer(radius) == Some(0) => {
                ball(false).map(|ball| nodes::not(ball))
            }
            // Both conditions evaluate the arguments; that is only right if it costs nothing.
            Comparison::Equal
                if [distance.left, distance.right, radius]
                    .iter()
                    .all(|node| trivial(*node)) =>
            {
                let exactly = integer_comparison(comparison, distance.expression, radius)?;
                Some(pg_sys::make_andclause(nodes::list([ball(false)?, exactly])).cast())
            }
            Comparison::Equal | Comparison::NotEqual => {
                integer_comparison(comparison, distance.expression, radius)
            }
        }
    }
}

/// The radius as int4, or the greatest whole number below it.
///
/// # Safety
/// `radius` is an expression.
unsafe fn radius_expression(
    catalog: &Catalog,
    bits: u32,
    radius: *mut Node,
    below: bool,
) -> Option<*mut Node> {
    // SAFETY: casts and functions are chosen by the expression's own type.
    unsafe {
        if let Some(constant) = nodes::constant_integer(radius) {
            let constant = if below {
                constant.saturating_sub(1)
            } else {
                constant
            };
            return Some(nodes::int4(constant.clamp(-1, bits.into()) as i32));
        }
        let cast = |function: u32, result: Oid, argument| {
            nodes::call(
                Oid::from_u32(function),
                result,
                [argument],
                CoercionForm::COERCE_IMPLICIT_CAST,
            )
        };
        let (int4, int8) = (pg_sys::INT4OID, pg_sys::INT8OID);
        let plain = |base| nodes::relabel(radius, base);
        let bring_in_range = |function, wide| {
            nodes::call(function, int4, [wide], CoercionForm::COERCE_EXPLICIT_CALL)
        };
        Some(match (nodes::types(radius).1, below) {
            (base @ pg_sys::INT2OID, false) => cast(pg_sys::F_INT4_INT2, int4, plain(base)),
            (base @ pg_sys::INT4OID, false) => plain(base),
            (base @ pg_sys::INT8OID, false) => bring_in_range(catalog.radius, plain(base)),
            (base @ pg_sys::INT2OID, true) => bring_in_range(
                catalog.radius_below,
                cast(pg_sys::F_INT8_INT2, int8, plain(base)),
            ),
            (base @ pg_sys::INT4OID, true) => bring_in_range(
                catalog.radius_below,
                cast(pg_sys::F_INT8_INT4, int8, plain(base)),
            ),
            (base @ pg_sys::INT8OID, true) => bring_in_range(catalog.radius_below, plain(base)),
            _ => return None,
        })
    }
}

/// The server's own comparison of integers, which every index, join and statistic knows.
///
/// # Safety
/// Both are expressions.
unsafe fn integer_comparison(
    comparison: Comparison,
    left: *mut Node,
    right: *mut Node,
) -> Option<*mut Node> {
    let strategy = match comparison {
        Comparison::Less => pg_sys::BTLessStrategyNumber,
        Comparison::LessOrEqual => pg_sys::BTLessEqualStrategyNumber,
        Comparison::Equal | Comparison::NotEqual => pg_sys::BTEqualStrategyNumber,
        Comparison::GreaterOrEqual => pg_sys::BTGreaterEqualStrategyNumber,
        Comparison::Greater => pg_sys::BTGreaterStrategyNumber,
    };
    // SAFETY: the operator is looked up by the two base types, to which the arguments are relabelled.
    unsafe {
        let (left_type, right_type) = (nodes::types(left).1, nodes::types(right).1);
        let family = pg_sys::INTEGER_BTREE_FAM_OID;
        let mut operator =
            pg_sys::get_opfamily_member(family, left_type, right_type, strategy as i16);
        if comparison == Comparison::NotEqual && operator != pg_sys::InvalidOid {
            operator = pg_sys::get_negator(operator);
        }
        (operator != pg_sys::InvalidOid).then(|| {
            nodes::operator(
                operator,
                nodes::relabel(left, left_type),
                nodes::relabel(right, right_type),
            )
        })
    }
}

/// Whether an argument of a comparison can no longer turn into a distance of two fingerprints.
/// A column of a subquery can: the comparison may be moved down to where the column is computed.
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

/// Whether evaluating an expression once more costs nothing.
///
/// # Safety
/// `node` points to an expression.
unsafe fn trivial(node: *mut Node) -> bool {
    // SAFETY: as the caller promises.
    let tag = unsafe { nodes::tag(nodes::strip_relabel(node)) };
    matches!(tag, NodeTag::T_Var | NodeTag::T_Const | NodeTag::T_Param)
}

export! {
    guarded "neardup_distance_support" => distance_support;
    guarded "neardup_lt_support" => |call: &mut Call| comparison_support(call, Comparison::Less);
    guarded "neardup_le_support" => |call: &mut Call| comparison_support(call, Comparison::LessOrEqual);
    guarded "neardup_eq_support" => |call: &mut Call| comparison_support(call, Comparison::Equal);
    guarded "neardup_ne_support" => |call: &mut Call| comparison_support(call, Comparison::NotEqual);
    guarded "neardup_ge_support" => |call: &mut Call| comparison_support(call, Comparison::GreaterOrEqual);
    guarded "neardup_gt_support" => |call: &mut Call| comparison_support(call, Comparison::Greater);
}
