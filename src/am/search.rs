//! The search that a scan drives, for all kinds of values.
use neardup_blocktree::key::{EntryKey, Tid};
use neardup_blocktree::level_cursor::{FullScan, Row};
use neardup_blocktree::tree::Tree;

use super::index::Index;
use super::scan_keys::{Presence, ScanKey, ScanKeys, ScanQuals};
use super::strategies;
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::storage::pages::IndexPages;
use neardup_pg::value::Value;

/// Purpose for which rows are searched.
#[derive(Clone, Copy)]
pub struct Purpose {
    /// True if rows will be used without the table being read.
    pub index_only: bool,
    /// True if those of transactions that have not ended are wanted as well.
    pub sees_uncommitted: bool,
    /// Check of the pages that are read, for the snapshot of the scan.
    pub check: OldSnapshotCheck,
}

/// A search between its calls, for whatever width of keys. It holds no lock. MVCC keeps rows that
/// it may return from being replaced by others that its snapshot could see; so it holds no pin
/// either, unless the rows themselves will not be looked at ([`IndexPages::keep_leaf_pinned`]).
pub trait Search {
    /// Begins again, with keys and orders of the index, and returns whether rows are to be
    /// rechecked.
    fn rescan(&mut self, keys: ScanKeys, order_bys: ScanKeys, purpose: Purpose) -> bool;

    /// Allows rows to come repeatedly until the next [`Search::rescan`], where that is less work.
    fn allow_repeats(&mut self);

    /// Puts what comes next, perhaps nothing, into an empty list. False: there is no more.
    fn step(&mut self, tids: &mut Vec<Tid>) -> bool;

    /// The value in the index's last column for a row of the last step; `None` if it is NULL, or
    /// cannot be told.
    fn value(&self, row: usize) -> Option<Value<'_>>;

    /// Lets go of the leaf that is still pinned, and of what takes memory.
    fn end(&mut self);

    /// Opens the index again after [`Search::end`], in the same transaction.
    fn resume(&mut self);
}

/// Result of a step: where its rows come from (one leaf or several), or that none are left.
pub enum Step {
    /// From one leaf, the last that was read: it is still pinned if that was asked for
    /// ([`ReadPages::unlock_keep_pin`]).
    ///
    /// [`ReadPages::unlock_keep_pin`]: neardup_blocktree::store::ReadPages::unlock_keep_pin
    Leaf,
    /// From leaves that were read some time ago.
    Gathered,
    /// There are none left but those without a value.
    OnlyNulls,
    /// There are none left.
    End,
}

/// Way in which rows near values are found, by the metric of an index.
pub trait NearSearch<const N: usize> {
    /// Returns whether the index has not what it takes to tell which rows fulfil the conditions
    /// that the search was begun with.
    fn rechecks(&self) -> bool;

    /// Begins again, with conditions that name a value, or orders. False: nothing fulfils them.
    fn begin(&mut self, index: &Index<N>, quals: &ScanQuals, order_bys: ScanKeys) -> bool;

    /// Lets go of what takes memory.
    fn end(&mut self);

    /// Learns how many rows the index has, before it begins another time.
    fn set_rows(&mut self, _rows: f64) {}

    /// Allows rows to come repeatedly until the search begins again.
    fn allow_repeats(&mut self) {}

    /// Appends rows that come next, perhaps none.
    fn step(
        &mut self,
        index: &Index<N>,
        tree: &Tree<IndexPages, N>,
        rows: &mut Vec<Row<N>>,
    ) -> Step;
}

/// Source of rows.
enum Source<const N: usize> {
    /// None, or no more.
    Nothing,
    /// All rows, or those with or without a value.
    All(FullScan<N>),
    /// Those near values, or in an order.
    Near,
    /// Those without a value, and then those in an order.
    NullsThenNear(FullScan<N>),
}

/// A search of an index, whose part that depends on the metric is `S`.
pub struct IndexSearch<'a, S, const N: usize> {
    index: Index<'a, N>,
    near: S,
    source: Source<N>,
    scope: Option<u64>,
    /// The rows of the last step.
    rows: Vec<Row<N>>,
    /// True if rows will be used without the table being read.
    index_only: bool,
}

impl<'a, S: NearSearch<N>, const N: usize> IndexSearch<'a, S, N> {
    /// A search that finds nothing until [`Search::rescan`] begins it. `near` does the part that
    /// depends on the metric.
    pub fn new(index: Index<'a, N>, near: S) -> Self {
        IndexSearch {
            index,
            near,
            source: Source::Nothing,
            scope: None,
            rows: Vec::new(),
            index_only: false,
        }
    }

    fn source(&mut self, quals: ScanQuals, order_bys: ScanKeys) -> Source<N> {
        let layout = || self.index.block_layout.clone();
        let all = || FullScan::new(layout(), quals.scope);
        // The distance to NULL is NULL for all rows: it orders nothing.
        let is_for_all = quals.near.is_empty() && order_bys.iter().all(ScanKey::is_with_null);
        match quals.presence {
            // To them all distances are NULL, so that any order is right.
            Presence::Null => Source::All(FullScan::nulls(layout(), quals.scope)),
            Presence::Any if is_for_all => Source::All(all()),
            Presence::NotNull if is_for_all => Source::All(all().without_nulls()),
            Presence::Any if quals.near.is_empty() && puts_nulls_first(order_bys) => {
                let (nulls, others) = (FullScan::nulls(layout(), quals.scope), quals.with_values());
                match self.near.begin(&self.index, &others, order_bys) {
                    true => Source::NullsThenNear(nulls),
                    false => Source::All(nulls),
                }
            }
            _ if self.near.begin(&self.index, &quals, order_bys) => Source::Near,
            _ => Source::Nothing,
        }
    }
}

/// Returns whether an order puts rows without a value before all others.
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
        self.source = match ScanQuals::of(keys) {
            None => Source::Nothing,
            Some(mut quals) => {
                quals.lone_row = lone_row.filter(|_| purpose.sees_uncommitted);
                self.scope = quals.scope;
                self.source(quals, order_bys)
            }
        };
        let layout = &self.index.layout;
        // Another scope may have the same hash, and a ball's radius is not in the index. Without a
        // condition each row fulfils them all.
        let rechecks = self.near.rechecks() || layout.has_balls || layout.scope_columns > 0;
        rechecks && !keys.is_empty()
    }

    fn allow_repeats(&mut self) {
        self.near.allow_repeats();
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
            Source::Near => self.near.step(index, &tree, &mut self.rows),
            Source::NullsThenNear(scan) => {
                if !index.or_corrupt(scan.step(&tree, &mut self.rows)) {
                    self.source = Source::Near;
                }
                Step::Leaf
            }
        };
        // Rows that were found a while ago are looked up again one by one where it matters that
        // they are still there: what VACUUM has taken away nobody can see.
        if matches!(step, Step::Gathered) && self.index_only {
            self.rows.retain(|row| {
                let key = row.fingerprint.expect("index-only scans return values");
                let key = index.block_layout.tables()[0].permute(&key);
                let (table, tid) = (0, row.tid);
                index.or_corrupt(tree.holds(&EntryKey { table, key, tid }))
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
        self.near.end();
    }

    fn resume(&mut self) {
        self.index.reopen();
        self.near.set_rows(self.index.rows());
    }
}
