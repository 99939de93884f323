//! Decides whether the distance of two fingerprints estimates the similarity of their texts.
//!
//! The answer depends on the function that made the fingerprints. The catalog has that function if
//! a generated column or an index expression calls it.
use pgrx::pg_sys;

use crate::am::makers::{Maker, makers_of_column, makers_of_index};
use crate::planner::catalog::catalog;
use neardup_pg::catalog::base_type;
use neardup_pg::rel::Rel;

/// Answer to the question whether the distance of two fingerprints estimates the similarity of
/// their texts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SimilarityEstimate {
    /// Yes: `minhash64` or `minhash128` made the fingerprints.
    Defined,
    /// No. The text is a sentence with the reason.
    Undefined(&'static str),
    /// Unknown: the application made the fingerprints.
    Unknown,
}

impl SimilarityEstimate {
    /// Returns whether distances of the fingerprints in an index estimate similarities. `function`
    /// is one of the extension's functions.
    pub fn from_index(function: pg_sys::Oid, table: Rel, index: Rel) -> Self {
        let makers = makers_of_index(function, table, index);
        let input = index.key_class(index.searched_column()).input;
        let catalog = catalog(function);
        let ball = catalog.as_ref().and_then(|catalog| catalog.by_ball(input));
        Self::new(&makers, ball.map_or(input, |searched| searched.value))
    }

    /// Returns whether distances of the fingerprints in a table column estimate similarities.
    /// `function` is one of the extension's functions.
    pub fn from_column(function: pg_sys::Oid, table: Rel, column: i16) -> Self {
        let value_type = base_type(table.attribute(column).atttypid);
        Self::new(&makers_of_column(function, table, column), value_type)
    }

    /// Returns whether distances of values of type `value_type` estimate similarities. `makers` has
    /// the functions that made the values, and is empty if the catalog has no such function.
    fn new(makers: &[Maker], value_type: pg_sys::Oid) -> Self {
        match makers {
            [] if value_type == pg_sys::INT8OID => SimilarityEstimate::Undefined(
                "The distance between values of type bigint does not estimate a similarity.",
            ),
            [] => SimilarityEstimate::Unknown,
            makers if makers.iter().all(|maker| maker.estimates_similarity()) => {
                SimilarityEstimate::Defined
            }
            _ => SimilarityEstimate::Undefined(
                "The fingerprints are computed by simhash, whose distances do not estimate a \
                 similarity.",
            ),
        }
    }
}
