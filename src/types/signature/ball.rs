//! Balls around signatures: all signatures that differ from a centre in few positions.
//!
//! The bound of a distance or similarity is turned into whole mismatches here, by the very
//! arithmetic that `<%>` and `minhash_similarity` follow, so that `a <%> b <= r` and
//! `a <@ ball(b, r)` are the same for each r, whatever its last bits.
use pgrx::pg_sys;

use super::{Signature, distance, near_duplicate, similarity, text};
use crate::pg::errors::UserError;
use crate::pg::fmgr::{Call, export};
use crate::pg::varlena;
use crate::types::fingerprint::{cstring_arg, message_bytes, return_cstring};

const TYPE: &str = "minhash_ball";
const FORM: &str =
    "A ball is written as <signature,mismatches> or <signature,mismatches,approximate>.";
const APPROXIMATE: &str = "approximate";
/// Bytes of a ball before its centre: mismatches and flags.
const FRONT: usize = 8;

/// What a bound is of, as SQL functions are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `distance <= bound`.
    Distance = 0,
    /// `distance < bound`.
    DistanceBelow = 1,
    /// `similarity >= bound`.
    Similarity = 2,
    /// `similarity > bound`.
    SimilarityAbove = 3,
}

impl Bound {
    /// The bound of a number.
    pub fn of(code: i32) -> Option<Self> {
        [
            Bound::Distance,
            Bound::DistanceBelow,
            Bound::Similarity,
            Bound::SimilarityAbove,
        ]
        .into_iter()
        .find(|bound| *bound as i32 == code)
    }

    /// Whether a signature with so many mismatches is within. As the server compares float8: NaN
    /// is above all other numbers.
    fn admits(self, mismatches: usize, hashes: usize, bound: f64) -> bool {
        match self {
            Bound::Distance => bound.is_nan() || distance(mismatches, hashes) <= bound,
            Bound::DistanceBelow => bound.is_nan() || distance(mismatches, hashes) < bound,
            Bound::Similarity => similarity(mismatches, hashes) >= bound,
            Bound::SimilarityAbove => similarity(mismatches, hashes) > bound,
        }
    }

    /// The most mismatches within the bound; -1 if none will do.
    pub fn mismatches(self, hashes: usize, bound: f64) -> i32 {
        let share = match self {
            Bound::Distance | Bound::DistanceBelow => bound,
            Bound::Similarity | Bound::SimilarityAbove => 1.0 - bound,
        };
        // Rounding is off by less than one; of NaN nothing is known here.
        let most = match share.is_nan() {
            true => hashes,
            false => ((share * hashes as f64) as usize)
                .saturating_add(2)
                .min(hashes),
        };
        (0..=most)
            .rev()
            .find(|&mismatches| self.admits(mismatches, hashes, bound))
            .map_or(-1, |mismatches| mismatches as i32)
    }
}

/// A ball, borrowed from the server's memory.
#[derive(Clone, Copy)]
pub struct SignatureBall<'a> {
    /// The centre.
    pub center: Signature<'a>,
    /// The most positions in which signatures within differ from it, or -1 for the empty ball.
    pub mismatches: i32,
    /// Whether an index may answer approximately, where it cannot exactly by its bands.
    pub approximate: bool,
}

impl<'a> SignatureBall<'a> {
    /// Reads a value that the server passes.
    ///
    /// # Safety
    /// `datum` is a `minhash_ball`; the result lives as long as it and as the memory context that
    /// is current now.
    pub unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        // SAFETY: as the caller promises; the front is a multiple of four bytes long. A ball is
        // never stored by itself, so that one that is too short is a bug.
        unsafe {
            let (front, center) = varlena::aligned(datum).split_at(FRONT);
            let number = |at: usize| {
                i32::from_ne_bytes([front[at], front[at + 1], front[at + 2], front[at + 3]])
            };
            SignatureBall {
                center: Signature::read(center),
                mismatches: number(0),
                approximate: number(4) != 0,
            }
        }
    }

    /// The value in the form that the server takes, in the current memory context.
    pub fn into_datum(self) -> pg_sys::Datum {
        let mismatches = self.mismatches.clamp(-1, self.center.values.len() as i32);
        varlena::build(&[
            &mismatches.to_ne_bytes(),
            &i32::from(self.approximate).to_ne_bytes(),
            &self.center.head(),
            self.center.value_bytes(),
        ])
    }

    /// Whether a signature lies in the ball; `None` if it was made differently from the centre.
    fn contains(&self, signature: &Signature) -> Option<bool> {
        (self.center.mismatches(signature)).map(|mismatches| mismatches as i32 <= self.mismatches)
    }
}

fn parse<'a>(text: &[u8], values: &'a mut Vec<u32>) -> Option<SignatureBall<'a>> {
    let inner = text.strip_prefix(b"<")?.strip_suffix(b">")?;
    let mut parts = inner.splitn(3, |byte| *byte == b',');
    let center = text::parse(parts.next()?, values)?;
    let mismatches = str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    let approximate = match parts.next() {
        None => false,
        Some(word) if word == APPROXIMATE.as_bytes() => true,
        Some(_) => return None,
    };
    Some(SignatureBall {
        center,
        mismatches,
        approximate,
    })
}

fn input(call: &mut Call) -> pg_sys::Datum {
    let text = cstring_arg(call, 0);
    let mut values = Vec::new();
    match parse(text, &mut values) {
        Some(ball) => ball.into_datum(),
        None => UserError::invalid_text(TYPE, text, FORM).raise_soft(call),
    }
}

fn output(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared to take a ball.
    let ball = unsafe { SignatureBall::from_datum(call.arg(0)) };
    let mut text = String::from("<");
    text::write(&ball.center, &mut text);
    text += &format!(",{}", ball.mismatches);
    if ball.approximate {
        text += ",";
        text += APPROXIMATE;
    }
    text += ">";
    return_cstring(&text)
}

fn receive(call: &mut Call) -> pg_sys::Datum {
    let number = |call: &Call| {
        let bytes = message_bytes(call, 4);
        i32::from_be_bytes(bytes.try_into().expect("4 bytes were asked for"))
    };
    let (mismatches, approximate) = (number(call), number(call) != 0);
    let mut values = Vec::new();
    let center = text::receive_values(call, &mut values);
    SignatureBall {
        center,
        mismatches,
        approximate,
    }
    .into_datum()
}

fn send(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared to take a ball.
    let ball = unsafe { SignatureBall::from_datum(call.arg(0)) };
    varlena::build(&[
        &ball.mismatches.to_be_bytes(),
        &i32::from(ball.approximate).to_be_bytes(),
        &text::message(&ball.center),
    ])
}

/// A signature and a number as arguments.
unsafe fn center_and_bound<'a>(call: &Call) -> (Signature<'a>, f64) {
    // SAFETY: the callers are declared to take a signature and a float8.
    let center = unsafe { Signature::from_datum(call.arg(0)) };
    (center, f64::from_bits(call.arg(1).value() as u64))
}

fn ball(center: Signature, kind: Bound, bound: f64) -> pg_sys::Datum {
    SignatureBall {
        center,
        mismatches: kind.mismatches(center.values.len(), bound),
        approximate: false,
    }
    .into_datum()
}

/// `ball(center, distance)`.
fn construct(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared so.
    let (center, bound) = unsafe { center_and_bound(call) };
    ball(center, Bound::Distance, bound)
}

fn bound_argument(call: &Call, n: usize) -> Bound {
    let code = call.arg(n).value() as i32;
    Bound::of(code).unwrap_or_else(|| {
        UserError::invalid_parameter(format!("{code} is no kind of bound"))
            .detail("0: distance at most, 1: distance below, 2: similarity at least, 3: similarity above.")
            .raise()
    })
}

/// `neardup_ball(center, bound, kind)`.
fn construct_of_kind(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared so.
    let (center, bound) = unsafe { center_and_bound(call) };
    ball(center, bound_argument(call, 2), bound)
}

/// `neardup_approximate(ball)`.
fn approximate(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared to take a ball.
    let ball = unsafe { SignatureBall::from_datum(call.arg(0)) };
    SignatureBall {
        approximate: true,
        ..ball
    }
    .into_datum()
}

/// `neardup_within(a, b, bound, kind)`: what a comparison of a distance becomes if both signatures
/// come from tables. NULL for a kind of bound that there is not: it is leakproof.
fn within(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared to take two signatures, a float8 and an int4.
    let (a, b) = unsafe {
        (
            Signature::from_datum(call.arg(0)),
            Signature::from_datum(call.arg(1)),
        )
    };
    let bound = f64::from_bits(call.arg(2).value() as u64);
    let within = Bound::of(call.arg(3).value() as i32)
        .zip(a.mismatches(&b))
        .map(|(kind, mismatches)| kind.admits(mismatches, a.values.len(), bound));
    call.return_value(within.map(pg_sys::Datum::from))
}

/// The operator `signature <@ ball`.
fn contained(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared to take a signature and a ball.
    let (signature, ball) = unsafe {
        (
            Signature::from_datum(call.arg(0)),
            SignatureBall::from_datum(call.arg(1)),
        )
    };
    call.return_value(ball.contains(&signature).map(pg_sys::Datum::from))
}

/// The operator `ball @> signature`.
fn contains(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared to take a ball and a signature.
    let (ball, signature) = unsafe {
        (
            SignatureBall::from_datum(call.arg(0)),
            Signature::from_datum(call.arg(1)),
        )
    };
    call.return_value(ball.contains(&signature).map(pg_sys::Datum::from))
}

/// The operator `~=`. False of signatures that were made differently, as exclusion constraints take
/// no NULL.
fn similar(call: &mut Call) -> pg_sys::Datum {
    // SAFETY: declared to take two signatures.
    let (a, b) = unsafe {
        (
            Signature::from_datum(call.arg(0)),
            Signature::from_datum(call.arg(1)),
        )
    };
    let mismatches = a.mismatches(&b);
    pg_sys::Datum::from(mismatches.is_some_and(|it| it <= near_duplicate(a.values.len())))
}

export! {
    guarded "minhash_ball_in" => input;
    guarded "minhash_ball_out" => output;
    guarded "minhash_ball_recv" => receive;
    guarded "minhash_ball_send" => send;
    guarded "minhash_ball" => construct;
    guarded "minhash_ball_of_kind" => construct_of_kind;
    guarded "minhash_ball_approximate" => approximate;
    guarded "minhash_within" => within;
    guarded "minhash_contained" => contained;
    guarded "minhash_contains" => contains;
    guarded "minhash_similar" => similar;
}
