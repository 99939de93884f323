//! Kinds of values in the last column of an index.
use neardup_blocktree::meta::Metric;
use neardup_blocktree::{bands, sets};

use crate::pg::value::ValueType;

/// Values of an index's last column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Fingerprints of this number of bytes.
    Fingerprints(i16),
    /// Balls around such fingerprints, whose centres are indexed: for constraints of any radius.
    Balls(i16),
    /// MinHash signatures, whose bands are indexed ([`super::minhash`]).
    Signatures,
    /// Arrays of `bigint`, whose elements are indexed ([`super::sets`]).
    Sets,
}

impl Values {
    /// The values of a type of this length (`typlen`): signatures if it is -1, and else
    /// fingerprints of `length` bytes.
    pub fn of_length(length: i16) -> Self {
        match length {
            -1 => Values::Signatures,
            length => Values::Fingerprints(length),
        }
    }

    /// The metric by which they are compared, as the meta page names it.
    pub fn metric(self) -> Metric {
        match self {
            Values::Fingerprints(_) | Values::Balls(_) => Metric::Hamming,
            Values::Signatures => Metric::MinHash,
            Values::Sets => Metric::Overlap,
        }
    }

    /// Words of a key that stand for a value.
    pub fn words(self) -> usize {
        match self {
            Values::Fingerprints(size) | Values::Balls(size) => size as usize / 8,
            Values::Signatures => bands::WORDS,
            Values::Sets => sets::WORDS,
        }
    }

    /// The type of balls around such values, as `<@` takes them.
    pub fn ball_type(self, oid: pgrx::pg_sys::Oid) -> ValueType {
        let length = match self {
            Values::Fingerprints(size) | Values::Balls(size) => size + 8,
            Values::Signatures | Values::Sets => -1,
        };
        ValueType::by_reference(oid, length)
    }

    /// Returns whether values have a distance: sets overlap or do not.
    pub fn have_distances(self) -> bool {
        self != Values::Sets
    }

    /// Returns whether the values are balls.
    pub fn are_balls(self) -> bool {
        matches!(self, Values::Balls(_))
    }

    /// Returns whether the index holds the values themselves, and not only hashes or parts of them.
    pub fn are_stored(self) -> bool {
        matches!(self, Values::Fingerprints(_))
    }
}
