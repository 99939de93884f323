//! Reads the arguments of `_neardup_within` and `_neardup_at_distance` from an expression tree.
use super::catalog::{Catalog, SearchedType};
use super::planned_ball::bound_kind;
use neardup_pg::expr::{Expr, List};

/// Splits the arguments of `_neardup_within` or `_neardup_at_distance`. Returns the type of the
/// values, the two values, and the arguments of the bound. Returns `None` if the type is not
/// searched by distance. For signatures, also returns `None` if the kind of the bound is not a
/// constant.
pub fn read_arguments<'c, 'a>(
    catalog: &'c Catalog,
    arguments: List<'a>,
) -> Option<(&'c SearchedType, [Expr<'a>; 2], Vec<Expr<'a>>)> {
    let mut arguments = arguments.iter();
    let values = [arguments.next()?, arguments.next()?];
    let bound: Vec<Expr> = arguments.collect();
    let searched = catalog.by_value(values[0].base_type())?;
    bound.first()?;
    if searched.metric.is_jaccard() {
        bound_kind(*bound.get(1)?)?;
    }
    Some((searched, values, bound))
}
