//! Comparisons of a distance with a floating-point number, and conversion of such numbers to radii.
//!
//! The order is the server's: NaN equals itself and is greater than any other number.
use core::cmp::Ordering;

use pgrx::pg_sys::{self, Datum};

use crate::pg::fmgr::{Call, export};

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

/// `number` if it is whole, else -1, which no distance equals.
pub fn whole(number: f64) -> i32 {
    if number.fract() == 0.0 && number.abs() < f64::from(i32::MAX) {
        number as i32
    } else {
        -1
    }
}

/// Reads a numeric: the greatest integer that is not above it, and whether that is the number
/// itself. `None` for NaN. Beyond int4 the integer is the nearest int4.
fn read_numeric(call: &Call) -> Option<(i32, bool)> {
    // SAFETY: the function is declared with one argument of type numeric; its text is a C string.
    let text = unsafe {
        let output = pg_sys::Oid::from_u32(pg_sys::F_NUMERIC_OUT);
        let text = pg_sys::OidFunctionCall1Coll(output, pg_sys::InvalidOid, call.arg(0));
        core::ffi::CStr::from_ptr(text.cast_mut_ptr())
    };
    parse(text.to_str().unwrap_or("NaN"))
}

fn parse(text: &str) -> Option<(i32, bool)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    match digits {
        "NaN" => return None,
        "Infinity" => return Some((if negative { i32::MIN } else { i32::MAX }, false)),
        _ => {}
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    // A number that does not fit an i64 is beyond int4 too.
    let whole: i64 = whole.parse().unwrap_or(i64::MAX / 2);
    let floor = match negative {
        true => -whole - i64::from(!is_whole),
        false => whole,
    };
    let clamped = floor.clamp(i32::MIN.into(), i32::MAX.into());
    Some((clamped as i32, is_whole && clamped == floor))
}

/// [`floor`] of a numeric.
fn numeric_floor(call: &mut Call) -> Datum {
    Datum::from(read_numeric(call).map_or(i32::MAX, |(floor, _)| floor))
}

/// [`below`] of a numeric.
fn numeric_below(call: &mut Call) -> Datum {
    Datum::from(match read_numeric(call) {
        None => i32::MAX,
        Some((floor, true)) => floor.saturating_sub(1),
        Some((floor, false)) => floor,
    })
}

/// [`whole`] of a numeric.
fn numeric_whole(call: &mut Call) -> Datum {
    Datum::from(match read_numeric(call) {
        Some((number, true)) => number,
        _ => -1,
    })
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
    plain "_neardup_floor_radius" => |call: &mut Call| Datum::from(floor(float8(call, 0)));
    plain "_neardup_floor_radius_below" => |call: &mut Call| Datum::from(below(float8(call, 0)));
    guarded "_neardup_numeric_floor_radius" => numeric_floor;
    guarded "_neardup_numeric_floor_radius_below" => numeric_below;
    guarded "_neardup_numeric_whole_radius" => numeric_whole;
    plain "_neardup_whole_radius" => |call: &mut Call| Datum::from(whole(float8(call, 0)));
}
