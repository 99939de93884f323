//! Relation between the distance of two fingerprints and the similarity of their texts.
//!
//! The relation depends on the function that made them. The catalog has that function if a
//! generated column or an index expression calls it.
use pgrx::pg_sys;

use crate::am::makers::{Maker, makers_of_column, makers_of_index};
use crate::planner::catalog::catalog;
use neardup_pg::catalog::base_type;
use neardup_pg::rel::Rel;

/// Relation between the distance of two fingerprints and a similarity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// The fingerprints come from `minhash64` or `minhash128`.
    Defined,
    /// The distance does not determine a similarity, for this reason.
    Undefined(&'static str),
    /// The application made the fingerprints, so only the caller knows the relation.
    Unknown,
}

impl Estimate {
    /// Returns the estimate for the values in an index on fingerprints. `function` is one of the
    /// extension's functions.
    pub fn from_index(function: pg_sys::Oid, table: Rel, index: Rel) -> Self {
        let makers = makers_of_index(function, table, index);
        let input = index.key_class(index.index_form().key_columns - 1).input;
        let catalog = catalog(function);
        let ball = catalog.as_ref().and_then(|catalog| catalog.by_ball(input));
        Self::new(&makers, ball.map_or(input, |searched| searched.value))
    }

    /// Returns the estimate for the fingerprints in a table column.
    pub fn from_column(function: pg_sys::Oid, table: Rel, column: i16) -> Self {
        let value_type = base_type(table.attribute(column).atttypid);
        Self::new(&makers_of_column(function, table, column), value_type)
    }

    /// Returns the estimate for values of a type that these functions made.
    fn new(makers: &[Maker], value_type: pg_sys::Oid) -> Self {
        match makers {
            [] if value_type == pg_sys::INT8OID => Estimate::Undefined(
                "The distance of values of type bigint does not estimate a similarity.",
            ),
            [] => Estimate::Unknown,
            makers if makers.iter().all(|maker| maker.estimates_similarity()) => Estimate::Defined,
            _ => Estimate::Undefined(
                "Its fingerprints are made by simhash, whose distance does not estimate a \
                 similarity.",
            ),
        }
    }
}
