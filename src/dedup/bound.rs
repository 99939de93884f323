//! Bound of near-duplicates in functions over whole tables: a maximum distance (`radius`) or a
//! minimum similarity (`similarity`). Without either argument, a function uses the bound that the
//! index was built for.
//!
//! Each kind of bound has its own named argument. A single argument would have to distinguish them
//! by the type of the number. That fails because drivers choose the type: psycopg sends smallint
//! for 1, and other drivers leave the type to the server.
use core::fmt;

use neardup_blocktree::metric::UsualBound;
use neardup_sketch::candidates::{Estimator, USUAL_LOSS};
use neardup_sketch::minhash_fingerprint;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::compared::Compared;
use super::estimate::SimilarityEstimate;
use crate::am::index::{Index, bound_of, metric_of, words_of};
use crate::am::keys::{require_distances, with_words};
use crate::types::signature;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::Call;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::rel::Rel;

/// Maximum distance or minimum similarity of near-duplicates.
#[derive(Clone, Copy, PartialEq)]
pub enum Bound {
    /// Maximum distance of fingerprints, in bits.
    Radius(u32),
    /// Minimum similarity, from 0 to 1.
    Similarity(f64),
}

impl Bound {
    /// Returns the bound that a caller passed as the argument `radius` or `similarity`, or `None`
    /// if both are NULL. The array has the positions of the two arguments. Raises an error if both
    /// are set, or if a value is out of range.
    pub fn read(call: &Call, [radius, similarity]: [usize; 2]) -> Option<Self> {
        let radius = (!call.is_null(radius)).then(|| Self::from_radius(call.int4(radius)));
        let similarity =
            (!call.is_null(similarity)).then(|| Self::from_similarity(call.float8(similarity)));
        match (radius, similarity) {
            (Some(_), Some(_)) => refuse_both(),
            _ => radius.or(similarity),
        }
    }

    /// Returns the bound that an index was built for. The index must be on fingerprints or
    /// signatures.
    pub fn from_index(index: Rel) -> Self {
        match bound_of(index).expect("values with distances have a bound") {
            UsualBound::Radius(radius) => Bound::Radius(radius),
            UsualBound::Similarity(similarity) => Bound::Similarity(similarity),
        }
    }

    /// Creates a bound from a caller's radius in bits. Raises an error if the radius is negative.
    pub fn from_radius(radius: i32) -> Self {
        Bound::Radius(u32::try_from(radius).unwrap_or_else(|_| {
            UserError::invalid_parameter("the radius must not be negative")
                .detail(format!("The radius is {radius}."))
                .raise()
        }))
    }

    /// Creates a bound from a caller's similarity. Raises an error unless it is between 0 and 1.
    pub fn from_similarity(similarity: f64) -> Self {
        if (0.0..=1.0).contains(&similarity) {
            return Bound::Similarity(similarity);
        }
        let error = UserError::invalid_parameter("the similarity must be between 0 and 1")
            .detail(format!("The similarity is {similarity}."));
        match similarity {
            1.0..=100.0 => error.hint(format!(
                "Write a percentage as a fraction: similarity => {}.",
                similarity / 100.0
            )),
            _ => error,
        }
        .raise()
    }
}

impl Bound {
    /// Formats the bound as an argument, such as `radius => 6`. `sign` separates the name from the
    /// value.
    pub fn argument(self, sign: &str) -> String {
        match self {
            Bound::Radius(radius) => format!("radius{sign}{radius}"),
            Bound::Similarity(similarity) => format!("similarity{sign}{similarity}"),
        }
    }
}

/// Formats the bound for messages, such as `radius 6`.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.argument(" "))
    }
}

/// Bounds that several indexes of one table were built for, each with the name of its index.
pub struct IndexBounds(Vec<(String, Bound)>);

impl IndexBounds {
    /// Collects the name of each index, and the bound that it was built for.
    pub fn new<'a>(indexes: impl IntoIterator<Item = Rel<'a>>) -> Self {
        let bound = |index: Rel| (index.shown(), Bound::from_index(index));
        IndexBounds(indexes.into_iter().map(bound).collect())
    }

    /// Returns whether all indexes were built for the same bound.
    pub fn agree(&self) -> bool {
        self.0.windows(2).all(|pair| pair[0].1 == pair[1].1)
    }

    /// Formats the bound of the first index as an example of an argument, such as `radius=6` if
    /// `sign` is `=`. Returns an empty string if there are no indexes.
    pub fn example(&self, sign: &str) -> String {
        (self.0.first()).map_or_else(String::new, |(_, bound)| bound.argument(sign))
    }

    /// Lists the name and the bound of each index, for messages.
    pub fn list(&self) -> String {
        let shown = |(name, bound): &(String, Bound)| format!("\"{name}\" has {bound}");
        let all: Vec<String> = self.0.iter().map(shown).collect();
        all.join(". Index ")
    }

    /// Raises error 42P08: the indexes of a table have different bounds, so the caller must pass a
    /// bound. `table` is the table's name, and `hint` is the hint of the error.
    pub fn refuse(&self, table: &str, hint: &str) -> ! {
        UserError::new(
            PgSqlErrorCode::ERRCODE_AMBIGUOUS_PARAMETER,
            format!("the neardup indexes of table \"{table}\" have different bounds"),
        )
        .detail(format!("Index {}.", self.list()))
        .hint(hint)
        .raise()
    }
}

/// Bound of a search in one index or column: a radius in bits for fingerprints, a similarity for
/// signatures.
#[derive(Clone, Copy)]
pub enum SearchBound {
    Fingerprints(FingerprintBound),
    Signatures(SignatureBound),
}

/// Bound of a search among fingerprints, and how its results are shown.
#[derive(Clone, Copy)]
pub struct FingerprintBound {
    /// Maximum distance of two fingerprints in bits.
    pub radius: u32,
    /// Number of bits of a fingerprint.
    bits: u32,
    /// True if the result column `similarity` is filled. Otherwise it is NULL.
    shows_similarity: bool,
}

/// Bound of a search among signatures, and how its results are shown.
#[derive(Clone, Copy)]
pub struct SignatureBound {
    /// Minimum similarity of two signatures. If texts are compared afterwards, it is lower than the
    /// similarity that the caller passed.
    pub similarity: f64,
    /// Maximum number of positions in which two signatures differ.
    pub mismatches: usize,
    /// Number of positions of a signature.
    hashes: usize,
    /// True if the search may miss pairs. It then compares only rows whose signatures are equal in
    /// at least one band (a group of positions).
    pub may_miss: bool,
}

impl SearchBound {
    /// Creates the bound of a search in an index. Without a caller's `bound`, uses the bound that
    /// the index was built for. `function` is the extension's function being called. Raises an
    /// error if the indexed values have no distances. Also raises an error if `bound` is a radius
    /// and the index is on signatures, or if `bound` is a similarity and the distances of the
    /// indexed fingerprints do not estimate similarities.
    pub fn new(function: pg_sys::Oid, relations: &LockedIndex, bound: Option<Bound>) -> Self {
        let index = relations.index();
        require_distances(index);
        let bound = bound.unwrap_or_else(|| Bound::from_index(index));
        if let Some(bands) = metric_of(index).bands() {
            return Self::Signatures(SignatureBound::new(relations, bound, bands.hashes()));
        }
        let bits = with_words!(words_of(index), N => Index::<N>::open(index).block_layout.bits());
        let estimate = SimilarityEstimate::from_index(function, relations.table(), index);
        let name = || format!("index \"{}\"", index.shown());
        Self::Fingerprints(FingerprintBound::new(bound, bits, estimate, name))
    }

    /// Creates the bound of a search for candidates whose texts are compared afterwards. A
    /// similarity in `bound` is the minimum similarity of the texts. The search then uses a wider
    /// bound, so that it misses few pairs of similar texts. A radius in `bound` is used unchanged.
    pub fn from_candidates(function: pg_sys::Oid, relations: &LockedIndex, bound: Bound) -> Self {
        let index = relations.index();
        require_distances(index);
        let Bound::Similarity(similarity) = bound else {
            return Self::new(function, relations, Some(bound));
        };
        let widest = |estimator: Estimator| estimator.candidate_bound(similarity, USUAL_LOSS);
        match Self::new(function, relations, Some(bound)) {
            Self::Fingerprints(bound) => Self::Fingerprints(FingerprintBound {
                radius: widest(Estimator::fingerprint(bound.bits)),
                ..bound
            }),
            Self::Signatures(bound) => {
                let mismatches = widest(Estimator::signature(bound.hashes as u32)) as usize;
                Self::Signatures(SignatureBound {
                    similarity: signature::similarity(mismatches, bound.hashes),
                    mismatches,
                    may_miss: true,
                    ..bound
                })
            }
        }
    }

    /// Returns the result columns `distance` and `similarity` for two compared rows. `None` is
    /// NULL.
    pub fn columns(self, compared: Compared) -> [Option<pg_sys::Datum>; 2] {
        let [distance, estimate] = match self {
            Self::Fingerprints(bound) => bound.columns(compared.differing),
            Self::Signatures(bound) => [
                None,
                Some(float8(bound.shown_similarity(compared.differing))),
            ],
        };
        [distance, compared.similarity.map(float8).or(estimate)]
    }
}

impl FingerprintBound {
    /// Creates the bound of a search among fingerprints of `bits` bits. `estimate` says whether
    /// distances of these fingerprints estimate similarities. Raises an error if they do not, but
    /// `bound` is a similarity. `values` returns the name of the index or column for this error.
    pub fn new(
        bound: Bound,
        bits: u32,
        estimate: SimilarityEstimate,
        values: impl FnOnce() -> String,
    ) -> Self {
        match bound {
            Bound::Radius(radius) => FingerprintBound {
                radius,
                bits,
                shows_similarity: estimate == SimilarityEstimate::Defined,
            },
            Bound::Similarity(similarity) => {
                if let SimilarityEstimate::Undefined(why) = estimate {
                    refuse_similarity(&values(), why);
                }
                FingerprintBound {
                    // The radius is not negative, because the similarity is between 0 and 1.
                    radius: minhash_fingerprint::radius(similarity, bits).unsigned_abs(),
                    bits,
                    shows_similarity: true,
                }
            }
        }
    }

    /// Returns the result columns `distance` and `similarity` for a distance in bits. `None` is
    /// NULL.
    pub fn columns(self, distance: u32) -> [Option<pg_sys::Datum>; 2] {
        let similarity = || float8(minhash_fingerprint::similarity(distance, self.bits));
        [
            Some(pg_sys::Datum::from(distance as i32)),
            self.shows_similarity.then(similarity),
        ]
    }
}

impl SignatureBound {
    fn new(relations: &LockedIndex, bound: Bound, hashes: usize) -> Self {
        let Bound::Similarity(similarity) = bound else {
            refuse_radius(relations)
        };
        let mismatches = signature::Bound::Similarity.mismatches(hashes, similarity);
        SignatureBound {
            similarity,
            // Never negative, because equal signatures have similarity 1, which satisfies every
            // bound.
            mismatches: usize::try_from(mismatches).unwrap_or(0),
            hashes,
            may_miss: false,
        }
    }

    fn shown_similarity(self, mismatches: u32) -> f64 {
        signature::similarity(mismatches as usize, self.hashes)
    }
}

/// Converts a value to a Datum of type float8.
pub fn float8(value: f64) -> pg_sys::Datum {
    pg_sys::Datum::from(value.to_bits())
}

fn refuse_both() -> ! {
    UserError::invalid_parameter("cannot specify both a radius and a similarity")
        .detail("The function compares rows by only one of them.")
        .hint(
            "For fingerprints, pass a radius, such as radius => 6. For signatures, pass a \
             similarity, such as similarity => 0.8. For fingerprints that minhash64 or minhash128 \
             computed, pass either one.",
        )
        .raise()
}

fn refuse_radius(relations: &LockedIndex) -> ! {
    UserError::invalid_parameter(format!(
        "index \"{}\" contains signatures, which have no radius",
        relations.index().shown()
    ))
    .detail("A radius is the maximum number of bits in which two fingerprints differ.")
    .hint("Pass a similarity instead, such as similarity => 0.8.")
    .raise()
}

fn refuse_similarity(values: &str, why: &str) -> ! {
    UserError::invalid_parameter(format!("similarity is undefined for {values}"))
        .detail(why)
        .hint("Pass a radius in bits instead, such as radius => 6.")
        .raise()
}
