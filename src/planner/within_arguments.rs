//! Arguments of `_neardup_within` and `_neardup_at_distance`, read from an expression tree.
use pgrx::pg_sys::{self, Node};

use super::catalog::{Catalog, Metric};
use super::nodes;
use super::planned_ball::bound_kind;

/// The metric, the two values and the bound of a call of one of the functions. `None` if the kind
/// of bound of signatures is not known.
///
/// # Safety
/// `arguments` are those of such a call.
pub unsafe fn read_arguments(
    catalog: &Catalog,
    arguments: *mut pg_sys::List,
) -> Option<(&Metric, [*mut Node; 2], Vec<*mut Node>)> {
    // SAFETY: as the caller promises.
    unsafe {
        let mut arguments = nodes::members(arguments);
        let values = [arguments.next()?, arguments.next()?];
        let bound: Vec<*mut Node> = arguments.collect();
        let metric = catalog.by_value(nodes::types(values[0]).1)?;
        bound.first()?;
        if metric.minhash().is_some() {
            bound_kind(*bound.get(1)?)?;
        }
        Some((metric, values, bound))
    }
}
