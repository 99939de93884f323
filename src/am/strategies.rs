//! Strategy numbers of the operator classes.

/// The highest strategy number.
pub const STRATEGIES: u16 = 7;
/// `fp <@ ball`.
pub const WITHIN: u16 = 1;
/// `a ~= b`: near-duplicates by convention or, for balls, each centre within the other ball.
pub const NEAR: u16 = 2;
/// `a = b`.
pub const EQUAL: u16 = 3;
/// `ORDER BY a <#> b`: the distance as an integer.
pub const DISTANCE: u16 = 4;
/// `a && b`: sets that have an element in common.
pub const OVERLAP: u16 = 5;
/// `ORDER BY a <#|> b`: the distance, with rows without a value first.
pub const DISTANCE_NULLS_FIRST: u16 = 6;
/// `a @> b`: a set that has all elements of another one.
pub const CONTAINS: u16 = 7;
