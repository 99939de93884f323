//! Searches of a neardup index that also see uncommitted rows of other transactions. The trigger
//! function of the extension uses them.
use core::cell::Cell;
use core::ops::ControlFlow;

use pgrx::pg_sys::{self, Oid};

use super::metric::ValueMetric;
use super::scan;
use super::strategies::{DISTANCE, EQUAL, WITHIN};
use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::key::Tid;
use neardup_pg::catalog::family_operators;
use neardup_pg::dirty_scan;
use neardup_pg::rel::{KeyClass, OpenRelation, Rel};
use neardup_pg::scan_key::OwnScanKeys;
use neardup_pg::value::Value;

pub use neardup_pg::dirty_scan::DirtyRow;

/// Searches an index of `table` for rows within `radius` (in bits or mismatches) of `center`.
/// `metric` is the metric of the index, and `scope` has a value for each scope column. Calls `each`
/// for each row version that is live for a dirty snapshot. The nearest version is first if
/// [`IndexMetric::can_order`] returns true. If `each` returns `Break`, the search ends. Calls
/// `vanished` with the address of each row version that is dead for the dirty snapshot, but that an
/// older snapshot may still see.
pub fn near_rows(
    table: Rel,
    index: Oid,
    (metric, radius): (&IndexMetric, u32),
    scope: &[Value],
    center: Value,
    vanished: impl FnMut(Tid),
    each: impl FnMut(DirtyRow) -> ControlFlow<()>,
) {
    let index = OpenRelation::index(index, pg_sys::RowExclusiveLock);
    let index = index.rel();
    let last = index.column_count();
    assert_eq!(scope.len(), last as usize - 1);
    assert_eq!(center.type_oid(), index.attribute(last).atttypid);
    let ball = metric.ball(center, radius, ball_type(index));
    let mut keys = OwnScanKeys::new(index);
    for (column, &value) in (1..).zip(scope) {
        assert_eq!(value.type_oid(), index.attribute(column).atttypid);
        keys.push(column, EQUAL, value);
    }
    keys.push(last, WITHIN, ball.get());
    // Usually the index has no row within the radius. `finds_any` finds that out faster than a scan
    // by the server.
    if !scan::finds_any(&keys) {
        return;
    }
    let mut orders = OwnScanKeys::new(index);
    if metric.can_order() {
        orders.push(last, DISTANCE, center);
    }
    dirty_scan::scan(table, &mut keys, &mut orders, vanished, each);
}

/// Returns the type OID of the balls around the values of an index. It is the type of the right
/// operand of `<@`.
pub fn ball_type(index: Rel) -> Oid {
    thread_local! {
        /// Result of the last lookup: operator family, type of the family's values, and type of
        /// balls around these values.
        static KNOWN: Cell<[Oid; 3]> = const { Cell::new([pg_sys::InvalidOid; 3]) };
    }
    let KeyClass { family, input, .. } = index.key_class(index.column_count() as usize - 1);
    if let [known_family, known_input, ball] = KNOWN.get()
        && [known_family, known_input] == [family, input]
    {
        return ball;
    }
    let operators = family_operators(family);
    let within = operators
        .iter()
        .find(|operator| operator.amoplefttype == input && operator.amopstrategy as u16 == WITHIN);
    let ball = within.expect("checked by `amvalidate`").amoprighttype;
    KNOWN.set([family, input, ball]);
    ball
}
