//! Arguments of `_neardup_within` and `_neardup_at_distance`, read from an expression tree.
use super::catalog::{Catalog, Metric};
use super::planned_ball::bound_kind;
use crate::pg::expr::{Expr, List};

/// The metric, the two values and the bound of a call of one of the functions. `None` if the kind
/// of bound of signatures is not known.
pub fn read_arguments<'c, 'a>(
    catalog: &'c Catalog,
    arguments: List<'a>,
) -> Option<(&'c Metric, [Expr<'a>; 2], Vec<Expr<'a>>)> {
    let mut arguments = arguments.iter();
    let values = [arguments.next()?, arguments.next()?];
    let bound: Vec<Expr> = arguments.collect();
    let metric = catalog.by_value(values[0].base_type())?;
    bound.first()?;
    if metric.minhash().is_some() {
        bound_kind(*bound.get(1)?)?;
    }
    Some((metric, values, bound))
}
