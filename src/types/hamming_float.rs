//! Comparisons of a distance (the domain `hamming`) with a floating-point number, and conversions
//! of numbers to radii for such comparisons.
//!
//! Numbers are ordered as the server orders them: NaN equals itself and is greater than all other
//! numbers.
use core::cmp::Ordering;

use pgrx::pg_sys::Datum;

use super::order::export_order;
use neardup_pg::fmgr::{Call, export};

/// Returns the order of a distance and a number. NaN is above every distance. The comparison is
/// exact, because float8 represents each int4 and each float4.
fn order(distance: i32, number: f64) -> Ordering {
    f64::from(distance)
        .partial_cmp(&number)
        .unwrap_or(Ordering::Less)
}

/// Order of a distance (argument 0) and a float8 (argument 1).
fn left8(call: &Call) -> Ordering {
    order(call.int4(0), call.float8(1))
}

/// Order of a float8 (argument 0) and a distance (argument 1).
fn right8(call: &Call) -> Ordering {
    order(call.int4(1), call.float8(0)).reverse()
}

/// Order of a distance (argument 0) and a float4 (argument 1).
fn left4(call: &Call) -> Ordering {
    order(call.int4(0), call.float4(1).into())
}

/// Order of a float4 (argument 0) and a distance (argument 1).
fn right4(call: &Call) -> Ordering {
    order(call.int4(1), call.float4(0).into()).reverse()
}

/// Returns the radius of the condition `distance <= number`: the largest integer that is at most
/// `number`, clamped to int4. For NaN returns the maximum, because all distances match.
pub fn radius_at_most(number: f64) -> i32 {
    if number.is_nan() {
        return i32::MAX;
    }
    number.floor() as i32
}

/// Returns the radius of the condition `distance < number`: the largest integer below `number`,
/// clamped to int4. For NaN returns the maximum, because all distances match.
pub fn radius_below(number: f64) -> i32 {
    if number.is_nan() {
        return i32::MAX;
    }
    (number.ceil() - 1.0) as i32
}

/// Returns the radius of the condition `distance = number`: `number` if it is an integer and its
/// absolute value is below `i32::MAX`, otherwise -1, which no distance equals.
pub fn radius_equal(number: f64) -> i32 {
    if number.fract() == 0.0 && number.abs() < f64::from(i32::MAX) {
        number as i32
    } else {
        -1
    }
}

/// Parses the text of a numeric. Returns the largest integer that is at most the number, clamped to
/// int4, and true if this integer equals the number. Returns `None` for NaN.
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
    // A number beyond i64 is also beyond int4.
    let whole: i64 = whole.parse().unwrap_or(i64::MAX / 2);
    let floor = match negative {
        true => -whole - i64::from(!is_whole),
        false => whole,
    };
    let clamped = floor.clamp(i32::MIN.into(), i32::MAX.into());
    Some((clamped as i32, is_whole && clamped == floor))
}

/// `_neardup_floor_radius(numeric)`: radius of the condition `distance <= argument`, like
/// [`radius_at_most`].
fn numeric_floor(call: &mut Call) -> Datum {
    Datum::from(parse(call.numeric(0)).map_or(i32::MAX, |(floor, _)| floor))
}

/// `_neardup_floor_radius_below(numeric)`: radius of the condition `distance < argument`, like
/// [`radius_below`].
fn numeric_below(call: &mut Call) -> Datum {
    Datum::from(match parse(call.numeric(0)) {
        None => i32::MAX,
        Some((floor, true)) => floor.saturating_sub(1),
        Some((floor, false)) => floor,
    })
}

/// `_neardup_whole_radius(numeric)`: radius of the condition `distance = argument`, like
/// [`radius_equal`].
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
    plain "_neardup_floor_radius" => |call: &mut Call| Datum::from(radius_at_most(call.float8(0)));
    plain "_neardup_floor_radius_below" =>
        |call: &mut Call| Datum::from(radius_below(call.float8(0)));
    guarded "_neardup_numeric_floor_radius" => numeric_floor;
    guarded "_neardup_numeric_floor_radius_below" => numeric_below;
    guarded "_neardup_numeric_whole_radius" => numeric_whole;
    plain "_neardup_whole_radius" => |call: &mut Call| Datum::from(radius_equal(call.float8(0)));
}
