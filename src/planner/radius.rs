//! Converts the number with which a distance is compared: to a radius of type int4, or to an
//! operand of the server's own integer comparisons.
use pgrx::pg_sys;

use super::catalog::Catalog;
use super::comparison::Comparison;
use crate::types::hamming_float;
use neardup_pg::catalog;
use neardup_pg::expr::Expr;
use neardup_pg::planner::Planner;

/// Rounding of a number with which a distance is compared. Distances are integers, so the rounded
/// number gives the same result in the comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Largest integer not above the number, for `distance <= number`.
    Floor,
    /// Largest integer below the number, for `distance < number`.
    Below,
    /// The number if it is an integer, otherwise -1, which no distance equals; for
    /// `distance = number`.
    Whole,
}

/// Converts the constant `number` to a radius. The result is from -1 (a ball with this radius is
/// empty) to `bits`, the width of the fingerprints. `None` if `number` is not a constant of an
/// integer or floating-point type.
fn constant_radius(number: Expr, rounding: Rounding, bits: u32) -> Option<i32> {
    let radius = constant(number, rounding)?;
    let bits = i64::from(bits);
    Some(match rounding {
        Rounding::Whole if radius > bits => -1,
        _ => radius.clamp(-1, bits) as i32,
    })
}

/// Returns the rounded value of a constant; `None` if `number` is not a constant of an integer or
/// floating-point type.
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

/// Converts `number`, with which a distance is compared, to a radius. The result is an expression
/// of type int4. `rounding` follows from the comparison, and `bits` is the width of the
/// fingerprints. `None` if the extension has no comparison of a distance with the type of `number`.
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

/// Returns a comparison of two integers by the server's own operator, which indexes, joins and
/// statistics support. Replaces a floating-point constant by an integer that gives the same result
/// in the comparison. `None` if no integer gives the same result, or if an operand is neither an
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

/// Converts a comparison of an int4 with a floating-point number to a comparison with an int4
/// constant. `None` if no such comparison gives the same result for every int4.
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
