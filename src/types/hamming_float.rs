//! Comparisons of a distance with a floating-point number, and conversion of such numbers to radii.
//!
//! The order is the server's: NaN equals itself and is greater than any other number.
use core::cmp::Ordering;

use pgrx::pg_sys::Datum;

use super::order::export_order;
use neardup_pg::fmgr::{Call, export};

/// The order of two numbers of which only the second may be NaN. Both are exact: each int4 and
/// each float4 is a float8.
fn order(distance: i32, number: f64) -> Ordering {
    f64::from(distance)
        .partial_cmp(&number)
        .unwrap_or(Ordering::Less)
}

fn left8(call: &Call) -> Ordering {
    order(call.int4(0), call.float8(1))
}

fn right8(call: &Call) -> Ordering {
    order(call.int4(1), call.float8(0)).reverse()
}

fn left4(call: &Call) -> Ordering {
    order(call.int4(0), call.float4(1).into())
}

fn right4(call: &Call) -> Ordering {
    order(call.int4(1), call.float4(0).into()).reverse()
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

/// Reads the text of a numeric: the greatest integer that is not above it, and whether that is the
/// number itself. `None` for NaN. Beyond int4 the integer is the nearest int4.
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
    Datum::from(parse(call.numeric(0)).map_or(i32::MAX, |(floor, _)| floor))
}

/// [`below`] of a numeric.
fn numeric_below(call: &mut Call) -> Datum {
    Datum::from(match parse(call.numeric(0)) {
        None => i32::MAX,
        Some((floor, true)) => floor.saturating_sub(1),
        Some((floor, false)) => floor,
    })
}

/// [`whole`] of a numeric.
fn numeric_whole(call: &mut Call) -> Datum {
    Datum::from(match parse(call.numeric(0)) {
        Some((number, true)) => number,
        _ => -1,
    })
}

export_order!(plain "hamming_", left8, "_float8");
export_order!(plain "hamming_", left4, "_float4");
export_order!(plain "hamming_", right8, "_from_float8");
export_order!(plain "hamming_", right4, "_from_float4");

export! {
    plain "_neardup_floor_radius" => |call: &mut Call| Datum::from(floor(call.float8(0)));
    plain "_neardup_floor_radius_below" => |call: &mut Call| Datum::from(below(call.float8(0)));
    guarded "_neardup_numeric_floor_radius" => numeric_floor;
    guarded "_neardup_numeric_floor_radius_below" => numeric_below;
    guarded "_neardup_numeric_whole_radius" => numeric_whole;
    plain "_neardup_whole_radius" => |call: &mut Call| Datum::from(whole(call.float8(0)));
}
