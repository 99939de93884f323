//! `neardup_clusters`: clusters of near-duplicates, each with the row to keep.
mod clustering;
mod components;
mod confirmed_clusters;
mod fingerprint_clusters;
mod graph;
mod methods;
mod node_builder;
mod scope_parts;
mod signature_clusters;

use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::bound::SearchBound;
use super::compared::Compared;
use super::confirm::{ConfirmArgument, Confirmation, search_bound};
use super::source::find_bounded_index;
use super::window::{WindowArgument, WindowOfTable};
use methods::Method;
use neardup_pg::caller_sql::Condition;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::order_by::OrderBy;
use neardup_pg::storage::heap_fetch::note_read;
use neardup_pg::tid::item_pointer;

export! {
    guarded "neardup_clusters" => clusters;
}

/// `neardup_clusters(relation, radius, similarity, method, keep, column_name, filter, singletons,
/// exhaustive, confirm, row_time, within)`.
fn clusters(call: &mut Call) -> pg_sys::Datum {
    call.return_collected(|call, give| {
        for (n, name) in [(0, "relation"), (3, "method")] {
            if call.is_null(n) {
                UserError::null_not_allowed(format!("\"{name}\" must not be NULL")).raise();
            }
        }
        let flag = |n| !call.is_null(n) && call.bool(n);
        let (confirm, bound) = ConfirmArgument::read(call, 9, [1, 2]);
        let window = WindowArgument::read(call, 10, 11);
        let (function, column) = (call.function_oid(), call.name(5));
        let index = find_bounded_index(function, call.oid(0), column.as_deref(), bound);
        let relations = LockedIndex::open_for_reading(index);
        let (bound, confirmation) = search_bound(confirm, bound, function, &relations);
        let arguments = ClusterArguments {
            method: Method::parse(&call.text(3).unwrap_or_default()),
            keep: call.text(4).map(|list| OrderBy::parse("keep", &list)),
            filter: call.text(6).map(|text| Condition::parse("filter", &text)),
            singletons: flag(7),
            exhaustive: flag(8),
            conditions: PairConditions {
                confirmation,
                window: window.map(|window| window.of_table(relations.table())),
            },
        };
        // Checks the caller's expressions before the search, which may take a long time. An invalid
        // expression thus raises an error at once.
        if let Some(keep) = &arguments.keep {
            keep.check(relations.table());
        }
        if let Some(filter) = &arguments.filter {
            filter.check(relations.table());
        }
        note_read(relations.index());
        let give: Give = &mut |rows, size, compared| {
            let pointers = rows.map(item_pointer);
            let [distance, similarity] = bound.columns(compared);
            give(&[
                Some(pg_sys::Datum::from(&raw const pointers[0])),
                Some(pg_sys::Datum::from(&raw const pointers[1])),
                Some(pg_sys::Datum::from(size as i64)),
                distance,
                similarity,
            ]);
        };
        match bound {
            SearchBound::Signatures(bound) => {
                signature_clusters::find(&relations, &arguments, bound, give);
            }
            SearchBound::Fingerprints(bound) => {
                fingerprint_clusters::find(&relations, &arguments, bound.radius, give);
            }
        }
    })
}

/// Arguments of `neardup_clusters` without the index and the bound.
struct ClusterArguments {
    method: Method,
    /// Order of preference. The first row of each cluster in this order is kept. `None` keeps the
    /// row with the lowest address.
    keep: Option<OrderBy>,
    /// Condition on the rows that take part. `None` takes all rows.
    filter: Option<Condition>,
    /// True if rows that are near no other row are returned as well, each as a cluster of its own.
    singletons: bool,
    /// True if the work of the search is not limited. Otherwise a search that takes too much work
    /// raises an error.
    exhaustive: bool,
    conditions: PairConditions,
}

/// Further conditions on two rows that are near each other by the index.
struct PairConditions {
    /// Condition on the texts of the rows. `None` if texts are not compared.
    confirmation: Option<Confirmation>,
    /// Condition on the times of the rows. `None` if times are not compared.
    window: Option<WindowOfTable>,
}

impl PairConditions {
    fn is_empty(&self) -> bool {
        self.confirmation.is_none() && self.window.is_none()
    }
}

/// Callback that adds a row to the result: the addresses of a member and of its representative, the
/// number of rows of their cluster, and the comparison of the two rows.
type Give<'a> = &'a mut dyn FnMut([Tid; 2], u64, Compared);
