//! Further forms of conditions on a distance, which consist of the server's own operators alone.
//!
//! | written | planned as |
//! |---|---|
//! | `(fp <~> q)::int <= r`, `::bigint`, `::numeric`, `::float8` | `fp <~> q <= r` |
//! | `fp <~> q <= 2.5` | `fp <~> q <= 2`; the number may be a parameter |
//! | `(fp <~> q) + 1 <= 4`, `64 - (fp <~> q) >= 61` | `fp <~> q <= 3` |
//! | `coalesce(fp <~> q, 64) <= 3` | `fp <~> q <= 3`, where NULL counts as false |
//! | `fp <~> q IN (0, 1, 2, 5)` | `fp <~> q <= 2 OR fp <~> q = 5` |
//!
//! `conditions` calls this when the planner has simplified a query's conditions.
use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid, PlannerInfo};

use super::catalog::Catalog;
use super::comparison::{Comparison, comparison_of};
use super::nodes;
use super::rewrite::{Distance, distance_below, rewrite};
use super::within::{at_distance, within};

/// Elements of a list that are looked at: each may become a search.
const LONGEST_LIST: usize = 64;

/// One side of a comparison: a distance, or the negative of one, and a number that is added.
struct Side<'a> {
    distance: Distance<'a>,
    negated: bool,
    offset: i64,
    /// The number that stands for NULL.
    of_null: Option<i64>,
}

/// A condition on a distance in a form that indexes know; `None` if it is no such condition.
/// `truth_only`: the condition may be false where it was NULL, and the other way round.
///
/// # Safety
/// `root` is the planner's state, `node` a simplified expression.
pub unsafe fn rewritten(
    catalog: &Catalog,
    root: *mut PlannerInfo,
    node: *mut Node,
    truth_only: bool,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises; tags are checked before casts.
    unsafe {
        if let Some(any) = nodes::downcast(node, NodeTag::T_ScalarArrayOpExpr) {
            return one_of(catalog, root, any);
        }
        let operator: *mut pg_sys::OpExpr = nodes::downcast(node, NodeTag::T_OpExpr)?;
        let [left, right] = nodes::elements((*operator).args)?;
        let comparison = || {
            [pg_sys::INT4OID, pg_sys::NUMERICOID, pg_sys::FLOAT8OID]
                .into_iter()
                .find_map(|number| comparison_of((*operator).opno, number))
        };
        if let Some(side) = side(catalog, left) {
            compared(catalog, root, &side, comparison()?, right, truth_only)
        } else {
            let side = side(catalog, right)?;
            compared(
                catalog,
                root,
                &side,
                comparison()?.commuted(),
                left,
                truth_only,
            )
        }
    }
}

/// Reads one side of a comparison.
///
/// # Safety
/// `node` is an expression.
unsafe fn side<'a>(catalog: &'a Catalog, node: *mut Node) -> Option<Side<'a>> {
    // SAFETY: as the caller promises; tags are checked before casts.
    unsafe {
        let node = without_casts(node);
        if let Some(distance) = distance_below(catalog, node) {
            return Some(Side {
                distance,
                negated: false,
                offset: 0,
                of_null: None,
            });
        }
        if let Some(coalesce) =
            nodes::downcast::<pg_sys::CoalesceExpr>(node, NodeTag::T_CoalesceExpr)
        {
            let [first, second] = nodes::elements((*coalesce).args)?;
            return Some(Side {
                distance: distance_below(catalog, without_casts(first))?,
                negated: false,
                offset: 0,
                of_null: Some(nodes::constant_integer(second)?),
            });
        }
        let operator: *mut pg_sys::OpExpr = nodes::downcast(node, NodeTag::T_OpExpr)?;
        let [left, right] = nodes::elements((*operator).args)?;
        let function = pg_sys::get_opcode((*operator).opno).to_u32();
        let (distance, number, negated, sign) = match function {
            pg_sys::F_INT4PL => match nodes::constant_integer(right) {
                Some(number) => (left, number, false, 1),
                None => (right, nodes::constant_integer(left)?, false, 1),
            },
            pg_sys::F_INT4MI => match nodes::constant_integer(right) {
                Some(number) => (left, number, false, -1),
                None => (right, nodes::constant_integer(left)?, true, 1),
            },
            _ => return None,
        };
        // Near the greatest integers the sum is an error, which it is to remain.
        if number.abs() > i64::from(i32::MAX) / 2 {
            return None;
        }
        Some(Side {
            distance: distance_below(catalog, distance)?,
            negated,
            offset: sign * number,
            of_null: None,
        })
    }
}

/// The expression below casts of an integer that keep its value.
///
/// # Safety
/// `node` is an expression.
unsafe fn without_casts(node: *mut Node) -> *mut Node {
    // SAFETY: as the caller promises; the tag is checked before the cast.
    unsafe {
        let node = nodes::strip_relabel(node);
        let Some(call) = nodes::downcast::<pg_sys::FuncExpr>(node, NodeTag::T_FuncExpr) else {
            return node;
        };
        let keeps = matches!(
            (*call).funcid.to_u32(),
            pg_sys::F_INT8_INT4 | pg_sys::F_NUMERIC_INT4 | pg_sys::F_FLOAT8_INT4
        );
        match nodes::elements((*call).args) {
            Some([argument]) if keeps => nodes::strip_relabel(argument),
            _ => node,
        }
    }
}

/// `side comparison number` in terms of balls.
///
/// # Safety
/// As for [`rewritten`].
unsafe fn compared(
    catalog: &Catalog,
    root: *mut PlannerInfo,
    side: &Side,
    comparison: Comparison,
    number: *mut Node,
    truth_only: bool,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises.
    unsafe {
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        // An equality with a column is in its final form: tables are joined by it.
        if is_equality && pg_sys::contain_vars_of_level(number, 0) {
            return None;
        }
        if let Some(of_null) = side.of_null {
            let number = nodes::constant_integer(number)?;
            if !truth_only || comparison.holds(of_null, number) {
                return None;
            }
        }
        if !side.negated && side.offset == 0 {
            return rewrite(catalog, root, &side.distance, comparison, number);
        }
        let number = nodes::constant_integer(number)?;
        let (comparison, number) = if side.negated {
            (comparison.commuted(), side.offset.checked_sub(number)?)
        } else {
            (comparison, number.checked_sub(side.offset)?)
        };
        let number = nodes::int4(i32::try_from(number).ok()?);
        rewrite(catalog, root, &side.distance, comparison, number)
    }
}

/// `distance = ANY (list)`: those from 0 on are one ball, others are asked for one by one.
///
/// # Safety
/// As for [`rewritten`].
unsafe fn one_of(
    catalog: &Catalog,
    root: *mut PlannerInfo,
    any: *mut pg_sys::ScalarArrayOpExpr,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises.
    unsafe {
        let [left, array] = nodes::elements((*any).args)?;
        let distance = distance_below(catalog, without_casts(left))?;
        let is_equality = pg_sys::get_oprrest((*any).opno) == Oid::from_u32(pg_sys::F_EQSEL);
        if !(*any).useOr || !is_equality {
            return None;
        }
        let mut wanted = integers(array)?;
        wanted.retain(|number| (0..=i64::from(distance.hamming.traits.bits)).contains(number));
        wanted.sort_unstable();
        wanted.dedup();
        let ball = (0..)
            .zip(&wanted)
            .take_while(|(n, wanted)| n == *wanted)
            .count();
        let (hamming, left, right) = (distance.hamming, distance.left, distance.right);
        let mut parts: Vec<*mut Node> = wanted[ball..]
            .iter()
            .map(|number| at_distance(hamming, left, right, nodes::int4(*number as i32)))
            .collect();
        if ball > 0 {
            let radius = nodes::int4(ball as i32 - 1);
            parts.insert(0, within(root, distance.metric, left, right, &[radius]));
        }
        match parts[..] {
            [] => Some(at_distance(hamming, left, right, nodes::int4(-1))),
            [only] => Some(only),
            [first, ..] => {
                let mut list = nodes::list([first]);
                for part in &parts[1..] {
                    list = pg_sys::lappend(list, part.cast());
                }
                Some(pg_sys::make_orclause(list).cast())
            }
        }
    }
}

/// The elements of a constant array of integers; `None` if there are too many, or NULL among them.
///
/// # Safety
/// `node` is an expression.
unsafe fn integers(node: *mut Node) -> Option<Vec<i64>> {
    // SAFETY: as the caller promises; a constant of an array type is an array.
    unsafe {
        let array = nodes::constant(node)?;
        let element = pg_sys::get_element_type(nodes::types(node).1);
        let (length, align) = match element {
            pg_sys::INT2OID => (2, pg_sys::TYPALIGN_SHORT),
            pg_sys::INT4OID => (4, pg_sys::TYPALIGN_INT),
            pg_sys::INT8OID => (8, pg_sys::TYPALIGN_DOUBLE),
            _ => return None,
        };
        let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        let mut values: *mut Datum = core::ptr::null_mut();
        let mut nulls: *mut bool = core::ptr::null_mut();
        let mut count = 0;
        pg_sys::deconstruct_array(
            array,
            element,
            length,
            true,
            align as core::ffi::c_char,
            &raw mut values,
            &raw mut nulls,
            &raw mut count,
        );
        let count = count as usize;
        if count > LONGEST_LIST {
            return None;
        }
        (0..count)
            .map(|n| {
                let value = (*values.add(n)).value();
                let number = match element {
                    pg_sys::INT2OID => i64::from(value as i16),
                    pg_sys::INT4OID => i64::from(value as i32),
                    _ => value as i64,
                };
                (!*nulls.add(n)).then_some(number)
            })
            .collect()
    }
}
