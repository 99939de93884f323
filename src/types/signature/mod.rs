//! MinHash signatures: the SQL type `minhash_signature`, and SQL functions of two signatures. A
//! signature has one value (32-bit hash) for each hash function. The share of positions in which
//! two signatures have equal values estimates the Jaccard similarity of two sets.
//!
//! A value includes its scheme and its seed. Signatures with different schemes, seeds or lengths
//! cannot be compared. Estimates from two such signatures, and conditions on them, are NULL, with
//! or without an index. The operator `~=` returns false instead. None of these operators raises an
//! error, so they are leakproof.
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

/// Number of stored bits of each value of a signature.
const BITS: u8 = 32;
/// Number of bytes of a stored signature before its values, without the varlena header.
const HEAD: usize = 12;

/// Value of the SQL type `minhash_signature`. Its values are borrowed from the server's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature<'a> {
    /// Scheme of the hash functions.
    pub scheme: Scheme,
    /// Seed of the hash functions.
    pub seed: u64,
    /// For each hash function, the minimum of the function's values over the elements of the set.
    pub values: &'a [u32],
}

impl<'a> Signature<'a> {
    /// Reads the signature in argument `n`. Raises an error unless the argument is a valid
    /// signature.
    pub fn argument(call: &'a Call, n: usize) -> Self {
        Self::from_body(call.aligned_bytes(n))
    }

    /// Changes the values of the signature in argument 0 by `edit`, and returns the changed
    /// signature. If an aggregate makes the call, the signature is its state and is changed in
    /// place. For other callers, this function changes a copy.
    pub fn edit_state(call: &Call, edit: impl FnOnce(&mut [u32])) -> pg_sys::Datum {
        call.edit_state(0, |body| {
            let positions = Signature::from_body(body).values.len();
            edit(bytemuck::cast_slice_mut(
                &mut body[HEAD..Self::size(positions)],
            ));
        })
    }

    /// Reads a signature from its stored form without the varlena header. `body` must be aligned to
    /// four bytes. The centre of a stored ball has the same form. Raises an error if the bytes are
    /// not a signature.
    pub fn from_body(body: &'a [u8]) -> Self {
        let signature = (|| {
            let hashes = u16::from_ne_bytes(*body.get(2..)?.first_chunk()?);
            Self::beginning(body, hashes.into())
        })();
        signature.unwrap_or_else(|| {
            UserError::new(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                "a minhash_signature is damaged or comes from a later version of neardup",
            )
            .detail("The header of the signature does not match its length.")
            .raise()
        })
    }

    /// Returns the number of bytes of a stored signature with `positions` values, without the
    /// varlena header.
    pub const fn size(positions: usize) -> usize {
        HEAD + 4 * positions
    }

    /// Reads a stored signature of which only the first `positions` values were fetched. `body` has
    /// the header and these values, and nothing else. Returns `None` if the bytes are not a
    /// signature, have another length, or are not aligned to four bytes.
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

    /// Returns the stored form of the signature without the varlena header.
    pub fn to_bytes(self) -> Vec<u8> {
        [&self.head(), bytemuck::cast_slice(self.values)].concat()
    }

    /// Copies the signature into the current memory context, and returns the Datum that refers to
    /// it.
    pub fn into_datum(self) -> pg_sys::Datum {
        varlena::build(&[&self.head(), bytemuck::cast_slice(self.values)])
    }

    /// Returns the bytes before the values: scheme, bits, number of values, and seed.
    fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[0] = self.scheme.code();
        head[1] = BITS;
        head[2..4].copy_from_slice(&(self.values.len() as u16).to_ne_bytes());
        head[4..].copy_from_slice(&self.seed.to_ne_bytes());
        head
    }

    /// Returns the number of positions in which two signatures differ, or `None` if they cannot be
    /// compared.
    pub fn mismatches(&self, other: &Signature) -> Option<usize> {
        (self.comparable(other))
            .then(|| self.values.len() - minhash::matches(self.values, other.values))
    }

    /// Returns a signature with only the first `positions` values. Panics if there are fewer.
    pub fn first(self, positions: usize) -> Signature<'a> {
        let values = &self.values[..positions];
        Signature { values, ..self }
    }

    /// Raises an error unless two signatures can be compared.
    pub fn expect_comparable(&self, other: &Signature) {
        if !self.comparable(other) {
            refuse(self, other);
        }
    }

    /// Returns the number by which a stored signature identifies its scheme.
    pub fn scheme_code(&self) -> u8 {
        self.scheme.code()
    }

    /// Returns true if two signatures can be compared: they have the same scheme, seed and length.
    pub fn comparable(&self, other: &Signature) -> bool {
        let of = |s: &Signature| (s.scheme, s.seed, s.values.len());
        of(self) == of(other)
    }

    /// Orders signatures by scheme, length and seed, then by their values. The order has no meaning
    /// beyond sorting and btree indexes.
    fn order(&self, other: &Signature) -> Ordering {
        let of = |s: &Signature| (s.scheme.code(), s.values.len(), s.seed);
        of(self)
            .cmp(&of(other))
            .then_with(|| self.values.cmp(other.values))
    }

    /// Describes the length, scheme and seed of the signature, for messages.
    pub fn kind(&self) -> String {
        format!(
            "{} hashes of scheme {} with seed {}",
            self.values.len(),
            self.scheme.name(),
            self.seed as i64
        )
    }
}

/// Returns the Jaccard distance estimated from two signatures of `hashes` values that differ in
/// `mismatches` positions.
pub fn distance(mismatches: usize, hashes: usize) -> f64 {
    mismatches as f64 / hashes as f64
}

/// Returns the Jaccard similarity estimated from two signatures of `hashes` values that differ in
/// `mismatches` positions. It is not computed as 1 minus the distance, which would round twice.
pub fn similarity(mismatches: usize, hashes: usize) -> f64 {
    (hashes - mismatches) as f64 / hashes as f64
}

/// Raises the error that two signatures cannot be united because their schemes, seeds or lengths
/// differ.
#[cold]
fn refuse(a: &Signature, b: &Signature) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_DATA_EXCEPTION,
        "cannot compute the union of signatures of different kinds",
    )
    .detail(format!(
        "One signature has {}, and the other has {}.",
        a.kind(),
        b.kind()
    ))
    .hint("Compute both with minhash() and the same number of hashes, seed and scheme.")
    .raise()
}
