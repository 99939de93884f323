//! MinHash signatures: the SQL type `minhash_signature`, and functions of two signatures.
//!
//! A value includes its scheme and seed. Signatures with different schemes, seeds or lengths
//! cannot be compared. Estimates and conditions on them are NULL, with or without an index. They
//! do not raise an error, so the operators are leakproof.
//!
//! Stored as a varlena, aligned to 4 bytes:
//!
//! ```text
//! | length 4 | scheme 1 | bits 1 | hashes 2 | seed 8 | least values, 4 bytes each |
//! ```
//! `bits` is the number of stored bits of each value. It is 32; other numbers are reserved.
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

/// Number of stored bits of each value.
const BITS: u8 = 32;
/// Size of a signature before its values, without the varlena header.
const HEAD: usize = 12;

/// Signature, borrowed from the server's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature<'a> {
    /// Hash scheme.
    pub scheme: Scheme,
    /// Seed of the hash functions.
    pub seed: u64,
    /// Minimum of each hash function.
    pub values: &'a [u32],
}

impl<'a> Signature<'a> {
    /// Reads argument `n`. Raises an error unless it is a signature.
    pub fn argument(call: &'a Call, n: usize) -> Self {
        Self::from_body(call.aligned_bytes(n))
    }

    /// Changes the values of the signature in argument 0: in place if it is the state of an
    /// aggregate, otherwise in a copy. Returns the changed signature.
    pub fn edit_state(call: &Call, edit: impl FnOnce(&mut [u32])) -> pg_sys::Datum {
        call.edit_state(0, |body| {
            let positions = Signature::from_body(body).values.len();
            edit(bytemuck::cast_slice_mut(
                &mut body[HEAD..Self::size(positions)],
            ));
        })
    }

    /// Reads the payload of a signature, or of a ball after its own fields. Raises an error unless
    /// it is a signature that is aligned to four bytes.
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

    /// Returns the size of a signature with this number of positions, without the varlena header.
    pub const fn size(positions: usize) -> usize {
        HEAD + 4 * positions
    }

    /// Reads the first positions of a signature that was fetched only in part. Returns `None` if
    /// the bytes are not a signature, or not aligned to four bytes.
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

    /// Returns the stored form without the varlena header.
    pub fn to_bytes(self) -> Vec<u8> {
        [&self.head(), bytemuck::cast_slice(self.values)].concat()
    }

    /// Allocates the value in the current memory context for the server.
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

    /// Returns the number of positions that differ, or `None` if the two are not comparable.
    pub fn mismatches(&self, other: &Signature) -> Option<usize> {
        (self.comparable(other))
            .then(|| self.values.len() - minhash::matches(self.values, other.values))
    }

    /// Returns a signature with only the first positions.
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

    /// Returns the number of the scheme.
    pub fn scheme_code(&self) -> u8 {
        self.scheme.code()
    }

    /// Returns whether the two have the same scheme, seed and length.
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

    /// Describes the kind of signature for messages.
    pub fn kind(&self) -> String {
        format!(
            "{} hashes of scheme {} with seed {}",
            self.values.len(),
            self.scheme.name(),
            self.seed as i64
        )
    }
}

/// Returns the estimated Jaccard distance of signatures with `hashes` values.
pub fn distance(mismatches: usize, hashes: usize) -> f64 {
    mismatches as f64 / hashes as f64
}

/// Returns the estimated Jaccard similarity of signatures with `hashes` values. It is not computed
/// as 1 minus the distance, which would round twice.
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
