//! Searching an index on fingerprints for what scan keys ask: the ways in which rows are found.
use neardup_blocktree::key::{EntryKey, Key, Tid};
use neardup_blocktree::knn::KnnScan;
use neardup_blocktree::leaf;
use neardup_blocktree::level_cursor::{FullScan, Row};
use neardup_blocktree::scan::{Match, Scan};
use pgrx::pg_sys;

use super::index::{Index, plan_of};
use super::scan_keys::{BallQual, Presence, ScanQuals, all_hold};
use super::search::Search;
use crate::pg::memory::work_mem;
use crate::storage::pages::IndexPages;

/// Source of rows.
enum Source<const N: usize> {
    /// None, or no more.
    Nothing,
    /// All of them.
    All(FullScan<N>),
    /// Those near a query, in no order.
    Near(Scan<N>),
    /// By distance from a query, up to a radius if there is one, and then those without any.
    Ordered {
        nearest: Box<KnnScan<N>>,
        then_nulls: bool,
    },
}

struct IndexSearch<'a, const N: usize> {
    index: Index<'a, N>,
    /// Rows in the index when the scan began, for choosing plans.
    rows: f64,
    /// A scope and, about, the rows that it had when it was looked at first.
    rows_of_scope: Option<(u64, f64)>,
    source: Source<N>,
    /// ScanQuals that the source does not see to.
    other_quals: Vec<BallQual<N>>,
    scope: Option<u64>,
    presence: Presence,
    matches: Vec<Match<N>>,
    /// The rows of the last step.
    rows_given: Vec<Row<N>>,
    /// True if rows will be used without a look at the table.
    index_only: bool,
}

impl<const N: usize> Search for IndexSearch<'_, N> {
    unsafe fn rescan(
        &mut self,
        keys: &[pg_sys::ScanKeyData],
        order_bys: &[pg_sys::ScanKeyData],
        index_only: bool,
    ) -> bool {
        self.index_only = index_only;
        let layout = self.index.layout;
        // SAFETY: the caller's promise.
        let conditions = unsafe { ScanQuals::of(self.index.relation(), &layout, keys) };
        let order: Vec<Key<N>> = (order_bys.iter())
            // The distance to NULL is NULL for all rows: it orders nothing.
            .filter(|key| key.sk_flags as u32 & pg_sys::SK_ISNULL == 0)
            .map(|key| {
                let mut center = [0; N];
                // SAFETY: the operator has a fingerprint on its right side.
                unsafe { layout.put_fingerprint(&mut center, key.sk_argument) };
                center
            })
            .collect();
        match conditions {
            None => {
                self.source = Source::Nothing;
                false
            }
            Some(ScanQuals {
                near,
                presence,
                scope,
                recheck,
            }) => {
                self.scope = scope;
                self.presence = presence;
                self.begin(near, &order);
                recheck
            }
        }
    }

    fn step(&mut self, tids: &mut Vec<Tid>) -> bool {
        let mut rows = core::mem::take(&mut self.rows_given);
        rows.clear();
        let more = self.find(&mut rows);
        let skipped = self.index.layout.scope_words();
        let other_quals = &self.other_quals;
        rows.extend(
            (self.matches.iter())
                .filter(|found| all_hold(other_quals, &found.fingerprint, skipped))
                .map(|found| found.row()),
        );
        tids.extend(rows.iter().map(|row| row.tid));
        self.rows_given = rows;
        more
    }

    fn value(&self, row: usize) -> Option<pg_sys::Datum> {
        let layout = &self.index.layout;
        let fingerprint = self.rows_given.get(row)?.fingerprint.as_ref()?;
        (!layout.balls).then(|| layout.fingerprint_datum(fingerprint))
    }

    fn pages(&self) -> &IndexPages<'_> {
        &self.index.pages
    }
}

impl<const N: usize> IndexSearch<'_, N> {
    /// Appends rows that fulfil all conditions to `rows`, and puts those in `matches` on which some
    /// are still to be tried.
    fn find(&mut self, rows: &mut Vec<Row<N>>) -> bool {
        self.matches.clear();
        let index = &self.index;
        let tree = index.tree();
        let among = self.rows_searched();
        let plan = |radius| plan_of(&index.meta, &index.design, radius, among);
        let (other_quals, skipped) = (&self.other_quals, index.layout.scope_words());
        // Rows that were found a while ago on many leaves are looked up again one by one where it
        // matters that they are still there: what VACUUM has taken away nobody can see.
        let still_there = |row: &Row<N>| match row.fingerprint {
            Some(fingerprint) if self.index_only => {
                let key = index.design.tables()[0].permute(&fingerprint);
                index.or_corrupt(tree.holds(&EntryKey {
                    table: 0,
                    key,
                    tid: row.tid,
                }))
            }
            _ => true,
        };
        let mut next = None;
        let more = match &mut self.source {
            Source::Nothing => false,
            Source::All(scan) => index.or_corrupt(scan.step(&tree, rows)),
            Source::Near(scan) => index.or_corrupt(scan.step(&tree, &mut self.matches)),
            Source::Ordered {
                nearest,
                then_nulls,
            } => {
                let admits = |found: &Match<N>| all_hold(other_quals, &found.fingerprint, skipped);
                match index.or_corrupt(nearest.next(&tree, plan, admits)) {
                    Some(found) if still_there(&found.row()) => rows.push(found.row()),
                    Some(_) => (),
                    None if *then_nulls => {
                        next = Some(Source::All(FullScan::nulls(
                            index.design.clone(),
                            self.scope,
                        )));
                    }
                    None => next = Some(Source::Nothing),
                }
                true
            }
        };
        let root = tree.root();
        self.index.remember_root(root);
        if let Some(next) = next {
            self.source = next;
        }
        more
    }

    /// Begins again with these conditions, in the order of the distance to the first of some keys,
    /// then to the next.
    fn begin(&mut self, mut near: Vec<BallQual<N>>, order: &[Key<N>]) {
        let narrowest = (0..near.len()).min_by_key(|&i| near[i].radius);
        let narrowest = narrowest.map(|i| near.swap_remove(i));
        self.other_quals = near;
        let design = || self.index.design.clone();
        match (narrowest, order) {
            // To them all distances are NULL, so that any order is right.
            (None, _) if self.presence == Presence::Null => {
                self.source = Source::All(FullScan::nulls(design(), self.scope));
            }
            (None, []) => {
                let all = FullScan::new(design(), self.scope);
                self.source = Source::All(match self.presence {
                    Presence::NotNull => all.without_nulls(),
                    _ => all,
                });
            }
            (Some(near), []) => self.search(near),
            (None, [query, then_by @ ..]) => self.search_in_order(*query, then_by, None),
            (Some(near), [query, then_by @ ..]) if near.center == *query => {
                self.search_in_order(*query, then_by, Some(near.radius));
            }
            (Some(near), [center, then_by @ ..]) => {
                // Rows near one thing in the order of their distance to another.
                let scan = self.scan_from(near.center, near.radius);
                let (then_by, memory) = (then_by.to_vec(), work_mem());
                let nearest = KnnScan::around(*center, scan, then_by, near.radius, memory);
                self.source = Source::Ordered {
                    nearest: Box::new(nearest),
                    then_nulls: false,
                };
            }
        }
    }

    /// Returns whether rows of all scopes are looked at.
    fn in_all_scopes(&self) -> bool {
        self.scope.is_none() && self.index.layout.scope_columns > 0
    }

    /// Rows, about, among which is searched.
    fn rows_searched(&self) -> f64 {
        match (self.scope, self.rows_of_scope) {
            (Some(scope), Some((known, rows))) if scope == known => rows,
            _ => self.rows,
        }
    }

    /// Learns how many rows the scope has: where they stand on few leaves, these are read and no
    /// others.
    fn measure_scope(&mut self) {
        let Some(scope) = self.scope else { return };
        if self.rows_of_scope.is_some_and(|(known, _)| known == scope) {
            return;
        }
        let (mut first, mut last) = ([0; N], [u64::MAX; N]);
        (first[0], last[0]) = (scope, scope);
        let (from, to) = (EntryKey::before_key(0, first), EntryKey::after_key(0, last));
        let leaves = self
            .index
            .or_corrupt(self.index.tree().leaves_between(&from, &to));
        let rows = (leaves * leaf::usual_count(N)).min(self.rows);
        self.rows_of_scope = Some((scope, rows));
    }

    /// The key that is searched for.
    fn query(&self, center: Key<N>) -> Key<N> {
        let mut query = center;
        if let Some(scope) = self.scope {
            query[0] = scope;
        }
        query
    }

    fn scan_from(&mut self, center: Key<N>, radius: u32) -> Scan<N> {
        self.measure_scope();
        let query = self.query(center);
        let Index { design, meta, .. } = &self.index;
        if !self.in_all_scopes() {
            let plan = plan_of(meta, design, radius, self.rows_searched());
            return Scan::new(design.clone(), plan, query);
        }
        // Scopes stand apart, so that a table can only be read whole, as for all distances.
        let plan = plan_of(meta, design, u32::MAX, 1.0);
        let mut scan = Scan::new(design.clone(), plan, query).in_all_scopes();
        scan.narrow(radius.min(design.bits()));
        scan
    }

    fn search(&mut self, near: BallQual<N>) {
        self.measure_scope();
        let (query, rows, all) = (
            self.query(near.center),
            self.rows_searched(),
            self.in_all_scopes(),
        );
        if let Source::Near(scan) = &mut self.source
            && !(all || scan.is_in_all_scopes())
        {
            // The usual case of a nested loop, which begins again for each outer row.
            let plan = if scan.plan().radius == near.radius && self.scope.is_none() {
                scan.plan().clone()
            } else {
                plan_of(&self.index.meta, &self.index.design, near.radius, rows)
            };
            scan.restart(plan, query);
            return;
        }
        self.source = Source::Near(self.scan_from(near.center, near.radius));
    }

    fn search_in_order(&mut self, query: Key<N>, then_by: &[Key<N>], up_to: Option<u32>) {
        let limit = up_to.unwrap_or(u32::MAX);
        let first = match self.in_all_scopes() {
            // Scopes stand apart, so that there is one ring.
            true => limit,
            false => self.index.design.distance().min(limit),
        };
        let scan = self.scan_from(query, first);
        let nearest = KnnScan::new(scan, then_by.to_vec(), limit, work_mem());
        self.source = Source::Ordered {
            nearest: Box::new(nearest),
            then_nulls: up_to.is_none() && self.presence == Presence::Any,
        };
    }
}

/// Starts a search in an index on fingerprints, which [`Search::rescan`] begins.
pub fn open<'a, const N: usize>(index: Index<'a, N>) -> Box<dyn Search + 'a> {
    let rows = index.rows();
    Box::new(IndexSearch {
        index,
        rows,
        rows_of_scope: None,
        source: Source::Nothing,
        other_quals: Vec::new(),
        scope: None,
        presence: Presence::Any,
        matches: Vec::new(),
        rows_given: Vec::new(),
        index_only: false,
    })
}
