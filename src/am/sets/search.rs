//! Search of an index on arrays: `array && query`, `array @> query` and `array = query`.
use neardup_blocktree::full_scan::Row;
use neardup_blocktree::key::Tid;
use neardup_blocktree::sets::{SetQuery, SetScan, rarest, sum};
use neardup_blocktree::tree::Tree;

use super::{elements, required_elements};
use crate::am::index::Index;
use crate::am::scan_keys::{ScanKey, ScanKeys, ScanQuals};
use crate::am::search::{NearSearch, Step};
use crate::am::strategies;
use neardup_pg::memory::work_mem;
use neardup_pg::storage::pages::IndexPages;

/// Search of an index on arrays, for one scan. It can be restarted with other conditions.
pub struct SetSearch<const N: usize> {
    /// Search of the tree; `None` before the search begins.
    scan: Option<SetScan<N>>,
    /// True if the server must check the conditions again for each row, because the index cannot
    /// decide which rows fulfil them.
    rechecks: bool,
    /// Buffer for the rows of one step.
    tids: Vec<Tid>,
}

/// Condition on the array in a scan.
enum SetQual {
    /// `&&`: the array has one of these elements.
    Overlaps(Vec<u64>),
    /// `@>`: the array has all of these elements. There is at least one.
    Contains(Vec<u64>),
    /// `=`: the hashes of the array's distinct elements have this sum.
    Equals(u64),
}

impl SetQual {
    /// Returns the condition that a scan key contains; `None` if no array can fulfil it.
    fn from_key(key: ScanKey) -> Option<Self> {
        if key.strategy() == strategies::CONTAINS {
            return required_elements(key.value()).map(SetQual::Contains);
        }
        let elements = elements(key.value());
        match key.strategy() {
            strategies::OVERLAP if elements.is_empty() => None,
            strategies::OVERLAP => Some(SetQual::Overlaps(elements)),
            _ => Some(SetQual::Equals(sum(elements))),
        }
    }

    /// Relative cost of a search by this condition. The search uses the condition for which this
    /// number is smallest.
    fn cost(&self) -> usize {
        match self {
            SetQual::Overlaps(elements) => elements.len(),
            SetQual::Contains(_) => 1,
            SetQual::Equals(_) => 0,
        }
    }
}

impl<const N: usize> SetSearch<N> {
    /// Makes a search that finds nothing until [`NearSearch::begin`] starts it.
    pub fn new() -> Self {
        SetSearch {
            scan: None,
            rechecks: true,
            tids: Vec::new(),
        }
    }
}

impl<const N: usize> NearSearch<N> for SetSearch<N> {
    /// Returns false if the only condition is `&&`, or `@>` with a single element. Each row that
    /// the search finds by an element of the query then fulfils the condition. Otherwise returns
    /// true, because the server must compare the arrays. The search evaluates only one of several
    /// conditions, and only one of several elements of `@>`. For `=` it compares sums of hashes,
    /// which may be equal for different arrays.
    fn rechecks(&self) -> bool {
        self.rechecks
    }

    fn begin(&mut self, index: &Index<N>, quals: &ScanQuals, _order_bys: ScanKeys) -> bool {
        let near: Option<Vec<SetQual>> = quals
            .near
            .iter()
            .map(|&key| SetQual::from_key(key))
            .collect();
        let Some(near) = near else {
            return false;
        };
        self.rechecks = match &near[..] {
            [SetQual::Overlaps(_)] => false,
            [SetQual::Contains(elements)] => elements.len() > 1,
            _ => true,
        };
        let has_scopes = index.layout.scope_columns > 0;
        let query = match near.into_iter().min_by_key(SetQual::cost) {
            None => return false,
            Some(SetQual::Overlaps(elements)) => SetQuery::any_of(elements),
            Some(SetQual::Contains(elements)) => {
                let element = match elements[..] {
                    [element] => element,
                    // A search in all scopes reads the whole index, whichever element is chosen.
                    [element, ..] if has_scopes && quals.scope.is_none() => element,
                    _ => index.or_corrupt(rarest(&index.tree(), &elements, quals.scope)),
                };
                SetQuery::any_of(vec![element])
            }
            Some(SetQual::Equals(sum)) => SetQuery::with_sum(sum),
        };
        let query = match (has_scopes, quals.scope) {
            (false, _) => query,
            (true, Some(scope)) => query.in_scope(scope),
            (true, None) => query.in_all_scopes(),
        };
        match &mut self.scan {
            // A nested loop restarts the search for each outer row.
            Some(scan) => scan.restart(query),
            None => self.scan = Some(SetScan::new(query, work_mem())),
        }
        true
    }

    fn end(&mut self) {
        self.scan = None;
    }

    fn allow_repeats(&mut self) {
        if let Some(scan) = &mut self.scan {
            scan.allow_repeats();
        }
    }

    fn step(
        &mut self,
        index: &Index<N>,
        tree: &Tree<IndexPages, N>,
        rows: &mut Vec<Row<N>>,
    ) -> Step {
        let Some(scan) = &mut self.scan else {
            return Step::End;
        };
        self.tids.clear();
        let more = index.or_corrupt(scan.step(tree, &mut self.tids));
        rows.extend(self.tids.iter().map(|&tid| Row {
            tid,
            fingerprint: None,
        }));
        if more { Step::Gathered } else { Step::End }
    }
}
