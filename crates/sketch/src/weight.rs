//! Weights of features, as exact integers and fixed-point numbers.
//!
//! A simhash bit is the sign of a sum, and a sum of floating-point numbers depends on the order of
//! its terms. So all sums here are sums of integers. Weights computed from frequencies are
//! fixed-point numbers, and weights given by users are split into integer mantissa and exponent.

use std::fmt;

use crate::named_option::described_option;

/// Number of bits after the binary point of the fixed-point weights that functions such as
/// [`sqrt_weight`] return: `1 << 16` is a weight of 1.
pub const FRACTION_BITS: u32 = 16;

/// Returns `floor(2^16 * sqrt(count))`, the weight of a feature that occurs `count` times.
///
/// This integer *is* the definition of the weight. A text of at most 2^30 bytes has fewer than 2^30
/// occurrences of features. Because sqrt(n) <= n, the weights of the text add up to less than 2^46,
/// and no sum overflows 64 bits.
///
/// # Panics
///
/// If `count` is 2^32 or more, which no text that PostgreSQL stores can reach.
#[inline]
#[must_use]
pub const fn sqrt_weight(count: u64) -> u64 {
    assert!(count >> 32 == 0, "a feature count of 2^32 or more");
    (count << (2 * FRACTION_BITS)).isqrt()
}

/// Returns `floor(2^16 * (1 + ln(count)))`, the weight of a feature that occurs `count` times. This
/// weight grows more slowly than the square root of `count` (Manning, Raghavan, Schutze,
/// "Introduction to Information Retrieval", section 6.4.1).
///
/// The result of the steps below *is* the definition of the weight. For counts up to at least a
/// million, it equals `floor(2^16 * (1 + ln(count)))`.
///
/// # Panics
///
/// If `count` is 0.
#[must_use]
pub const fn log_weight(count: u64) -> u64 {
    /// ln(2) in units of 2^-64.
    const LN_2: u128 = 0xB172_17F7_D1CF_79AB;
    /// Number of binary digits of the fraction of the logarithm to base 2.
    const FRACTION_DIGITS: u32 = 40;
    let whole = count.ilog2();
    // `x` is count / 2^whole, from 1 to 2, in units of 2^-63. Squaring `x` gives the next binary
    // digit of the logarithm: 1 if the square is 2 or more.
    let mut x = count << (63 - whole);
    let mut log2 = whole as u128;
    let mut digit = 0;
    while digit < FRACTION_DIGITS {
        let square = (x as u128) * (x as u128);
        let carry = square >> 127;
        log2 = log2 << 1 | carry;
        x = (square >> (63 + carry as u32)) as u64;
        digit += 1;
    }
    (1 << FRACTION_BITS) + ((log2 * LN_2) >> (FRACTION_DIGITS + 64 - FRACTION_BITS)) as u64
}

/// Name and function of a [`Weight`].
struct WeightKind {
    /// Name of the weight in SQL.
    name: &'static str,
    /// Function from a number of occurrences to the weight; see [`Weight::function`].
    function: fn(u64) -> u64,
}

described_option! {
    /// Weight of a feature as a function of its number of occurrences.
    pub enum Weight ("weight", WeightKind) {
        /// The number of occurrences.
        Tf => WeightKind {
            name: "tf",
            function: |count| count << FRACTION_BITS,
        },
        /// Square root of the number of occurrences.
        Sqrt => WeightKind {
            name: "sqrt",
            function: |count| match SQRT.get(count as usize) {
                Some(&weight) => weight.into(),
                None => sqrt_weight(count),
            },
        },
        /// 1 plus the natural logarithm of the number of occurrences.
        Log => WeightKind {
            name: "log",
            function: |count| match LOG.get(count as usize) {
                Some(&weight) => weight.into(),
                None => log_weight(count),
            },
        },
        /// Always 1.
        Set => WeightKind {
            name: "set",
            function: |_| 1 << FRACTION_BITS,
        },
    }
}

impl Weight {
    /// Returns the function that maps the number of occurrences of a feature to its weight. The
    /// number is from 1 to 2^32 - 1, and the weight is in units of 2^-[`FRACTION_BITS`]. The
    /// weights of a text of at most 2^30 bytes add up to less than 2^46.
    #[must_use]
    pub fn function(self) -> fn(u64) -> u64 {
        self.description().function
    }
}

/// [`sqrt_weight`] of the counts below 256. Index 0 is not used.
static SQRT: [u32; 256] = {
    let mut table = [0; 256];
    let mut count = 1;
    while count < table.len() {
        table[count] = sqrt_weight(count as u64) as u32;
        count += 1;
    }
    table
};
/// [`log_weight`] of the counts below 256. Index 0 is not used.
static LOG: [u32; 256] = {
    let mut table = [0; 256];
    let mut count = 1;
    while count < table.len() {
        table[count] = log_weight(count as u64) as u32;
        count += 1;
    }
    table
};

/// Error: a weight is NaN, infinite or negative. Callers report it with SQLSTATE 22023
/// (`invalid_parameter_value`).
#[derive(Clone, Copy, Debug)]
pub struct WeightError {
    /// Position of the rejected weight in the caller's list, from 0.
    pub index: usize,
    /// The rejected weight.
    pub weight: f64,
}

impl PartialEq for WeightError {
    /// Compares the bits of the weights, so that NaN equals NaN.
    fn eq(&self, other: &Self) -> bool {
        let key = |error: &Self| (error.index, error.weight.to_bits());
        key(self) == key(other)
    }
}

impl fmt::Display for WeightError {
    /// Writes one line without a final full stop. The position counts from 1, as in SQL arrays.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, weight) = (self.index + 1, self.weight);
        write!(
            f,
            "weight {number} is {weight}; weights must be finite and not negative"
        )
    }
}

impl std::error::Error for WeightError {}

/// Summand of a weight, with the exact value `mantissa * 2^(exponent - 1074)`. Each weight is the
/// exact sum of at most two summands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExactWeight {
    /// Mantissa, below 2^27.
    pub mantissa: u32,
    /// Exponent, from 0 to 2072.
    pub exponent: u16,
}

/// Fails unless a weight is a finite number of zero or more. The error reports `index`, the
/// position of the weight.
pub(crate) fn check_weight(index: usize, weight: f64) -> Result<(), WeightError> {
    if weight.is_finite() && weight >= 0.0 {
        Ok(())
    } else {
        Err(WeightError { index, weight })
    }
}

impl ExactWeight {
    /// Splits a weight, a double with 53 significant bits, into an upper and a lower summand. Skips
    /// summands of zero: the weight zero (of either sign) has no summand, and a single-precision
    /// number has one. An error reports `index`, the position of the weight.
    ///
    /// # Errors
    ///
    /// If the weight is NaN, infinite or negative.
    pub fn parts(index: usize, weight: f64) -> Result<impl Iterator<Item = Self>, WeightError> {
        /// Number of binary digits of the lower summand.
        const LOW: u32 = 27;
        check_weight(index, weight)?;
        let bits = weight.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) = match (bits >> 52) as u16 & 0x7FF {
            // A subnormal number lacks the leading 1 and has the scale of exponent 1.
            0 => (fraction, 1),
            exponent => (fraction | 1 << 52, exponent),
        };
        let part = |mantissa: u64, exponent| Self {
            mantissa: mantissa as u32,
            exponent,
        };
        let high = part(mantissa >> LOW, exponent - 1 + LOW as u16);
        let low = part(mantissa & ((1 << LOW) - 1), exponent - 1);
        Ok([high, low].into_iter().filter(|part| part.mantissa > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqrt_weight_is_the_floor() {
        assert_eq!(sqrt_weight(0), 0);
        assert_eq!(sqrt_weight(1), 65_536);
        assert_eq!(sqrt_weight(2), 92_681);
        assert_eq!(sqrt_weight(4), 131_072);
        for count in (0..1_000_000_u64).step_by(997).chain([u64::from(u32::MAX)]) {
            let w = u128::from(sqrt_weight(count));
            let square = u128::from(count) << 32;
            assert!(
                w * w <= square && square < (w + 1) * (w + 1),
                "count {count}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "2^32")]
    fn sqrt_weight_refuses_what_would_overflow() {
        let _ = sqrt_weight(1 << 32);
    }

    #[test]
    fn log_weight_is_the_floor() {
        assert_eq!(log_weight(1), 65_536);
        assert_eq!(log_weight(2), 110_962);
        assert_eq!(log_weight(3), 137_534);
        assert_eq!(
            log_weight(1 << 31),
            65_536 + (31.0 * 65_536.0 * 2f64.ln()) as u64
        );
        for count in 1..=1_000_000_u32 {
            // The result of `ln` has about 50 correct binary digits. No count gives a value that
            // near to an integer.
            let exact = 65_536.0 * (1.0 + f64::from(count).ln());
            assert!((exact - exact.round()).abs() > 1e-9 || count == 1);
            assert_eq!(
                log_weight(count.into()),
                exact.floor() as u64,
                "count {count}"
            );
        }
    }

    #[test]
    fn weights_by_name() {
        let weigh = |weight: Weight| [1, 2, 9].map(weight.function());
        assert_eq!(weigh(Weight::Tf), [1 << 16, 2 << 16, 9 << 16]);
        assert_eq!(weigh(Weight::Sqrt), [1 << 16, 92_681, 3 << 16]);
        assert_eq!(weigh(Weight::Log), [1 << 16, 110_962, 209_533]);
        assert_eq!(weigh(Weight::Set), [1 << 16; 3]);
        for count in 1..600 {
            assert_eq!(Weight::Sqrt.function()(count), sqrt_weight(count));
            assert_eq!(Weight::Log.function()(count), log_weight(count));
        }
    }

    #[test]
    fn exact_weights_give_the_number_back() {
        let parts = |w: f64| ExactWeight::parts(0, w).unwrap();
        // Multiplies by the power of two in two steps, because some powers of two are not doubles.
        let value = |part: ExactWeight| {
            let scale = i32::from(part.exponent) - 1074;
            f64::from(part.mantissa) * 2f64.powi(scale / 2) * 2f64.powi(scale - scale / 2)
        };
        let (tiny, small) = (f64::from_bits(1), f64::from_bits((1 << 52) - 1));
        for w in [1.0, 0.1, 3.5, 1e300, f64::MIN_POSITIVE, tiny, small, 1e-310] {
            assert_eq!(parts(w).map(value).sum::<f64>(), w);
            assert!(parts(w).all(|part| part.mantissa < 1 << 27));
        }
        for w in [1.0, 0.1_f32, f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)] {
            assert_eq!(parts(w.into()).count(), 1);
        }
        assert_eq!(parts(f64::MAX).map(|part| part.exponent).max(), Some(2072));
        assert_eq!(parts(0.0).count() + parts(-0.0).count(), 0);
    }

    #[test]
    fn bad_weights_are_refused() {
        for weight in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.5] {
            assert_eq!(
                check_weight(2, weight),
                Err(WeightError { index: 2, weight })
            );
        }
        assert_eq!(
            check_weight(2, -1.5).unwrap_err().to_string(),
            "weight 3 is -1.5; weights must be finite and not negative"
        );
    }
}
