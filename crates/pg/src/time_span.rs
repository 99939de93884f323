//! Times and ranges of SQL as spans of integers, which are compared without calls of SQL functions.
//! Two ranges overlap if their spans overlap. The span of a time begins at the time and has the
//! length of a window of time, so two times are near each other if their spans overlap.
use pgrx::pg_sys::{self, Oid};

use super::catalog;
use super::value::Value;

/// Number of microseconds in a day of 24 hours.
const DAY: i128 = 24 * 60 * 60 * 1_000_000;

/// Position of the time `infinity`. The position of `-infinity` is its negative. No sum of a finite
/// time and an interval reaches it.
const INFINITE_TIME: i128 = 1 << 100;

/// Position of a missing upper bound of a range. The position of a missing lower bound is its
/// negative. It is beyond the position of any other bound.
const UNBOUNDED: i128 = 1 << 110;

/// Span of positions on an axis of integers. Both ends belong to the span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// First position.
    pub low: i128,
    /// Last position.
    pub high: i128,
}

impl Span {
    /// Span that overlaps no span, not even itself.
    pub const NOWHERE: Span = Span {
        low: i128::MAX,
        high: i128::MIN,
    };

    /// Returns whether two spans have a position in common.
    #[inline]
    pub fn overlaps(self, other: Span) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Returns four words that represent the span. If spans are sorted by their words, they are in
    /// the order of their low ends.
    pub fn to_words(self) -> [u64; 4] {
        let [low, high] = [self.low, self.high].map(|end| (end as u128) ^ (1 << 127));
        [
            (low >> 64) as u64,
            low as u64,
            (high >> 64) as u64,
            high as u64,
        ]
    }

    /// Returns the span that the words of [`Span::to_words`] represent.
    pub fn from_words([a, b, c, d]: [u64; 4]) -> Self {
        let [low, high] = [(a, b), (c, d)].map(|(high, low)| {
            let bits = u128::from(high) << 64 | u128::from(low);
            (bits ^ (1 << 127)) as i128
        });
        Span { low, high }
    }
}

/// Type whose values are times, or ranges of times or integers.
#[derive(Clone, Copy)]
pub struct TimeType {
    /// OID of the type, which may be a domain.
    oid: Oid,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// `timestamp` or `timestamptz`.
    Timestamp,
    /// `date`. A date counts as the time at its beginning.
    Date,
    /// Range type, with its OID and the length of a bound in bytes (4 or 8).
    Range(Oid, u8),
}

impl Kind {
    fn from_base_type(base: Oid) -> Option<Self> {
        match base {
            pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => return Some(Kind::Timestamp),
            pg_sys::DATEOID => return Some(Kind::Date),
            _ => (),
        }
        let cached = catalog::cached_type(base, pg_sys::TYPECACHE_RANGE_INFO);
        if cached.rngelemtype.is_null() {
            return None;
        }
        // A range type may have an operator class that compares bounds in another way. Only bounds
        // that are compared as integers or times have positions on the axis.
        let bytes = match cached.rng_cmp_proc_finfo.fn_oid.to_u32() {
            pg_sys::F_BTINT4CMP | pg_sys::F_DATE_CMP => 4,
            pg_sys::F_BTINT8CMP | pg_sys::F_TIMESTAMP_CMP | pg_sys::F_TIMESTAMPTZ_CMP => 8,
            _ => return None,
        };
        Some(Kind::Range(base, bytes))
    }
}

impl TimeType {
    /// Returns the type with this OID. Returns `None` for types that are not times or ranges, and
    /// for ranges whose bounds are not compared as times or integers.
    pub fn from_oid(oid: Oid) -> Option<Self> {
        let kind = Kind::from_base_type(catalog::base_type(oid))?;
        Some(TimeType { oid, kind })
    }

    /// Returns whether values are ranges.
    pub fn is_range(self) -> bool {
        matches!(self.kind, Kind::Range(..))
    }

    /// Returns the span of a value of this type. The spans of two ranges overlap if the ranges do.
    /// The spans of two times overlap if the times are at most `within` microseconds apart.
    /// `within` has no effect on ranges. An infinite time is near only to an equal time. Returns
    /// `None` for an empty range. Raises an internal error if the value has another type.
    pub fn span(self, value: Value, within: i128) -> Option<Span> {
        assert_eq!(value.type_oid(), self.oid);
        let bits = value.datum().value();
        let time = match self.kind {
            Kind::Range(range, bytes) => return range_span(value, range, bytes),
            Kind::Timestamp => match bits as i64 {
                i64::MIN => -INFINITE_TIME,
                i64::MAX => INFINITE_TIME,
                time => time.into(),
            },
            Kind::Date => match bits as i32 {
                i32::MIN => -INFINITE_TIME,
                i32::MAX => INFINITE_TIME,
                day => i128::from(day) * DAY,
            },
        };
        Some(Span {
            low: time,
            high: time + within,
        })
    }
}

/// Returns the span of a range, or `None` for an empty range. `range` is the OID of the range type.
/// `bytes` is the length of a bound in bytes, 4 or 8.
fn range_span(value: Value, range: Oid, bytes: u8) -> Option<Span> {
    // `range_deserialize` requires a range that is not compressed and has a header of four bytes.
    let plain = (!value.is_plain()).then(|| value.to_owned());
    let value = plain.as_ref().map_or(value, |plain| plain.get());
    let cached = catalog::cached_type(range, pg_sys::TYPECACHE_RANGE_INFO);
    let mut lower = pg_sys::RangeBound::default();
    let mut upper = pg_sys::RangeBound::default();
    let mut is_empty = false;
    // SAFETY: the value is a range of this type with a plain header. The function only reads the
    // entry of the type cache.
    unsafe {
        pg_sys::range_deserialize(
            core::ptr::from_ref(cached).cast_mut(),
            value.datum().cast_mut_ptr(),
            &mut lower,
            &mut upper,
            &mut is_empty,
        );
    }
    // A bound is at twice its value. An excluded bound is at the odd position next to it, inside
    // the range. So a range such as (1 us, 2 us) is not empty, although it has no value that its
    // type can represent. `inwards` is 1 for a lower bound and -1 for an upper bound.
    let position = |bound: pg_sys::RangeBound, inwards: i128| match bound.infinite {
        true => -inwards * UNBOUNDED,
        false => {
            let bits = bound.val.value();
            let value = match bytes {
                4 => i128::from(bits as i32),
                _ => i128::from(bits as i64),
            };
            2 * value + if bound.inclusive { 0 } else { inwards }
        }
    };
    (!is_empty).then(|| Span {
        low: position(lower, 1),
        high: position(upper, -1),
    })
}

/// Returns the number of microseconds in a value of type `interval`, with days of 24 hours. Raises
/// an internal error for any other type.
///
/// # Errors
/// A sentence that explains why the interval cannot be the maximum distance of two times: it has
/// months or years, or is negative.
pub fn microseconds(interval: Value) -> Result<i128, String> {
    assert_eq!(interval.type_oid(), pg_sys::INTERVALOID);
    // The first word of an interval has its microseconds. The second word has its days, then its
    // months, as 32-bit integers.
    let mut words = [0; 2];
    interval.copy_words(&mut words);
    let [a, b, c, d, e, f, g, h] = words[1].to_ne_bytes();
    let days = i32::from_ne_bytes([a, b, c, d]);
    let months = i32::from_ne_bytes([e, f, g, h]);
    // The server stores an infinite interval with months, so it is refused here, too.
    if months != 0 {
        return Err(format!(
            "The interval \"{}\" contains months or years, whose lengths differ. Specify days, \
             such as 30 days.",
            interval.output()
        ));
    }
    let length = i128::from(words[0] as i64) + i128::from(days) * DAY;
    match length < 0 {
        true => Err(format!(
            "The interval \"{}\" is negative.",
            interval.output()
        )),
        false => Ok(length),
    }
}
