//! Balls around signatures: all signatures that differ from a centre in at most some number of
//! positions. Only signatures with the same scheme, seed and length can be compared.
//!
//! This module converts a bound of a distance or a similarity to a number of differing positions
//! (mismatches). It uses the arithmetic of `<%>` and `minhash_similarity`, so `a <%> b <= r` and `a
//! <@ minhash_ball(b, r)` are equal for every `r`.
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
/// Number of bytes of a stored ball before its centre: the mismatches and the flag `approximate`,
/// four bytes each.
const FRONT: usize = 8;

/// Kind of a bound of the distance or similarity of two signatures. SQL functions take its
/// discriminant as an int4 argument.
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
    /// Returns the kind of bound with the number `code`, or `None` if there is none.
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

    /// Returns true if signatures of `hashes` values that differ in `mismatches` positions are
    /// within the bound. NaN is above all other numbers, as in the server's order of float8.
    fn admits(self, mismatches: usize, hashes: usize, bound: f64) -> bool {
        match self {
            Bound::Distance => bound.is_nan() || distance(mismatches, hashes) <= bound,
            Bound::DistanceBelow => bound.is_nan() || distance(mismatches, hashes) < bound,
            Bound::Similarity => similarity(mismatches, hashes) >= bound,
            Bound::SimilarityAbove => similarity(mismatches, hashes) > bound,
        }
    }

    /// Returns the maximum number of mismatches (differing positions) of two signatures of `hashes`
    /// values that are within the bound. Returns -1 if no two signatures are.
    pub fn mismatches(self, hashes: usize, bound: f64) -> i32 {
        let share = match self {
            Bound::Distance | Bound::DistanceBelow => bound,
            Bound::Similarity | Bound::SimilarityAbove => 1.0 - bound,
        };
        // The search starts a little above the rounded estimate, which is off by less than one. For
        // NaN it starts at the maximum.
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

/// Value of the SQL type `minhash_ball`. The centre's values are borrowed from the server's memory.
#[derive(Clone, Copy)]
pub struct SignatureBall<'a> {
    /// Signature at the centre.
    pub center: Signature<'a>,
    /// Maximum number of positions in which a signature differs from the centre, or -1 for the
    /// empty ball.
    pub mismatches: i32,
    /// True if an index search for this ball may miss rows. The bands of an index (groups of a
    /// signature's hashes) find all signatures only up to some number of mismatches. If
    /// `mismatches` is larger, a search uses the bands only if this flag is set.
    pub approximate: bool,
}

impl<'a> SignatureBall<'a> {
    /// Reads a ball from its stored form without the varlena header. `body` must be aligned to four
    /// bytes.
    pub fn from_body(body: &'a [u8]) -> Self {
        // The length of the front is a multiple of four, so the centre is aligned. Every ball has a
        // front, so a shorter value is a bug.
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

    /// Copies the ball into the current memory context, and returns the Datum that refers to it.
    pub fn into_datum(self) -> pg_sys::Datum {
        varlena::build(&[&self.to_bytes()])
    }

    /// Returns the stored form of the ball without the varlena header.
    pub fn to_bytes(self) -> Vec<u8> {
        let mismatches = self.mismatches.clamp(-1, self.center.values.len() as i32);
        let front = [mismatches, self.approximate.into()].map(i32::to_ne_bytes);
        [front.as_flattened(), &self.center.to_bytes()].concat()
    }

    /// Returns true if the ball contains `signature`; `None` if the signature cannot be compared
    /// with the centre.
    fn contains(&self, signature: &Signature) -> Option<bool> {
        (self.center.mismatches(signature)).map(|mismatches| mismatches as i32 <= self.mismatches)
    }
}

/// Parses a ball in its text form, see [`FORM`]. Stores the values of the centre in `values`, from
/// which the result borrows them. Returns `None` if the text is invalid.
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

/// Input function of `minhash_ball`.
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

/// Output function of `minhash_ball`.
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

/// Receive function of `minhash_ball`. The message has the mismatches and the flag `approximate`,
/// each as int4, and then the message of the centre.
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

/// Send function of `minhash_ball`.
fn send(call: &mut Call) -> pg_sys::Datum {
    let ball = ball_argument(call, 0);
    varlena::build(&[
        &ball.mismatches.to_be_bytes(),
        &i32::from(ball.approximate).to_be_bytes(),
        &text::message(&ball.center),
    ])
}

/// Reads the ball in argument `n`. Raises an error unless its centre is a valid signature.
fn ball_argument(call: &Call, n: usize) -> SignatureBall<'_> {
    SignatureBall::from_body(call.aligned_bytes(n))
}

/// Returns a Datum with the ball of all signatures that are within `bound` of `center`. `kind` is
/// the kind of the bound, such as "similarity at least".
fn ball(center: Signature, kind: Bound, bound: f64) -> pg_sys::Datum {
    SignatureBall {
        center,
        mismatches: kind.mismatches(center.values.len(), bound),
        approximate: false,
    }
    .into_datum()
}

/// `minhash_ball(center, radius)`: ball of all signatures whose distance from `center` is at most
/// `radius`. Distances are from 0 to 1.
fn construct(call: &mut Call) -> pg_sys::Datum {
    ball(
        Signature::argument(call, 0),
        Bound::Distance,
        call.float8(1),
    )
}

/// Returns the kind of bound whose number is in argument `n`. Raises an error if no kind has this
/// number.
fn bound_argument(call: &Call, n: usize) -> Bound {
    let code = call.int4(n);
    Bound::from_code(code).unwrap_or_else(|| {
        UserError::invalid_parameter(format!("invalid kind of bound: {code}"))
            .detail(
                "The kinds are 0 (distance at most), 1 (distance below), 2 (similarity at least) \
                 and 3 (similarity above).",
            )
            .raise()
    })
}

/// `_neardup_ball(center, bound, kind)`: ball of all signatures that are within a bound of the
/// centre. `kind` is the number of a [`Bound`].
fn construct_of_kind(call: &mut Call) -> pg_sys::Datum {
    let (center, bound) = (Signature::argument(call, 0), call.float8(1));
    ball(center, bound_argument(call, 2), bound)
}

/// `_neardup_approximate(ball)`: returns the ball with the flag [`SignatureBall::approximate`] set,
/// so that an index search for it may miss rows.
fn approximate(call: &mut Call) -> pg_sys::Datum {
    let ball = ball_argument(call, 0);
    SignatureBall {
        approximate: true,
        ..ball
    }
    .into_datum()
}

/// `_neardup_within(a, b, bound, kind)`: whether two signatures are within a bound. The planner
/// replaces a comparison of their distance or similarity by this function if both signatures
/// contain columns, as in a join. Returns NULL, not an error, for an unknown kind, because the
/// function is leakproof.
fn within(call: &mut Call) -> pg_sys::Datum {
    let [a, b] = [0, 1].map(|n| Signature::argument(call, n));
    let bound = call.float8(2);
    let within = Bound::from_code(call.int4(3))
        .zip(a.mismatches(&b))
        .map(|(kind, mismatches)| kind.admits(mismatches, a.values.len(), bound));
    call.return_value(within.map(pg_sys::Datum::from))
}

/// Operator `signature <@ ball`: whether the ball contains the signature. NULL if the signature
/// cannot be compared with the centre.
fn contained(call: &mut Call) -> pg_sys::Datum {
    let contained = ball_argument(call, 1).contains(&Signature::argument(call, 0));
    call.return_value(contained.map(pg_sys::Datum::from))
}

/// Operator `ball @> signature`: whether the ball contains the signature. NULL if the signature
/// cannot be compared with the centre.
fn contains(call: &mut Call) -> pg_sys::Datum {
    let contained = ball_argument(call, 0).contains(&Signature::argument(call, 1));
    call.return_value(contained.map(pg_sys::Datum::from))
}

/// Operator `~=`: whether two signatures are near-duplicates by convention: they differ in at most
/// [`near_duplicate_mismatches`] positions, which is one in five. Returns false, not NULL, for
/// signatures that cannot be compared, because exclusion constraints do not accept NULL.
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
