//! MinHash signatures: the SQL type `minhash_signature`, and functions of two of them.
//!
//! A value includes its scheme and seed. Signatures of different schemes, seeds or lengths cannot
//! be compared: estimates of them are NULL, and so is every condition on these, with an index as
//! without one. It is not an error, so that the operators are leakproof.
//!
//! Stored as a varlena, aligned to 4 bytes:
//!
//! ```text
//! | length 4 | scheme 1 | bits 1 | hashes 2 | seed 8 | least values, 4 bytes each |
//! ```
//! `bits`, the number of bits stored of each value, is 32; other numbers are reserved.
mod ball;
mod compare;
mod text;

use core::cmp::Ordering;

use neardup_sketch::minhash::{self, Scheme};
use neardup_sketch::options::NamedOption;
use pgrx::{PgSqlErrorCode, pg_sys};

use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::varlena;

pub use ball::{Bound, SignatureBall};
pub use text::HASHES;

/// Bits that are stored of each value.
const BITS: u8 = 32;
/// Bytes of a signature before its values, without the varlena's length.
const HEAD: usize = 12;

/// A signature, borrowed from the server's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature<'a> {
    /// Its scheme.
    pub scheme: Scheme,
    /// The seed of its functions.
    pub seed: u64,
    /// The least value of each function.
    pub values: &'a [u32],
}

impl<'a> Signature<'a> {
    /// Reads argument `n`. Raises an error unless it is a signature.
    pub fn argument(call: &'a Call, n: usize) -> Self {
        Self::from_body(call.aligned_bytes(n))
    }

    /// Changes the values of argument 0, a signature: in place if it is the state of an aggregate,
    /// else in a copy. Returns the changed signature.
    pub fn edit_state(call: &Call, edit: impl FnOnce(&mut [u32])) -> pg_sys::Datum {
        call.edit_state(0, |body| {
            let positions = Signature::from_body(body).values.len();
            edit(bytemuck::cast_slice_mut(
                &mut body[HEAD..Self::size(positions)],
            ));
        })
    }

    /// Reads the payload of a signature, or of a ball after its own fields. Raises an error unless
    /// it is one, aligned to four bytes.
    pub fn from_body(body: &'a [u8]) -> Self {
        let signature = (|| {
            let hashes = u16::from_ne_bytes(*body.get(2..)?.first_chunk()?);
            Self::beginning(body, hashes.into())
        })();
        signature.unwrap_or_else(|| {
            UserError::new(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                "a minhash_signature is damaged, or of a later version of neardup",
            )
            .detail("Its header does not fit its length.")
            .raise()
        })
    }

    /// Bytes of a signature with this number of positions, without the varlena's length.
    pub const fn size(positions: usize) -> usize {
        HEAD + 4 * positions
    }

    /// Reads the first positions of a signature of which only these bytes were fetched; `None` if
    /// they are not a signature, or not aligned to four bytes.
    pub fn beginning(body: &'a [u8], positions: usize) -> Option<Self> {
        let (head, values) = body.split_at_checked(HEAD)?;
        let scheme = Scheme::from_code(head[0]).filter(|_| head[1] == BITS)?;
        let seed = head[4..].try_into().map(u64::from_ne_bytes).ok()?;
        let values = bytemuck::try_cast_slice(values).ok()?;
        (values.len() == positions).then_some(Signature {
            scheme,
            seed,
            values,
        })
    }

    /// The value as it is stored, without the varlena's length.
    pub fn to_bytes(self) -> Vec<u8> {
        [&self.head(), bytemuck::cast_slice(self.values)].concat()
    }

    /// The value in the form that the server takes, in the current memory context.
    pub fn into_datum(self) -> pg_sys::Datum {
        varlena::build(&[&self.head(), bytemuck::cast_slice(self.values)])
    }

    fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[0] = self.scheme.code();
        head[1] = BITS;
        head[2..4].copy_from_slice(&(self.values.len() as u16).to_ne_bytes());
        head[4..].copy_from_slice(&self.seed.to_ne_bytes());
        head
    }

    /// The number of positions in which the two differ; `None` if they are not comparable.
    pub fn mismatches(&self, other: &Signature) -> Option<usize> {
        (self.comparable(other))
            .then(|| self.values.len() - minhash::matches(self.values, other.values))
    }

    /// A signature of the first positions of this one.
    pub fn first(self, positions: usize) -> Signature<'a> {
        let values = &self.values[..positions];
        Signature { values, ..self }
    }

    /// Raises an error unless the two are comparable.
    pub fn expect_comparable(&self, other: &Signature) {
        if !self.comparable(other) {
            refuse(self, other);
        }
    }

    /// The number of its scheme.
    pub fn scheme_code(&self) -> u8 {
        self.scheme.code()
    }

    /// Returns true if the two have the same scheme, seed and length.
    pub fn comparable(&self, other: &Signature) -> bool {
        let of = |s: &Signature| (s.scheme, s.seed, s.values.len());
        of(self) == of(other)
    }

    fn order(&self, other: &Signature) -> Ordering {
        let of = |s: &Signature| (s.scheme.code(), s.values.len(), s.seed);
        of(self)
            .cmp(&of(other))
            .then_with(|| self.values.cmp(other.values))
    }

    /// The kind of signature, for messages.
    pub fn kind(&self) -> String {
        format!(
            "{} hashes of scheme {} with seed {}",
            self.values.len(),
            self.scheme.name(),
            self.seed as i64
        )
    }
}

/// The estimated Jaccard distance of signatures of a length.
pub fn distance(mismatches: usize, hashes: usize) -> f64 {
    mismatches as f64 / hashes as f64
}

/// The estimated Jaccard similarity of signatures of a length. Not computed as 1 minus the
/// distance, which would round twice.
pub fn similarity(mismatches: usize, hashes: usize) -> f64 {
    (hashes - mismatches) as f64 / hashes as f64
}

#[cold]
fn refuse(a: &Signature, b: &Signature) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_DATA_EXCEPTION,
        "signatures of different kinds cannot be united",
    )
    .detail(format!("One has {}, the other {}.", a.kind(), b.kind()))
    .hint("Make both by minhash() with the same hashes, seed and scheme.")
    .raise()
}
