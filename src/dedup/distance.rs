//! Distances that a caller passes.
use crate::am::index::name;
use crate::am::keys::is_on_signatures;
use crate::pg::errors::UserError;
use crate::pg::rel::Rel;

/// A distance that a caller passes; an error if it is below zero.
pub fn distance_argument(distance: i32) -> u32 {
    u32::try_from(distance).unwrap_or_else(|_| {
        UserError::invalid_parameter("distance must not be negative")
            .detail(format!("It is {distance}."))
            .raise()
    })
}

/// A distance of fingerprints that a caller passes as a floating-point number, as drivers may do;
/// an error if it is not a number of bits.
pub fn whole_distance(distance: f64) -> u32 {
    if !(distance >= 0.0 && distance.fract() == 0.0) {
        UserError::invalid_parameter("the distance of fingerprints is a number of bits")
            .detail(format!("It is {distance}."))
            .raise();
    }
    // Whatever is too large holds everything.
    distance as u32
}

/// Raises an error for an index on signatures, where a distance in bits was passed.
pub fn refuse_bits(relation: Rel) {
    if is_on_signatures(relation) {
        UserError::invalid_parameter(format!("index {} is on signatures", name(relation)))
            .detail("Their distance is a number from 0 to 1, and no integer.")
            .hint("Write it with a point, such as 0.2, or as 0.0 or 1::float8.")
            .raise();
    }
}
