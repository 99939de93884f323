//! Searches of an index on fingerprints: within a radius (`WHERE`), and by increasing distance
//! (`ORDER BY fp <~> q`). A key has the words of a fingerprint. In an index with scope columns, the
//! key begins with a word for the row's scope: the hash of its values in these columns. A search
//! plan says which parts of the index are read. It is made for a radius and a number of rows.
use neardup_blocktree::full_scan::Row;
use neardup_blocktree::key::{EntryKey, Key, distance};
use neardup_blocktree::knn::KnnScan;
use neardup_blocktree::leaf;
use neardup_blocktree::metric::near_duplicate_bits;
use neardup_blocktree::scan::{Match, Scan};
use neardup_blocktree::tree::Tree;

use super::index::{Index, plan_of};
use super::keys::Layout;
use super::scan_keys::{Presence, ScanKey, ScanKeys, ScanQuals};
use super::search::{NearSearch, Step};
use super::strategies;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::pages::IndexPages;

/// Condition on the fingerprint in a scan: the fingerprint is in a ball, which contains all
/// fingerprints within a radius of a centre. An equality is a ball of radius 0.
#[derive(Clone, Copy)]
struct BallQual<const N: usize> {
    /// Centre of the ball, as a key whose word for the scope is 0.
    center: Key<N>,
    /// Radius of the ball in bits.
    radius: u32,
}

impl<const N: usize> BallQual<N> {
    /// Returns the condition that a scan key contains; `None` if no fingerprint can fulfil it.
    fn from_key(layout: &Layout, key: ScanKey) -> Option<Self> {
        if key.is_with_ball() {
            let (center, radius) = layout.ball(key.value())?;
            return Some(BallQual { center, radius });
        }
        let radius = match key.strategy() {
            strategies::NEAR => near_duplicate_bits(64 * layout.metric.words() as u32),
            _ => 0,
        };
        let mut center = layout.key_in_scope(None);
        let value = key.value();
        match value.length() {
            // The query compares a bigint column with a shorter integer.
            2 | 4 => center[layout.scope_words()] = value.integer()? as u64,
            _ => layout.put_fingerprint(&mut center, value),
        }
        Some(BallQual { center, radius })
    }
}

/// Returns whether the fingerprint in the key `fingerprint` fulfils all conditions in `quals`.
/// `skipped` is the number of words for the scope at the beginning of the key.
fn all_hold<const N: usize>(quals: &[BallQual<N>], fingerprint: &Key<N>, skipped: usize) -> bool {
    quals
        .iter()
        .all(|qual| distance(&qual.center, fingerprint, skipped) <= qual.radius)
}

/// Search of the tree that finds the rows.
enum Source<const N: usize> {
    /// Finds no rows.
    Nothing,
    /// Finds the rows within a radius of a fingerprint, in no order.
    Near(Scan<N>),
    /// Finds the rows by increasing distance from a fingerprint, perhaps only up to a radius.
    Ordered {
        /// Search in the order of the distance.
        nearest: Box<KnnScan<N>>,
        /// True if rows without a fingerprint follow at the end.
        then_nulls: bool,
    },
}

/// Search of an index on fingerprints, for one scan. It can be restarted with other conditions.
pub struct HammingSearch<const N: usize> {
    /// Estimated number of rows in the index. Plans are made for this number, or for the number of
    /// rows in the searched scope.
    rows: f64,
    /// Result of the last call of `measure_scope`: the hash of a scope, and the estimated number of
    /// rows in the scope.
    rows_of_scope: Option<(u64, f64)>,
    /// True if `rows` has changed since `source` was planned.
    is_plan_old: bool,
    /// Current search of the tree.
    source: Source<N>,
    /// Conditions that `source` does not evaluate. Each row that `source` finds is checked for
    /// these conditions.
    other_quals: Vec<BallQual<N>>,
    /// Hash of the scope that is searched; `None` for all scopes, or without scope columns.
    scope: Option<u64>,
    /// Buffer for the rows of one step.
    matches: Vec<Match<N>>,
}

impl<const N: usize> NearSearch<N> for HammingSearch<N> {
    fn rechecks(&self) -> bool {
        false
    }

    fn begin(&mut self, index: &Index<N>, quals: &ScanQuals, order_bys: ScanKeys) -> bool {
        let near = quals
            .near
            .iter()
            .map(|key| BallQual::from_key(&index.layout, *key));
        let Some(mut near) = near.collect::<Option<Vec<BallQual<N>>>>() else {
            return false;
        };
        let order: Vec<Key<N>> = (order_bys.iter())
            .filter(|key| !key.is_with_null())
            .map(|key| {
                let mut center = [0; N];
                index.layout.put_fingerprint(&mut center, key.value());
                center
            })
            .collect();
        self.scope = quals.scope;
        let narrowest = (0..near.len()).min_by_key(|&i| near[i].radius);
        let narrowest = narrowest.map(|i| near.swap_remove(i));
        self.other_quals = near;
        match (narrowest, &order[..]) {
            (None, []) => unreachable!("all rows, in no order"),
            (Some(near), []) => {
                let query = self.query(near.center);
                let lone_row = quals.lone_row.as_ref();
                if lone_row.is_some_and(|row| row.is_alone_within(&query, near.radius)) {
                    return false;
                }
                self.search(index, near);
            }
            (None, [query, then_by @ ..]) => {
                let then_nulls = quals.presence == Presence::Any;
                self.search_in_order(index, *query, then_by, None, then_nulls);
            }
            (Some(near), [query, then_by @ ..]) if near.center == *query => {
                self.search_in_order(index, *query, then_by, Some(near.radius), false);
            }
            (Some(near), [center, then_by @ ..]) => {
                // The order is by the distance from another value than the centre of the ball. So
                // the search finds the rows in the ball by their distance from its centre, and
                // orders them by their distance from that other value.
                let scan = self.scan_from(index, near.center, near.radius);
                let (then_by, memory) = (then_by.to_vec(), work_mem());
                let nearest = KnnScan::around(*center, scan, then_by, near.radius, memory);
                self.source = Source::Ordered {
                    nearest: Box::new(nearest),
                    then_nulls: false,
                };
            }
        }
        true
    }

    fn end(&mut self) {
        // An ordered search holds many rows in memory. A search without an order is kept for a
        // restart.
        if let Source::Ordered { .. } = self.source {
            self.source = Source::Nothing;
        }
    }

    fn set_rows(&mut self, rows: f64) {
        self.is_plan_old |= rows != self.rows;
        self.rows = rows;
        self.rows_of_scope = None;
    }

    fn step(
        &mut self,
        index: &Index<N>,
        tree: &Tree<IndexPages, N>,
        rows: &mut Vec<Row<N>>,
    ) -> Step {
        let among = self.rows_searched();
        let plan = |radius| plan_of(&index.meta, &index.block_layout, radius, among);
        let (other_quals, skipped) = (&self.other_quals, index.layout.scope_words());
        let admits = |found: &Match<N>| all_hold(other_quals, &found.fingerprint, skipped);
        match &mut self.source {
            Source::Nothing => Step::End,
            Source::Near(scan) => {
                self.matches.clear();
                let more = index.or_corrupt(scan.step(tree, &mut self.matches));
                let admitted = self.matches.iter().filter(|found| admits(found));
                rows.extend(admitted.map(Match::row));
                if more { Step::Leaf } else { Step::End }
            }
            Source::Ordered {
                nearest,
                then_nulls,
            } => match index.or_corrupt(nearest.next(tree, plan, admits)) {
                Some(found) => {
                    rows.push(found.row());
                    Step::Gathered
                }
                None if *then_nulls => Step::OnlyNulls,
                None => Step::End,
            },
        }
    }
}

impl<const N: usize> HammingSearch<N> {
    /// Makes a search of an index with about `rows` rows. The search finds nothing until
    /// [`NearSearch::begin`] starts it.
    pub fn new(rows: f64) -> Self {
        HammingSearch {
            rows,
            rows_of_scope: None,
            is_plan_old: false,
            source: Source::Nothing,
            other_quals: Vec::new(),
            scope: None,
            matches: Vec::new(),
        }
    }

    /// Returns whether the index has scope columns but the search is not limited to one scope.
    fn in_all_scopes(&self, index: &Index<N>) -> bool {
        self.scope.is_none() && index.layout.scope_columns > 0
    }

    /// Estimated number of rows in the searched scope or, without one, in the index.
    fn rows_searched(&self) -> f64 {
        match (self.scope, self.rows_of_scope) {
            (Some(scope), Some((known, rows))) if scope == known => rows,
            _ => self.rows,
        }
    }

    /// Estimates the number of rows in the searched scope from its number of leaves, and stores the
    /// estimate in `rows_of_scope`. Does nothing if the stored estimate is of this scope. Plans are
    /// made for this number of rows: in a small scope, a search should simply read its few leaves.
    fn measure_scope(&mut self, index: &Index<N>) {
        let Some(scope) = self.scope else { return };
        if self.rows_of_scope.is_some_and(|(known, _)| known == scope) {
            return;
        }
        let (mut first, mut last) = ([0; N], [u64::MAX; N]);
        (first[0], last[0]) = (scope, scope);
        let (from, to) = (EntryKey::before_key(0, first), EntryKey::after_key(0, last));
        let leaves = index.or_corrupt(index.tree().leaves_between(&from, &to));
        let rows = (leaves * leaf::usual_count(N)).min(self.rows);
        self.rows_of_scope = Some((scope, rows));
    }

    /// Returns the key to search for: a fingerprint with the searched scope.
    fn query(&self, center: Key<N>) -> Key<N> {
        let mut query = center;
        if let Some(scope) = self.scope {
            query[0] = scope;
        }
        query
    }

    /// Makes a search of the tree for the rows within `radius` bits of the fingerprint `center`.
    fn scan_from(&mut self, index: &Index<N>, center: Key<N>, radius: u32) -> Scan<N> {
        self.measure_scope(index);
        let query = self.query(center);
        let Index {
            block_layout, meta, ..
        } = index;
        if !self.in_all_scopes(index) {
            let plan = plan_of(meta, block_layout, radius, self.rows_searched());
            return Scan::new(block_layout.clone(), plan, query);
        }
        // The index is ordered by scope, so a search in all scopes reads a whole permutation.
        let plan = plan_of(meta, block_layout, u32::MAX, 1.0);
        let mut scan = Scan::new(block_layout.clone(), plan, query).in_all_scopes();
        scan.narrow(radius.min(block_layout.bits()));
        scan
    }

    /// Starts a search for the rows in the ball `near`, in no order. If `source` is already such a
    /// search, restarts it with the new ball. This saves planning in a nested loop. A search in all
    /// scopes is not restarted, because it has another kind of plan.
    fn search(&mut self, index: &Index<N>, near: BallQual<N>) {
        self.measure_scope(index);
        let (query, rows, all) = (
            self.query(near.center),
            self.rows_searched(),
            self.in_all_scopes(index),
        );
        if let Source::Near(scan) = &mut self.source
            && !(all || scan.is_in_all_scopes())
        {
            // A nested loop restarts the search for each outer row.
            let is_same = scan.plan().radius == near.radius && self.scope.is_none();
            let plan = if is_same && !core::mem::take(&mut self.is_plan_old) {
                scan.plan().clone()
            } else {
                plan_of(&index.meta, &index.block_layout, near.radius, rows)
            };
            scan.restart(plan, query);
            return;
        }
        self.source = Source::Near(self.scan_from(index, near.center, near.radius));
    }

    /// Starts a search for rows by increasing distance from `query`. Rows at equal distances from
    /// `query` are ordered by their distances from the fingerprints in `then_by`. `up_to` is the
    /// maximum distance in bits, or `None` if the distance is not limited. If `then_nulls` is true,
    /// rows without a fingerprint follow.
    fn search_in_order(
        &mut self,
        index: &Index<N>,
        query: Key<N>,
        then_by: &[Key<N>],
        up_to: Option<u32>,
        then_nulls: bool,
    ) {
        let limit = up_to.unwrap_or(u32::MAX);
        let first = match self.in_all_scopes(index) {
            // The index is ordered by scope, so the first ring reads a whole permutation and finds
            // all rows.
            true => limit,
            false => index.block_layout.radius().min(limit),
        };
        let scan = self.scan_from(index, query, first);
        let nearest = KnnScan::new(scan, then_by.to_vec(), limit, work_mem());
        self.source = Source::Ordered {
            nearest: Box::new(nearest),
            then_nulls,
        };
    }
}
