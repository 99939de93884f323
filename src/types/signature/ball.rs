//! Balls around signatures: all signatures that differ from a centre in few positions.
//!
//! This module converts a bound of a distance or similarity to whole mismatches. It uses the
//! arithmetic of `<%>` and `minhash_similarity`, so `a <%> b <= r` and `a <@ ball(b, r)` are equal
//! for every `r`.
use neardup_blocktree::metric::near_duplicate_mismatches;
use pgrx::pg_sys;

use super::{Signature, distance, similarity, text};
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::varlena;

const TYPE: &str = "minhash_ball";
const FORM: &str =
    "A ball is written as <signature,mismatches> or <signature,mismatches,approximate>.";
const APPROXIMATE: &str = "approximate";
/// Size of a ball's fields before the centre: mismatches and flags.
const FRONT: usize = 8;

/// Kind of a bound, with its number in SQL functions.
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
    /// Returns the kind with this number.
    pub fn from_code(code: i32) -> Option<Self> {
        [
            Bound::Distance,
            Bound::DistanceBelow,
            Bound::Similarity,
            Bound::SimilarityAbove,
        ]
        .into_iter()
        .find(|bound| *bound as i32 == code)
    }

    /// Returns whether this number of mismatches is within the bound. NaN is above all other
    /// numbers, as in the server's order of float8.
    fn admits(self, mismatches: usize, hashes: usize, bound: f64) -> bool {
        match self {
            Bound::Distance => bound.is_nan() || distance(mismatches, hashes) <= bound,
            Bound::DistanceBelow => bound.is_nan() || distance(mismatches, hashes) < bound,
            Bound::Similarity => similarity(mismatches, hashes) >= bound,
            Bound::SimilarityAbove => similarity(mismatches, hashes) > bound,
        }
    }

    /// Returns the maximum number of mismatches within the bound, or -1 if there is none.
    pub fn mismatches(self, hashes: usize, bound: f64) -> i32 {
        let share = match self {
            Bound::Distance | Bound::DistanceBelow => bound,
            Bound::Similarity | Bound::SimilarityAbove => 1.0 - bound,
        };
        // Rounding is off by less than one. For NaN the search starts at the maximum.
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

/// Ball, borrowed from the server's memory.
#[derive(Clone, Copy)]
pub struct SignatureBall<'a> {
    /// Centre.
    pub center: Signature<'a>,
    /// Maximum number of positions that differ from the centre, or -1 for the empty ball.
    pub mismatches: i32,
    /// True if an index may return approximate results beyond the guarantee of its bands.
    pub approximate: bool,
}

impl<'a> SignatureBall<'a> {
    /// Reads the payload of a ball, which is aligned to four bytes.
    pub fn from_body(body: &'a [u8]) -> Self {
        // The front is a multiple of four bytes long. A ball is never stored by itself, so a short
        // one is a bug.
        let (front, center) = body.split_at(FRONT);
        let number = |at: usize| {
            i32::from_ne_bytes([front[at], front[at + 1], front[at + 2], front[at + 3]])
        };
        SignatureBall {
            center: Signature::from_body(center),
            mismatches: number(0),
            approximate: number(4) != 0,
        }
    }

    /// Allocates the value in the current memory context for the server.
    pub fn into_datum(self) -> pg_sys::Datum {
        varlena::build(&[&self.to_bytes()])
    }

    /// Returns the stored form without the varlena header.
    pub fn to_bytes(self) -> Vec<u8> {
        let mismatches = self.mismatches.clamp(-1, self.center.values.len() as i32);
        let front = [mismatches, self.approximate.into()].map(i32::to_ne_bytes);
        [front.as_flattened(), &self.center.to_bytes()].concat()
    }

    /// Returns whether the ball contains a signature. Returns `None` if it is not comparable with
    /// the centre.
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
    let text = call.cstring(0);
    let mut values = Vec::new();
    match parse(text, &mut values) {
        Some(ball) => ball.into_datum(),
        None => {
            let made_by = Some("minhash_ball(minhash('...'), 0.2)");
            UserError::invalid_text(TYPE, text, FORM, made_by).raise_soft(call)
        }
    }
}

fn output(call: &mut Call) -> pg_sys::Datum {
    let ball = ball_argument(call, 0);
    let mut text = String::from("<");
    text::write(&ball.center, &mut text);
    text += &format!(",{}", ball.mismatches);
    if ball.approximate {
        text += ",";
        text += APPROXIMATE;
    }
    text += ">";
    varlena::cstring(&text)
}

fn receive(call: &mut Call) -> pg_sys::Datum {
    let number = |call: &Call| {
        let bytes = call.message(4);
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
    let ball = ball_argument(call, 0);
    varlena::build(&[
        &ball.mismatches.to_be_bytes(),
        &i32::from(ball.approximate).to_be_bytes(),
        &text::message(&ball.center),
    ])
}

/// Reads argument `n`. Raises an error unless it is a ball.
fn ball_argument(call: &Call, n: usize) -> SignatureBall<'_> {
    SignatureBall::from_body(call.aligned_bytes(n))
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
    ball(
        Signature::argument(call, 0),
        Bound::Distance,
        call.float8(1),
    )
}

fn bound_argument(call: &Call, n: usize) -> Bound {
    let code = call.int4(n);
    Bound::from_code(code).unwrap_or_else(|| {
        UserError::invalid_parameter(format!("{code} is not a kind of bound"))
            .detail(
                "0: distance at most, 1: distance below, 2: similarity at least, 3: similarity \
                 above.",
            )
            .raise()
    })
}

/// `_neardup_ball(center, bound, kind)`.
fn construct_of_kind(call: &mut Call) -> pg_sys::Datum {
    let (center, bound) = (Signature::argument(call, 0), call.float8(1));
    ball(center, bound_argument(call, 2), bound)
}

/// `_neardup_approximate(ball)`.
fn approximate(call: &mut Call) -> pg_sys::Datum {
    let ball = ball_argument(call, 0);
    SignatureBall {
        approximate: true,
        ..ball
    }
    .into_datum()
}

/// `_neardup_within(a, b, bound, kind)`: planned form of a distance comparison if both signatures
/// come from tables. NULL for an unknown kind, because the function is leakproof.
fn within(call: &mut Call) -> pg_sys::Datum {
    let [a, b] = [0, 1].map(|n| Signature::argument(call, n));
    let bound = call.float8(2);
    let within = Bound::from_code(call.int4(3))
        .zip(a.mismatches(&b))
        .map(|(kind, mismatches)| kind.admits(mismatches, a.values.len(), bound));
    call.return_value(within.map(pg_sys::Datum::from))
}

/// Operator `signature <@ ball`.
fn contained(call: &mut Call) -> pg_sys::Datum {
    let contained = ball_argument(call, 1).contains(&Signature::argument(call, 0));
    call.return_value(contained.map(pg_sys::Datum::from))
}

/// Operator `ball @> signature`.
fn contains(call: &mut Call) -> pg_sys::Datum {
    let contained = ball_argument(call, 0).contains(&Signature::argument(call, 1));
    call.return_value(contained.map(pg_sys::Datum::from))
}

/// Operator `~=`. False for signatures that were made differently, because exclusion constraints
/// do not accept NULL.
fn similar(call: &mut Call) -> pg_sys::Datum {
    let [a, b] = [0, 1].map(|n| Signature::argument(call, n));
    let limit = near_duplicate_mismatches(a.values.len());
    pg_sys::Datum::from(
        a.mismatches(&b)
            .is_some_and(|mismatches| mismatches <= limit),
    )
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
