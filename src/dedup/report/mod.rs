//! `neardup_report`: an HTML page about the near-duplicates in a table.
//!
//! The report calls `neardup_clusters` and `neardup_distance_histogram` in queries, and reads names
//! and texts from the table. The queries run with the rights of the caller and see the same
//! snapshot.
mod countable;
mod largest_clusters;
mod levels;
mod queries;
mod report_arguments;
mod subject;

use neardup_report::data::{Cluster, Histogram, Limits, Member, Radius, Report};
use neardup_report::{escape, page};
use pgrx::pg_sys;

use super::bound::Bound;
use super::source::find_bounded_index;
use crate::am::keys::require_distances;
use largest_clusters::{FoundCluster, Largest, Totals};
use levels::{levels, shown_radius};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::memory::ServerHost;
use neardup_pg::spi;
use neardup_pg::text;
use queries::Queries;
use report_arguments::{Arguments, shown};
use subject::Subject;

export! {
    guarded "neardup_report" => report;
}

/// `neardup_report(relation, radius, similarity, body, key, keep, title, column_name, filter,
/// radii, similarities, clusters, members, characters, sample_rows, exhaustive)`.
fn report(call: &mut Call) -> pg_sys::Datum {
    let report = {
        let arguments = Arguments::read(call);
        let (function, column) = (call.function_oid(), arguments.column.as_deref());
        let relation = call.oid(report_arguments::RELATION);
        let index = find_bounded_index(function, relation, column, arguments.bound);
        let relations = LockedIndex::open_checked(index);
        require_distances(relations.index());
        arguments.check(relations.table());
        let subject = Subject::new(function, &relations, &arguments);
        gather(function, index, &subject, &arguments)
    };
    let html = page(&report, &mut ServerHost);
    match text::is_utf8() {
        true => text::datum(&html),
        // ASCII, so that the page is the same in every encoding.
        false => text::datum(&escape::ascii(&html)),
    }
}

/// Runs the queries of a report and collects the contents of its page.
fn gather(
    function: pg_sys::Oid,
    index: pg_sys::Oid,
    subject: &Subject,
    arguments: &Arguments,
) -> Report {
    let (levels, chosen) = levels(subject.others.clone(), subject.bound);
    spi::connected(c"SELECT report", |connection| {
        let queries = Queries::new(connection, function, index, subject, arguments);
        let (rows, bytes) = queries.rows();
        let (totals, found) = find_clusters(&queries, &levels, chosen, arguments.limits);
        let radius = |(&level, totals): (&Bound, Totals)| Radius {
            value: shown_radius(level),
            clusters: totals.clusters,
            copies: totals.copies,
            bytes: bytes.map(|_| totals.bytes),
            statement: queries.statement(level),
        };
        let texts = &arguments.shown;
        let table = shown(&subject.table);
        Report {
            title: (texts.title.clone()).unwrap_or_else(|| format!("Near-duplicates in {table}")),
            table,
            index: shown(&subject.index),
            made_at: queries.time(),
            measure: subject.measure,
            rows,
            bytes,
            body: subject.body.as_ref().map(|body| body.1.clone()),
            key: subject.key.1.clone(),
            filter: texts.filter.clone(),
            keep: texts.keep.clone(),
            radii: levels.iter().zip(totals).map(radius).collect(),
            chosen,
            histogram: Histogram {
                bars: queries.histogram(),
                sample_rows: arguments.sample.unsigned_abs().into(),
            },
            clusters: with_texts(&queries, found),
            limits: arguments.limits,
        }
    })
}

/// Finds the clusters for each bound in `levels`. Returns the totals for each bound and, for the
/// bound at position `chosen`, the largest clusters. `limits` has the maximum number of clusters to
/// return, and the maximum number of rows in each of them.
fn find_clusters(
    queries: &Queries,
    levels: &[Bound],
    chosen: usize,
    limits: Limits,
) -> (Vec<Totals>, Vec<FoundCluster>) {
    let mut largest = Largest::new(limits);
    let mut totals: Vec<Totals> = levels.iter().map(|_| Totals::default()).collect();
    queries.clusters(levels[chosen], |row| {
        totals[chosen].add(row);
        largest.add(row);
    });
    let mut found = largest.into_clusters();
    for row in found.iter_mut().flat_map(|cluster| &mut cluster.rows[1..]) {
        row.removed_at.push(chosen);
    }
    for number in (0..levels.len()).filter(|&number| number != chosen) {
        let totals = &mut totals[number];
        mark(queries, levels[number], number, totals, &mut found);
    }
    (totals, found)
}

/// Finds the clusters for the bound `level`, and adds them to `totals`. `number` is the position of
/// `level` in the list of all bounds. `found` has the clusters that the page lists, with their
/// listed rows. A listed row would be removed at `level` if it is in a cluster there and is not the
/// kept row. This function then adds `number` to the row's `removed_at`.
fn mark(
    queries: &Queries,
    level: Bound,
    number: usize,
    totals: &mut Totals,
    found: &mut [FoundCluster],
) {
    let mut rows: std::collections::HashMap<_, _> = (found.iter_mut())
        .flat_map(|cluster| &mut cluster.rows)
        .map(|row| (row.row, row))
        .collect();
    queries.clusters(level, |row| {
        totals.add(row);
        if row.goes()
            && let Some(found) = rows.get_mut(&row.member)
        {
            found.removed_at.push(number);
        }
    });
}

/// Converts clusters for the page: adds the keys and texts of their rows.
fn with_texts(queries: &Queries, found: Vec<FoundCluster>) -> Vec<Cluster> {
    let rows: Vec<_> = (found.iter())
        .flat_map(|cluster| &cluster.rows)
        .map(|row| row.row)
        .collect();
    let mut named = queries.texts(&rows).into_iter();
    found
        .into_iter()
        .map(|cluster| Cluster {
            size: cluster.size,
            widest: cluster.widest,
            members: (cluster.rows.into_iter().zip(named.by_ref()))
                .map(|(row, (key, text))| Member {
                    key,
                    distance: row.distance,
                    removed_at: row.removed_at,
                    text,
                })
                .collect(),
        })
        .collect()
}
