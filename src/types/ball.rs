//! Balls in Hamming space: all fingerprints within a radius of a centre. `fingerprint <@ ball` is
//! the condition by which an index finds the fingerprints in the ball.
use core::fmt::Write;

use neardup_blocktree::metric::near_duplicate_bits;
use pgrx::pg_sys;

use super::Fingerprint;
use super::fingerprint::{arg, made_by};
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::value::Value;
use neardup_pg::varlena;

/// Number of 64-bit words of the largest ball: four for the centre and one for the radius.
const MAX_WORDS: usize = 5;

/// Stored value of one of the SQL types `fingerprint_ball`, `bigint_ball` and so on. It is passed
/// by reference.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Ball<T> {
    /// Fingerprint at the centre.
    pub center: T,
    /// Maximum distance from the centre, in bits: `0..=BITS`, or -1 for the empty ball.
    pub radius: i32,
    // Always zero, so that equal balls have equal bytes.
    padding: i32,
}

const _: () = assert!(
    size_of::<Ball<super::Fingerprint64>>() == 16 && align_of::<Ball<super::Fingerprint64>>() == 8
);

impl<T: Fingerprint> Ball<T> {
    /// Creates the ball of all values within `radius` bits of `center`. A radius beyond the width
    /// of the type is stored as the width: the ball contains all values. A negative radius is
    /// stored as -1: the ball is empty. It is not an error, because `fp <~> q <= -1` is a valid
    /// condition that is never true.
    pub fn new(center: T, radius: i32) -> Self {
        Ball {
            center,
            radius: radius.clamp(-1, T::BITS as i32),
            padding: 0,
        }
    }

    /// Reads a ball with a centre of type `T`. Raises an internal error unless the value has the
    /// length of such a ball.
    pub fn from_value(value: Value) -> Self {
        let mut words = [0; MAX_WORDS];
        value.copy_words(&mut words[..=T::WORDS]);
        Self::from_words(words)
    }

    #[inline(always)]
    fn from_words(words: [u64; MAX_WORDS]) -> Self {
        // The radius uses the first half of the word after the centre.
        let [a, b, c, d, ..] = words[T::WORDS].to_ne_bytes();
        Ball {
            center: T::from_words(&words),
            radius: i32::from_ne_bytes([a, b, c, d]),
            padding: 0,
        }
    }

    /// Copies the ball into the current memory context, and returns the Datum that refers to it.
    pub fn into_datum(self) -> pg_sys::Datum {
        varlena::by_reference(self)
    }

    /// Reads the ball in argument `n`. Raises an internal error if the argument is NULL or does not
    /// have the length of such a ball.
    #[inline(always)]
    pub fn argument(call: &Call, n: usize) -> Self {
        let mut words = [0; MAX_WORDS];
        call.copy_words(n, &mut words[..=T::WORDS]);
        Self::from_words(words)
    }

    /// Returns whether the ball contains `value`.
    #[inline(always)]
    pub fn contains(&self, value: T) -> bool {
        value.distance(self.center) as i32 <= self.radius
    }

    /// Parses a ball written as `<center,radius>`. Returns `None` if the text is invalid.
    fn parse(text: &[u8]) -> Option<Self> {
        let inner = text.strip_prefix(b"<")?.strip_suffix(b">")?;
        let comma = inner.iter().position(|byte| *byte == b',')?;
        let radius = str::from_utf8(&inner[comma + 1..]).ok()?.parse().ok()?;
        Some(Ball::new(T::parse(&inner[..comma])?, radius))
    }
}

/// `ball(center, radius)`: creates the ball of all fingerprints within `radius` bits of `center`.
pub fn construct<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    Ball::new(arg::<T>(call, 0), call.int4(1)).into_datum()
}

/// Input function of a ball type: converts text to a ball. Raises error 22P02 if the text is
/// invalid.
pub fn input<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let text = call.cstring(0);
    match Ball::<T>::parse(text) {
        Some(ball) => ball.into_datum(),
        None => {
            let center = made_by::<T>();
            let made_by =
                center.map(|center| format!("ball({center}, {})", near_duplicate_bits(T::BITS)));
            UserError::invalid_text(
                &format!("{}_ball", T::TYPE_NAME),
                text,
                format!(
                    "A ball is written as <center,radius>, with the radius in bits. {}",
                    T::TEXT_FORM
                ),
                made_by.as_deref(),
            )
            .raise_soft(call)
        }
    }
}

/// Output function of a ball type: converts a ball to text, `<center,radius>`.
pub fn output<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let ball = Ball::<T>::argument(call, 0);
    let mut text = String::from("<");
    ball.center.write(&mut text);
    write!(text, ",{}>", ball.radius).expect("writing to a string cannot fail");
    varlena::cstring(&text)
}

/// Receive function of a ball type: converts a binary message to a ball. The message has the bytes
/// of the centre, then the radius as int4, each most significant byte first.
pub fn receive<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let center = T::Bytes::try_from(call.message(T::BITS as usize / 8)).ok();
    let radius = call.message(size_of::<i32>()).try_into();
    match (center, radius) {
        (Some(center), Ok(radius)) => {
            Ball::new(T::from_bytes(center), i32::from_be_bytes(radius)).into_datum()
        }
        _ => unreachable!("the server returned as many bytes as were asked for"),
    }
}

/// Send function of a ball type: converts a ball to the binary message that [`receive`] reads.
pub fn send<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let ball = Ball::<T>::argument(call, 0);
    varlena::build(&[ball.center.to_bytes().as_ref(), &ball.radius.to_be_bytes()])
}

/// Operator `fingerprint <@ ball`: whether the ball contains the fingerprint.
#[inline(always)]
pub fn contained<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(Ball::argument(call, 1).contains(arg::<T>(call, 0)))
}

/// Operator `ball @> fingerprint`: whether the ball contains the fingerprint.
#[inline(always)]
pub fn contains<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    pg_sys::Datum::from(Ball::argument(call, 0).contains(arg::<T>(call, 1)))
}

/// Operator `ball ~= ball`: whether each of the two balls contains the centre of the other one.
#[inline(always)]
pub fn similar<T: Fingerprint>(call: &mut Call) -> pg_sys::Datum {
    let [a, b] = [0, 1].map(|n| Ball::<T>::argument(call, n));
    pg_sys::Datum::from(a.contains(b.center) && b.contains(a.center))
}
