//! Comparisons of a distance with a floating-point number, and the radii that such numbers stand
//! for.
//!
//! The order is the server's: NaN equals itself and is greater than any other number.
use core::cmp::Ordering;

use pgrx::pg_sys::Datum;

use crate::pg::call::{Call, export};

fn int4(call: &Call, n: usize) -> f64 {
    (call.arg(n).value() as i32).into()
}

fn float8(call: &Call, n: usize) -> f64 {
    f64::from_bits(call.arg(n).value() as u64)
}

fn float4(call: &Call, n: usize) -> f64 {
    f32::from_bits(call.arg(n).value() as u32).into()
}

/// The order of two numbers of which only the second may be NaN. Both are exact: each int4 and
/// each float4 is a float8.
fn order(distance: f64, number: f64) -> Ordering {
    distance.partial_cmp(&number).unwrap_or(Ordering::Less)
}

fn left8(call: &Call) -> Ordering {
    order(int4(call, 0), float8(call, 1))
}

fn right8(call: &Call) -> Ordering {
    order(int4(call, 1), float8(call, 0)).reverse()
}

fn left4(call: &Call) -> Ordering {
    order(int4(call, 0), float4(call, 1))
}

fn right4(call: &Call) -> Ordering {
    order(int4(call, 1), float4(call, 0)).reverse()
}

/// The greatest whole number that is not above `number`; all distances for NaN.
pub fn floor(number: f64) -> i32 {
    if number.is_nan() {
        return i32::MAX;
    }
    number.floor() as i32
}

/// The greatest whole number below `number`; all distances for NaN.
pub fn below(number: f64) -> i32 {
    if number.is_nan() {
        return i32::MAX;
    }
    (number.ceil() - 1.0) as i32
}

/// `number` if it is whole; -1, which no distance is, if not.
pub fn whole(number: f64) -> i32 {
    if number.fract() == 0.0 && number.abs() < f64::from(i32::MAX) {
        number as i32
    } else {
        -1
    }
}

/// Exports the six comparisons of one pair of types: `hamming_lt_SUFFIX` and so on.
macro_rules! export_comparisons {
    ($suffix:literal, $order:ident) => {
        export! {
            plain concat!("hamming_lt_", $suffix) =>
                |call: &mut Call| Datum::from($order(call).is_lt());
            plain concat!("hamming_le_", $suffix) =>
                |call: &mut Call| Datum::from($order(call).is_le());
            plain concat!("hamming_eq_", $suffix) =>
                |call: &mut Call| Datum::from($order(call).is_eq());
            plain concat!("hamming_ne_", $suffix) =>
                |call: &mut Call| Datum::from($order(call).is_ne());
            plain concat!("hamming_ge_", $suffix) =>
                |call: &mut Call| Datum::from($order(call).is_ge());
            plain concat!("hamming_gt_", $suffix) =>
                |call: &mut Call| Datum::from($order(call).is_gt());
        }
    };
}

export_comparisons!("float8", left8);
export_comparisons!("float4", left4);
export_comparisons!("from_float8", right8);
export_comparisons!("from_float4", right4);

export! {
    plain "neardup_floor_radius" => |call: &mut Call| Datum::from(floor(float8(call, 0)));
    plain "neardup_floor_radius_below" => |call: &mut Call| Datum::from(below(float8(call, 0)));
    plain "neardup_whole_radius" => |call: &mut Call| Datum::from(whole(float8(call, 0)));
}
