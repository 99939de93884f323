//! Exact inverses of float8 arithmetic, for conditions on a number `s` such as `1 - s <= 0.2`. The
//! inverse is a limit of `s`: the condition holds up to the limit, or from the limit on. It takes
//! the rounding of the server's arithmetic into account.
use neardup_pg::fmgr::{Call, export};

/// Arithmetic operation on a number `y` and a constant `c`. The discriminant is the operation's
/// number in `_neardup_inverse`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FloatStep {
    /// `y + c`.
    Add = 0,
    /// `y - c`.
    Subtract = 1,
    /// `c - y`.
    SubtractFrom = 2,
    /// `y * c`.
    Multiply = 3,
    /// `y / c`.
    Divide = 4,
}

impl FloatStep {
    const ALL: [FloatStep; 5] = [
        FloatStep::Add,
        FloatStep::Subtract,
        FloatStep::SubtractFrom,
        FloatStep::Multiply,
        FloatStep::Divide,
    ];

    /// Returns the result of the operation on `y` and `constant`, rounded as the server rounds it.
    fn apply(self, constant: f64, y: f64) -> f64 {
        match self {
            FloatStep::Add => y + constant,
            FloatStep::Subtract => y - constant,
            FloatStep::SubtractFrom => constant - y,
            FloatStep::Multiply => y * constant,
            FloatStep::Divide => y / constant,
        }
    }

    /// Returns true if the result of the operation increases with `y`, and false if it decreases.
    pub fn grows(self, constant: f64) -> bool {
        match self {
            FloatStep::Add | FloatStep::Subtract => true,
            FloatStep::SubtractFrom => false,
            FloatStep::Multiply | FloatStep::Divide => constant > 0.0,
        }
    }
}

/// Searches the numbers from `from` to `to` for the point where `holds` changes. `holds` must be
/// true for `from` and false for `to`, and change only once between them. Returns the last number
/// for which `holds` is true, and the next float8 number, for which it is false. `from` may be
/// greater than `to`.
pub fn bisect([from, to]: [f64; 2], holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut last, mut next) = (rank(from), rank(to));
    while last.abs_diff(next) > 1 {
        let middle = (i128::from(last) + i128::from(next)).div_euclid(2) as i64;
        if holds(of_rank(middle)) {
            last = middle;
        } else {
            next = middle;
        }
    }
    (of_rank(last), of_rank(next))
}

/// Returns the position of a number in the order of all float8 numbers. The position of 0 is 0, and
/// the position of -0 is -1.
fn rank(number: f64) -> i64 {
    let bits = number.to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// Returns the number with this position in the order of all float8 numbers; see [`rank`].
fn of_rank(rank: i64) -> f64 {
    f64::from_bits(if rank < 0 { rank ^ i64::MAX } else { rank } as u64)
}

/// Returns the limit `t` for which the condition `step(y) comparison bound` is equivalent to
/// `y <= t` or to `y >= t`. `constant` is the constant of `step`. `comparison` is 0 for `<`, 1 for
/// `<=`, 2 for `>=`, and 3 for `>`.
///
/// The condition is equivalent to `y <= t` if it is an upper bound (`<`, `<=`) of a growing step,
/// or a lower bound of a falling step; see [`FloatStep::grows`]. The limit is infinite if the
/// condition holds for all numbers or for no number. A bound of NaN is above all numbers, as in the
/// server's order of float8.
fn inverse(step: FloatStep, constant: f64, comparison: i32, bound: f64) -> f64 {
    let holds = |y: f64| {
        let result = step.apply(constant, y);
        match comparison {
            0 => bound.is_nan() || result < bound,
            1 => bound.is_nan() || result <= bound,
            2 => result >= bound,
            _ => result > bound,
        }
    };
    let is_upper = (comparison < 2) == step.grows(constant);
    let (first, last) = match is_upper {
        true => (f64::MIN, f64::MAX),
        false => (f64::MAX, f64::MIN),
    };
    // If all numbers match, or none, the result is infinite.
    if holds(last) {
        return last.signum() * f64::INFINITY;
    }
    if !holds(first) {
        return first.signum() * f64::INFINITY;
    }
    bisect([first, last], holds).0
}

/// `_neardup_inverse(step, constant, comparison, bound)`: limit of a number, see [`inverse`].
/// Returns NaN for an unknown step.
fn inverse_of_call(call: &mut Call) -> pgrx::pg_sys::Datum {
    let step = (FloatStep::ALL.into_iter()).find(|step| *step as i32 == call.int4(0));
    let (constant, comparison, bound) = (call.float8(1), call.int4(2), call.float8(3));
    let solved = step.map_or(f64::NAN, |step| inverse(step, constant, comparison, bound));
    pgrx::pg_sys::Datum::from(solved.to_bits())
}

export! {
    plain "_neardup_inverse" => inverse_of_call;
}
