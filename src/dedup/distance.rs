//! Distances that a caller passes.
use pgrx::pg_sys;

use super::source::Distances;
use crate::pg::errors::UserError;
use crate::pg::fmgr::Call;
use crate::pg::rel::Rel;

/// A distance that a caller passes; an error if it is below zero.
pub fn distance_argument(distance: i32) -> u32 {
    u32::try_from(distance).unwrap_or_else(|_| {
        UserError::invalid_parameter("distance must not be negative")
            .detail(format!("It is {distance}."))
            .raise()
    })
}

/// The distance that a caller passes to a function over an index, whose results have distances of
/// the same type.
#[derive(Clone, Copy)]
pub struct DistanceArgument {
    pub distances: Distances,
    value: f64,
}

impl DistanceArgument {
    /// The second argument of a call. Raises an error if a number of bits is below zero.
    pub fn of(call: &Call, distances: Distances) -> Self {
        let value = match distances {
            Distances::Bits => f64::from(distance_argument(call.int4(1))),
            Distances::Any => call.float8(1),
        };
        DistanceArgument { distances, value }
    }

    /// The distance as a radius in an index on fingerprints; an error if it is not a number of
    /// bits.
    pub fn bits(self) -> u32 {
        if !(self.value >= 0.0 && self.value.fract() == 0.0) {
            UserError::invalid_parameter("the distance of fingerprints is a number of bits")
                .detail(format!("It is {}.", self.value))
                .raise();
        }
        // Whatever is too large holds everything.
        self.value as u32
    }

    /// The distance as a share of mismatches in an index on signatures; an error if it was passed
    /// in bits, or is below zero.
    pub fn fraction(self, relation: Rel) -> f64 {
        if self.distances == Distances::Bits {
            refuse_bits(relation);
        }
        if self.value < 0.0 || self.value.is_nan() {
            UserError::invalid_parameter("distance must not be negative")
                .detail(format!("It is {}.", self.value))
                .raise();
        }
        self.value
    }

    /// A distance in a result.
    pub fn datum(self, distance: f64) -> pg_sys::Datum {
        match self.distances {
            Distances::Bits => pg_sys::Datum::from(distance as i32),
            Distances::Any => pg_sys::Datum::from(distance.to_bits()),
        }
    }
}

fn refuse_bits(relation: Rel) -> ! {
    UserError::invalid_parameter(format!("index \"{}\" is on signatures", relation.shown()))
        .detail("Their distance is a number from 0 to 1, and no integer.")
        .hint("Write it with a point, such as 0.2, or as 0.0 or 1::float8.")
        .raise()
}
