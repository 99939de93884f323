//! Strategy numbers of the operators in operator classes of the access method `neardup`.

/// Highest strategy number.
pub const STRATEGIES: u16 = 8;
/// `fp <@ ball`: the value is within a radius of another one.
pub const WITHIN: u16 = 1;
/// `a ~= b`: the values are near-duplicates by convention. For balls: each centre is within the
/// other ball.
pub const NEAR: u16 = 2;
/// `a = b`: equality, also of scope columns.
pub const EQUAL: u16 = 3;
/// `ORDER BY a <#> b`: the distance as an integer, with rows without a value last.
pub const DISTANCE: u16 = 4;
/// `a && b`: the arrays have an element in common.
pub const OVERLAP: u16 = 5;
/// `ORDER BY a <#|> b`: the distance as an integer, with rows without a value first.
pub const DISTANCE_NULLS_FIRST: u16 = 6;
/// `a @> b`: the array `a` has all elements of `b`.
pub const CONTAINS: u16 = 7;
/// `a && b` for ranges: the ranges have a value in common.
pub const RANGE_OVERLAP: u16 = 8;
