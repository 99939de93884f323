//! Distances, and similarities, that a caller passes.
use neardup_sketch::b_bit_minhash;
use pgrx::pg_sys;

use super::source::Distances;
use crate::pg::errors::UserError;
use crate::pg::fmgr::Call;
use crate::pg::rel::Rel;
use crate::types::signature::Bound;

/// A distance that a caller passes; an error if it is below zero.
fn distance_argument(distance: i32) -> u32 {
    u32::try_from(distance).unwrap_or_else(|_| {
        UserError::invalid_parameter("distance must not be negative")
            .detail(format!("It is {distance}."))
            .raise()
    })
}

/// The limit of near-duplicates that a caller passes to a function over an index.
#[derive(Clone, Copy)]
enum Limit {
    /// The greatest distance.
    Distance(f64),
    /// The least similarity.
    Similarity(f64),
}

/// The distance or similarity that a caller passes to a function over an index, whose results have
/// distances of the type of its parameter `distance`.
#[derive(Clone, Copy)]
pub struct DistanceArgument {
    pub distances: Distances,
    limit: Limit,
}

impl DistanceArgument {
    /// The second argument of a call, or the one at position `similarity`, which only functions
    /// with distances of any kind have. Raises an error if both are given or none, or if a value is
    /// out of range.
    pub fn of(call: &Call, distances: Distances, similarity: usize) -> Self {
        let distance = (!call.is_null(1)).then(|| Self::distance(call, distances));
        let similarity = (distances == Distances::Any && !call.is_null(similarity))
            .then(|| call.float8(similarity));
        match (distance, similarity) {
            (Some(distance), None) => distance,
            (None, Some(similarity)) => DistanceArgument {
                distances,
                limit: Limit::Similarity(in_range(similarity)),
            },
            (None, None) => one_of_two("neither is given"),
            (Some(_), Some(_)) => one_of_two("both are given"),
        }
    }

    /// The second argument of a call that takes no similarity, and no NULL.
    pub fn distance(call: &Call, distances: Distances) -> Self {
        let distance = match distances {
            Distances::Bits => f64::from(distance_argument(call.int4(1))),
            Distances::Any => call.float8(1),
        };
        let limit = Limit::Distance(distance);
        DistanceArgument { distances, limit }
    }

    /// The limit as a radius in an index on fingerprints of `bits` bits; an error if it is a
    /// distance that is not a number of bits.
    pub fn radius(self, bits: u32) -> u32 {
        let distance = match self.limit {
            Limit::Distance(distance) => distance,
            // From 0 to 1: no similarity that nothing has.
            Limit::Similarity(similarity) => {
                return b_bit_minhash::radius(similarity, bits).unsigned_abs();
            }
        };
        if !(distance >= 0.0 && distance.fract() == 0.0) {
            UserError::invalid_parameter("the distance of fingerprints is a number of bits")
                .detail(format!("It is {distance}."))
                .hint("A similarity of minhash64 has a parameter of its own: similarity => 0.8.")
                .raise();
        }
        // Whatever is too large holds everything.
        distance as u32
    }

    /// The most mismatches within the limit in an index on signatures of this number of hashes; an
    /// error if it is a distance that was passed in bits, or is out of range.
    pub fn mismatches(self, relation: Rel, hashes: usize) -> usize {
        let most = match self.limit {
            Limit::Similarity(similarity) => Bound::Similarity.mismatches(hashes, similarity),
            Limit::Distance(distance) => {
                if self.distances == Distances::Bits {
                    refuse_bits(relation);
                }
                if !(0.0..=1.0).contains(&distance) {
                    refuse_fraction(relation, distance);
                }
                Bound::Distance.mismatches(hashes, distance)
            }
        };
        usize::try_from(most).unwrap_or(0)
    }

    /// The distance of signatures, if one was passed instead of a similarity.
    pub fn given_distance(self) -> Option<f64> {
        match self.limit {
            Limit::Distance(distance) => Some(distance),
            Limit::Similarity(_) => None,
        }
    }

    /// The least similarity of signatures, rounded down to three digits if it follows from a
    /// distance.
    pub fn least_similarity(self) -> f64 {
        match self.limit {
            Limit::Similarity(similarity) => similarity,
            // The error of the subtraction does not count.
            Limit::Distance(distance) => ((1.0 - distance) * 1000.0 + 1e-9).floor() / 1000.0,
        }
    }

    /// A distance in a result.
    pub fn datum(self, distance: f64) -> pg_sys::Datum {
        match self.distances {
            Distances::Bits => pg_sys::Datum::from(distance as i32),
            Distances::Any => pg_sys::Datum::from(distance.to_bits()),
        }
    }
}

fn one_of_two(which: &str) -> ! {
    UserError::invalid_parameter("give either a distance or a similarity")
        .detail(format!("Of distance and similarity {which}."))
        .hint(
            "similarity => 0.8 is, of signatures, distance => 0.2, and of fingerprints made by \
             minhash64 distance => 6.",
        )
        .raise()
}

fn in_range(similarity: f64) -> f64 {
    if (0.0..=1.0).contains(&similarity) {
        return similarity;
    }
    let error = UserError::invalid_parameter("similarity must be between 0 and 1")
        .detail(format!("It is {similarity}."));
    match similarity {
        1.0..=100.0 => error.hint(format!("Of 100: similarity => {}.", similarity / 100.0)),
        _ => error,
    }
    .raise()
}

fn refuse_fraction(relation: Rel, distance: f64) -> ! {
    UserError::invalid_parameter("the distance of signatures must be between 0 and 1")
        .detail(format!(
            "It is {distance}, and index \"{}\" is on signatures.",
            relation.shown()
        ))
        .hint("A similarity of 0.8 or more is a distance of 0.2 or less.")
        .raise()
}

fn refuse_bits(relation: Rel) -> ! {
    UserError::invalid_parameter(format!("index \"{}\" is on signatures", relation.shown()))
        .detail("Their distance is a number from 0 to 1, and no integer.")
        .hint(
            "Write it with a point, such as 0.2, or as 0.0 or 1::float8. Where the function has \
             the parameter, similarity => 0.8 says the same.",
        )
        .raise()
}
