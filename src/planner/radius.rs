//! The number on the other side of a comparison of a distance: as a radius, which is an int4, and
//! as an operand of the server's own comparisons.
use pgrx::pg_sys::{self, CoercionForm, Node, Oid};

use super::catalog::Catalog;
use super::comparison::Comparison;
use super::nodes;
use crate::types::hamming_float;

/// The distances that a comparison with a number admits, given as the number's counterpart among
/// the integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// The greatest integer that is not above the number: `distance <= number`.
    Floor,
    /// The greatest integer below the number: `distance < number`.
    Below,
    /// The number itself, or one that no distance is: `distance = number`.
    Whole,
}

/// The radius that a constant stands for, from -1 (no distance) to the width.
///
/// # Safety
/// `number` is an expression.
unsafe fn constant_radius(number: *mut Node, rounding: Rounding, bits: u32) -> Option<i32> {
    // SAFETY: as the caller promises.
    let radius = unsafe { constant(number, rounding) }?;
    let bits = i64::from(bits);
    Some(match rounding {
        Rounding::Whole if radius > bits => -1,
        _ => radius.clamp(-1, bits) as i32,
    })
}

/// The value of a constant of a numeric type, rounded.
///
/// # Safety
/// `number` is an expression.
unsafe fn constant(number: *mut Node, rounding: Rounding) -> Option<i64> {
    // SAFETY: as the caller promises; a constant's value is of its type.
    unsafe {
        if let Some(integer) = nodes::constant_integer(number) {
            return Some(match rounding {
                Rounding::Below => integer.saturating_sub(1),
                Rounding::Floor | Rounding::Whole => integer,
            });
        }
        let float = nodes::constant_float(number)?;
        Some(i64::from(match rounding {
            Rounding::Floor => hamming_float::floor(float),
            Rounding::Below => hamming_float::below(float),
            Rounding::Whole => hamming_float::whole(float),
        }))
    }
}

/// The radius that a number stands for, as an expression of type int4. `None` if the number's type
/// is none that the operators are declared with.
///
/// # Safety
/// `number` is an expression.
pub unsafe fn expression(
    catalog: &Catalog,
    bits: u32,
    number: *mut Node,
    rounding: Rounding,
) -> Option<*mut Node> {
    // SAFETY: casts and functions are chosen by the expression's own type.
    unsafe {
        if let Some(constant) = constant_radius(number, rounding, bits) {
            return Some(nodes::int4(constant));
        }
        let base = nodes::types(number).1;
        let plain = nodes::relabel(number, base);
        let int4 = pg_sys::INT4OID;
        let call = |function, argument| {
            nodes::call(
                function,
                int4,
                [argument],
                CoercionForm::COERCE_EXPLICIT_CALL,
            )
        };
        Some(match (base, rounding) {
            (pg_sys::INT2OID, Rounding::Floor | Rounding::Whole) => {
                cast(pg_sys::F_INT4_INT2, int4, plain)
            }
            (pg_sys::INT4OID, Rounding::Floor | Rounding::Whole) => plain,
            (pg_sys::INT8OID, Rounding::Floor | Rounding::Whole) => call(catalog.radius, plain),
            (pg_sys::INT2OID, Rounding::Below) => call(
                catalog.radius_below,
                cast(pg_sys::F_INT8_INT2, pg_sys::INT8OID, plain),
            ),
            (pg_sys::INT4OID, Rounding::Below) => call(
                catalog.radius_below,
                cast(pg_sys::F_INT8_INT4, pg_sys::INT8OID, plain),
            ),
            (pg_sys::INT8OID, Rounding::Below) => call(catalog.radius_below, plain),
            (pg_sys::FLOAT4OID | pg_sys::FLOAT8OID, _) => {
                let wide = match base {
                    pg_sys::FLOAT8OID => plain,
                    _ => cast(pg_sys::F_FLOAT8_FLOAT4, pg_sys::FLOAT8OID, plain),
                };
                let function = match rounding {
                    Rounding::Floor => catalog.floor_radius,
                    Rounding::Below => catalog.floor_radius_below,
                    Rounding::Whole => catalog.whole_radius,
                };
                call(function, wide)
            }
            (pg_sys::NUMERICOID, _) => {
                let [floor, below, whole] = catalog.numeric_radii;
                let radius = call(
                    match rounding {
                        Rounding::Floor => floor,
                        Rounding::Below => below,
                        Rounding::Whole => whole,
                    },
                    plain,
                );
                if nodes::constant(plain).is_none() {
                    return Some(radius);
                }
                let radius = pg_sys::eval_const_expressions(core::ptr::null_mut(), radius);
                let rounding = match rounding {
                    Rounding::Whole => Rounding::Whole,
                    _ => Rounding::Floor,
                };
                nodes::int4(constant_radius(radius, rounding, bits)?)
            }
            _ => return None,
        })
    }
}

/// An implicit cast.
///
/// # Safety
/// `function` takes the type of `argument` and returns `result`.
unsafe fn cast(function: u32, result: Oid, argument: *mut Node) -> *mut Node {
    // SAFETY: as the caller promises.
    unsafe {
        let form = CoercionForm::COERCE_IMPLICIT_CAST;
        nodes::call(Oid::from_u32(function), result, [argument], form)
    }
}

/// The server's own comparison of integers, which every index, join and statistic knows. A
/// floating-point constant is replaced by the integer that it comes to. `None` for any other
/// floating-point number, and for one that is not near any integer of type int4.
///
/// # Safety
/// Both are expressions.
pub unsafe fn integer_comparison(
    comparison: Comparison,
    left: *mut Node,
    right: *mut Node,
) -> Option<*mut Node> {
    // SAFETY: as the caller promises.
    unsafe {
        if nodes::constant_float(right).is_some() {
            let (comparison, right) = to_integer(comparison, right)?;
            return integer_comparison(comparison, left, right);
        }
        if nodes::constant_float(left).is_some() {
            let (comparison, left) = to_integer(comparison.commuted(), left)?;
            return integer_comparison(comparison.commuted(), left, right);
        }
    }
    let strategy = match comparison {
        Comparison::Less => pg_sys::BTLessStrategyNumber,
        Comparison::LessOrEqual => pg_sys::BTLessEqualStrategyNumber,
        Comparison::Equal | Comparison::NotEqual => pg_sys::BTEqualStrategyNumber,
        Comparison::GreaterOrEqual => pg_sys::BTGreaterEqualStrategyNumber,
        Comparison::Greater => pg_sys::BTGreaterStrategyNumber,
    };
    // SAFETY: the operator is looked up by the two base types, to which the arguments are
    // relabelled.
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

/// A comparison of an integer with a floating-point constant, as one with an integer. `None` if
/// none answers the same for every int4.
///
/// # Safety
/// `constant` is an expression.
unsafe fn to_integer(
    comparison: Comparison,
    constant: *mut Node,
) -> Option<(Comparison, *mut Node)> {
    // SAFETY: as the caller promises.
    let number = unsafe { nodes::constant_float(constant) }?;
    // Beyond these a constant of type int4 would not answer the same for the greatest integers.
    if number.is_nan() || number.abs() >= f64::from(i32::MAX) {
        return None;
    }
    let (comparison, integer) = match comparison {
        Comparison::Less => (Comparison::LessOrEqual, hamming_float::below(number)),
        Comparison::LessOrEqual => (Comparison::LessOrEqual, hamming_float::floor(number)),
        Comparison::Greater => (Comparison::Greater, hamming_float::floor(number)),
        Comparison::GreaterOrEqual => (Comparison::Greater, hamming_float::below(number)),
        // An integer may be -1, unlike a distance.
        Comparison::Equal | Comparison::NotEqual if number.fract() != 0.0 => return None,
        Comparison::Equal | Comparison::NotEqual => (comparison, number as i32),
    };
    Some((comparison, nodes::int4(integer)))
}
