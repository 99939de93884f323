//! Converts the number in a comparison of a distance with a number. The result is a radius of type
//! int4 for an index search, or an operand of one of the server's own integer comparisons.
use pgrx::pg_sys;

use super::catalog::Catalog;
use super::comparison::Comparison;
use crate::types::hamming_float;
use neardup_pg::catalog;
use neardup_pg::expr::Expr;
use neardup_pg::planner::Planner;

/// Rounding of the number in a comparison of a distance with a number. Distances are integers, so a
/// comparison with the rounded number can give the same result: `distance <= rounded` for `Floor`
/// and `Below`, and `distance = rounded` for `Whole`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Largest integer that is at most the number, for `distance <= number`.
    Floor,
    /// Largest integer below the number, for `distance < number`.
    Below,
    /// The number if it is an integer, otherwise -1, for `distance = number`. No distance is -1, so
    /// the comparison is false.
    Whole,
}

/// Rounds the constant `number` by `rounding`, and limits the result to a radius from -1 to `bits`,
/// the width of the fingerprints. A ball with radius -1 is empty. A number above `bits` becomes
/// `bits`, or -1 for `Rounding::Whole`, because no distance equals it. Returns `None` if `number`
/// is not a constant of an integer or floating-point type.
fn constant_radius(number: Expr, rounding: Rounding, bits: u32) -> Option<i32> {
    let radius = constant(number, rounding)?;
    let bits = i64::from(bits);
    Some(match rounding {
        Rounding::Whole if radius > bits => -1,
        _ => radius.clamp(-1, bits) as i32,
    })
}

/// Returns the constant `number`, rounded by `rounding`; `None` if `number` is not a constant of an
/// integer or floating-point type.
fn constant(number: Expr, rounding: Rounding) -> Option<i64> {
    if let Some(integer) = number.integer() {
        return Some(match rounding {
            Rounding::Below => integer.saturating_sub(1),
            Rounding::Floor | Rounding::Whole => integer,
        });
    }
    let float = number.float()?;
    Some(i64::from(match rounding {
        Rounding::Floor => hamming_float::radius_at_most(float),
        Rounding::Below => hamming_float::radius_below(float),
        Rounding::Whole => hamming_float::radius_equal(float),
    }))
}

/// Converts `number`, with which a query compares a distance, to a radius. The radius is an
/// expression of type int4. `rounding` follows from the comparison operator, and `bits` is the
/// width of the fingerprints. Returns `None` if the extension cannot compare a distance with the
/// type of `number`.
pub fn expression<'a>(
    catalog: &Catalog,
    planner: Planner<'a>,
    bits: u32,
    number: Expr<'a>,
    rounding: Rounding,
) -> Option<Expr<'a>> {
    if let Some(constant) = constant_radius(number, rounding, bits) {
        return Some(planner.int4(constant));
    }
    let base = number.base_type();
    let plain = number.relabelled(base);
    let of_rounding = |[floor, below, whole]: [pg_sys::Oid; 3]| match rounding {
        Rounding::Floor => floor,
        Rounding::Below => below,
        Rounding::Whole => whole,
    };
    Some(match (base, rounding) {
        (pg_sys::INT2OID, Rounding::Floor | Rounding::Whole) => {
            planner.cast(pg_sys::F_INT4_INT2, plain)
        }
        (pg_sys::INT4OID, Rounding::Floor | Rounding::Whole) => plain,
        (pg_sys::INT8OID, Rounding::Floor | Rounding::Whole) => {
            planner.call(catalog.radius, &[plain])
        }
        (pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID, Rounding::Below) => {
            let wide = match base {
                pg_sys::INT2OID => planner.cast(pg_sys::F_INT8_INT2, plain),
                pg_sys::INT4OID => planner.cast(pg_sys::F_INT8_INT4, plain),
                _ => plain,
            };
            planner.call(catalog.radius_below, &[wide])
        }
        (pg_sys::FLOAT4OID | pg_sys::FLOAT8OID, _) => {
            let wide = match base {
                pg_sys::FLOAT8OID => plain,
                _ => planner.cast(pg_sys::F_FLOAT8_FLOAT4, plain),
            };
            planner.call(of_rounding(catalog.float_radii), &[wide])
        }
        (pg_sys::NUMERICOID, _) => {
            let radius = planner.call(of_rounding(catalog.numeric_radii), &[plain]);
            if plain.value().is_none() {
                return Some(radius);
            }
            let rounding = match rounding {
                Rounding::Whole => Rounding::Whole,
                _ => Rounding::Floor,
            };
            planner.int4(constant_radius(planner.simplified(radius), rounding, bits)?)
        }
        _ => return None,
    })
}

/// Returns the comparison `left comparison right` by the server's own operator on integers, which
/// indexes, joins and statistics support. Replaces a floating-point constant by an integer that
/// gives the same result. Returns `None` if no integer does so, or if an operand is neither an
/// integer nor such a constant.
pub fn integer_comparison<'a>(
    planner: Planner<'a>,
    comparison: Comparison,
    left: Expr<'a>,
    right: Expr<'a>,
) -> Option<Expr<'a>> {
    if let Some(number) = right.float() {
        let (comparison, right) = to_integer(comparison, number)?;
        return integer_comparison(planner, comparison, left, planner.int4(right));
    }
    if let Some(number) = left.float() {
        let (comparison, left) = to_integer(comparison.commuted(), number)?;
        return integer_comparison(planner, comparison.commuted(), planner.int4(left), right);
    }
    let strategy = match comparison {
        Comparison::Less => pg_sys::BTLessStrategyNumber,
        Comparison::LessOrEqual => pg_sys::BTLessEqualStrategyNumber,
        Comparison::Equal | Comparison::NotEqual => pg_sys::BTEqualStrategyNumber,
        Comparison::GreaterOrEqual => pg_sys::BTGreaterEqualStrategyNumber,
        Comparison::Greater => pg_sys::BTGreaterStrategyNumber,
    };
    let family = pg_sys::INTEGER_BTREE_FAM_OID;
    let (left_type, right_type) = (left.base_type(), right.base_type());
    let mut operator = catalog::family_member(family, left_type, right_type, strategy)?;
    if comparison == Comparison::NotEqual {
        operator = catalog::operator(operator)?.oprnegate;
    }
    Some(planner.operator(
        operator,
        left.relabelled(left_type),
        right.relabelled(right_type),
    ))
}

/// Converts a comparison of an int4 with the floating-point number `number` to a comparison with an
/// int4 constant. Returns the comparison, which may be a different one, and the constant. `None` if
/// no such comparison gives the same result for every int4.
fn to_integer(comparison: Comparison, number: f64) -> Option<(Comparison, i32)> {
    // Beyond these limits, an int4 constant would give other results for the largest integers.
    if number.is_nan() || number.abs() >= f64::from(i32::MAX) {
        return None;
    }
    Some(match comparison {
        Comparison::Less => (Comparison::LessOrEqual, hamming_float::radius_below(number)),
        Comparison::LessOrEqual => (
            Comparison::LessOrEqual,
            hamming_float::radius_at_most(number),
        ),
        Comparison::Greater => (Comparison::Greater, hamming_float::radius_at_most(number)),
        Comparison::GreaterOrEqual => (Comparison::Greater, hamming_float::radius_below(number)),
        // The replacement -1 for a fraction is wrong here, because an integer, unlike a distance,
        // may be -1.
        Comparison::Equal | Comparison::NotEqual if number.fract() != 0.0 => return None,
        Comparison::Equal | Comparison::NotEqual => (comparison, number as i32),
    })
}

/// Converts a float8 or float4 expression to float8; `None` for other types.
pub fn as_float8<'a>(planner: Planner<'a>, expression: Expr<'a>) -> Option<Expr<'a>> {
    let base = expression.base_type();
    let plain = expression.relabelled(base);
    match base {
        pg_sys::FLOAT8OID => Some(plain),
        pg_sys::FLOAT4OID => Some(planner.simplified(planner.cast(pg_sys::F_FLOAT8_FLOAT4, plain))),
        _ => None,
    }
}
