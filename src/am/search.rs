//! The search of an index, by which a scan finds its rows step by step. The search in this file is
//! the same for all metrics. The parts that depend on the metric implement [`NearSearch`].
use neardup_blocktree::full_scan::{FullScan, Row};
use neardup_blocktree::key::{EntryKey, Tid};
use neardup_blocktree::tree::Tree;

use super::index::Index;
use super::scan_keys::{Presence, ScanKey, ScanKeys, ScanQuals};
use super::strategies;
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::storage::pages::IndexPages;
use neardup_pg::value::Value;

/// Properties of a scan that determine how the search reads the index.
#[derive(Clone, Copy)]
pub struct Purpose {
    /// True if the scan returns rows without reading the table.
    pub index_only: bool,
    /// True if the scan also returns rows of transactions that are still running.
    pub sees_uncommitted: bool,
    /// Check of each page that the search reads. It raises an error if the page may have lost rows
    /// that the snapshot of the scan sees.
    pub check: OldSnapshotCheck,
}

/// Search of an index whose keys may have any number of words. It holds no lock between two calls,
/// and usually no pin. Without a pin, VACUUM may remove a row that the search has found, and a new
/// row may get the address. The server does not return the new row, because the snapshot does not
/// see it. An index-only scan does not read the rows in the table, so its search keeps the leaf
/// pinned ([`IndexPages::keep_leaf_pinned`]).
pub trait Search {
    /// Starts or restarts the search with the conditions and ORDER BY operators of a scan. Returns
    /// whether the server must check the conditions again for each row.
    fn rescan(&mut self, keys: ScanKeys, order_bys: ScanKeys, purpose: Purpose) -> bool;

    /// Allows the search to return a row repeatedly, until the next [`Search::rescan`]. The search
    /// can then skip the work of recognizing repeated rows. Used for bitmap scans.
    fn allow_repeats(&mut self);

    /// Writes the addresses of the next rows into `tids`, which is empty. A step may find no rows.
    /// Returns false at the end of the search.
    fn step(&mut self, tids: &mut Vec<Tid>) -> bool;

    /// Returns the value of the index's searched column for a row that the last step has found.
    /// `row` is the position of the row in that step, counted from 0. `None` if the value is NULL
    /// or the index does not store it.
    fn value(&self, row: usize) -> Option<Value<'_>>;

    /// Releases the pinned leaf and frees large buffers at the end of a scan.
    fn end(&mut self);

    /// Opens the index again for another scan after [`Search::end`], in the same transaction.
    fn resume(&mut self);
}

/// Result of a step of a [`NearSearch`]: where the rows of the step were found, or that none are
/// left.
pub enum Step {
    /// The rows are on the leaf that was read last. The leaf is still pinned if the scan requires
    /// that ([`ReadPages::unlock_keep_pin`]).
    ///
    /// [`ReadPages::unlock_keep_pin`]: neardup_blocktree::store::ReadPages::unlock_keep_pin
    Leaf,
    /// The rows were found on several leaves, which are not pinned any more.
    Gathered,
    /// Only rows whose value is NULL are left.
    OnlyNulls,
    /// No rows are left.
    End,
}

/// Part of a search that depends on the metric: it finds rows by their distance from values, or by
/// array elements.
pub trait NearSearch<const N: usize> {
    /// Returns whether the server must check the conditions again for each row, because the index
    /// cannot decide which rows fulfil them.
    fn rechecks(&self) -> bool;

    /// Starts or restarts the search with conditions on the searched column, or with ORDER BY
    /// operators. Returns false if no row can match.
    fn begin(&mut self, index: &Index<N>, quals: &ScanQuals, order_bys: ScanKeys) -> bool;

    /// Frees large buffers at the end of a scan.
    fn end(&mut self);

    /// Sets the estimated number of rows in the index, before a restart.
    fn set_rows(&mut self, _rows: f64) {}

    /// Allows the search to return a row repeatedly until it restarts.
    fn allow_repeats(&mut self) {}

    /// Appends the next rows to `rows`, and returns where they were found. A step may find no rows.
    fn step(
        &mut self,
        index: &Index<N>,
        tree: &Tree<IndexPages, N>,
        rows: &mut Vec<Row<N>>,
    ) -> Step;
}

/// How a search finds its rows: by a pass over the index, or by the part that depends on the
/// metric.
enum Source<const N: usize> {
    /// There are no rows, or no more rows.
    Nothing,
    /// A pass over the rows of a scope or of the index: all rows, the rows with a value, or the
    /// rows without one.
    All(FullScan<N>),
    /// The part that depends on the metric.
    Near,
    /// First a pass over rows without a value, and then the part that depends on the metric.
    NullsThenNear(FullScan<N>),
}

/// Search of an index. `S` is the part that depends on the metric.
pub struct IndexSearch<'a, S, const N: usize> {
    index: Index<'a, N>,
    metric_search: S,
    source: Source<N>,
    /// Hash of the scope that is searched; `None` for all scopes, or without scope columns.
    scope: Option<u64>,
    /// Rows that the last step has found.
    rows: Vec<Row<N>>,
    /// True if the scan returns rows without reading the table.
    index_only: bool,
}

impl<'a, S: NearSearch<N>, const N: usize> IndexSearch<'a, S, N> {
    /// Makes a search that finds nothing until [`Search::rescan`] starts it. `metric_search` is the
    /// part that depends on the metric.
    pub fn new(index: Index<'a, N>, metric_search: S) -> Self {
        IndexSearch {
            index,
            metric_search,
            source: Source::Nothing,
            scope: None,
            rows: Vec::new(),
            index_only: false,
        }
    }

    /// Chooses the source of the rows for the conditions `quals` and the ORDER BY operators
    /// `order_bys`. If the metric finds the rows, starts its part of the search.
    fn source(&mut self, quals: ScanQuals, order_bys: ScanKeys) -> Source<N> {
        let layout = || self.index.block_layout.clone();
        let all = || FullScan::new(layout(), quals.scope);
        // The distance to NULL is NULL for all rows, so it does not order them.
        let is_for_all = quals.near.is_empty() && order_bys.iter().all(ScanKey::is_with_null);
        match quals.presence {
            // All distances of rows without a value are NULL, so they need no order.
            Presence::Null => Source::All(FullScan::nulls(layout(), quals.scope)),
            Presence::Any if is_for_all => Source::All(all()),
            Presence::NotNull if is_for_all => Source::All(all().without_nulls()),
            Presence::Any if quals.near.is_empty() && puts_nulls_first(order_bys) => {
                let (nulls, others) = (FullScan::nulls(layout(), quals.scope), quals.with_values());
                match self.metric_search.begin(&self.index, &others, order_bys) {
                    true => Source::NullsThenNear(nulls),
                    false => Source::All(nulls),
                }
            }
            _ if self.metric_search.begin(&self.index, &quals, order_bys) => Source::Near,
            _ => Source::Nothing,
        }
    }
}

/// Returns whether the first ORDER BY operator puts rows without a value before all others.
fn puts_nulls_first(order_bys: ScanKeys) -> bool {
    let first = order_bys.iter().next();
    first.is_some_and(|key| key.strategy() == strategies::DISTANCE_NULLS_FIRST)
}

impl<S: NearSearch<N>, const N: usize> Search for IndexSearch<'_, S, N> {
    fn rescan(&mut self, keys: ScanKeys, order_bys: ScanKeys, purpose: Purpose) -> bool {
        self.index_only = purpose.index_only;
        self.index.pages.keep_leaf_pinned(purpose.index_only);
        self.index.pages.set_check(purpose.check);
        let lone_row = self.index.take_lone_row();
        self.source = match ScanQuals::from_keys(keys) {
            None => Source::Nothing,
            Some(mut quals) => {
                quals.lone_row = lone_row.filter(|_| purpose.sees_uncommitted);
                self.scope = quals.scope;
                self.source(quals, order_bys)
            }
        };
        let layout = &self.index.layout;
        // Another scope may have the same hash, and the index stores neither the radii of balls nor
        // ranges. Without a condition every row matches.
        let rechecks = self.metric_search.rechecks()
            || layout.has_balls
            || layout.has_ranges
            || layout.scope_columns > 0;
        rechecks && !keys.is_empty()
    }

    fn allow_repeats(&mut self) {
        self.metric_search.allow_repeats();
    }

    fn step(&mut self, tids: &mut Vec<Tid>) -> bool {
        self.rows.clear();
        let index = &self.index;
        let tree = index.tree();
        let step = match &mut self.source {
            Source::Nothing => Step::End,
            Source::All(scan) => match index.or_corrupt(scan.step(&tree, &mut self.rows)) {
                true => Step::Leaf,
                false => Step::End,
            },
            Source::Near => self.metric_search.step(index, &tree, &mut self.rows),
            Source::NullsThenNear(scan) => {
                if !index.or_corrupt(scan.step(&tree, &mut self.rows)) {
                    self.source = Source::Near;
                }
                Step::Leaf
            }
        };
        // An index-only scan does not read the table. VACUUM may have removed a row since it was
        // found, so each row is looked up again in the index.
        if matches!(step, Step::Gathered) && self.index_only {
            self.rows.retain(|row| {
                let key = row.fingerprint.expect("index-only scans return values");
                let key = index.block_layout.permutations()[0].permute(&key);
                let (permutation, tid) = (0, row.tid);
                index.or_corrupt(tree.has_entry(&EntryKey {
                    permutation,
                    key,
                    tid,
                }))
            });
        }
        tids.extend(self.rows.iter().map(|row| row.tid));
        let root = tree.root();
        if matches!(step, Step::OnlyNulls) {
            let nulls = FullScan::nulls(index.block_layout.clone(), self.scope);
            self.source = Source::All(nulls);
        }
        self.index.remember_root(root);
        !matches!(step, Step::End)
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        let Index { layout, .. } = &self.index;
        let fingerprint = self.rows.get(row)?.fingerprint.as_ref()?;
        (layout.stores_values()).then(|| layout.fingerprint(self.index.relation(), fingerprint))
    }

    fn end(&mut self) {
        self.index.pages.keep_leaf_pinned(false);
        self.source = Source::Nothing;
        self.metric_search.end();
    }

    fn resume(&mut self) {
        self.index.reopen();
        self.metric_search.set_rows(self.index.rows());
    }
}
