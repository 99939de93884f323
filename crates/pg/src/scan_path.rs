//! Index scans whose cost the planner requests (`IndexPath`).
use core::{ptr, slice};

use pgrx::{PgList, pg_sys};

use super::expr::{Expr, List};
use super::planner::Planner;

/// Index scan that the planner considers, and whose cost it requests.
pub struct ScanPath<'a> {
    root: *mut pg_sys::PlannerInfo,
    path: &'a mut pg_sys::IndexPath,
    /// State of the planner during this call.
    pub planner: Planner<'a>,
    /// The index as the planner describes it.
    pub index: &'a pg_sys::IndexOptInfo,
    /// The index's table as the planner describes it.
    pub table: &'a pg_sys::RelOptInfo,
    /// Operator family of each key column of the index.
    pub families: &'a [pg_sys::Oid],
    /// Position of the column whose values searches compare (`Rel::searched_column`).
    pub searched_column: usize,
    /// Conditions that the index evaluates.
    pub quals: Vec<ScanQual<'a>>,
    /// ORDER BY expressions that the index evaluates. Each is the call of an operator.
    pub order_bys: List<'a>,
}

/// One condition that the index evaluates.
#[derive(Clone, Copy)]
pub struct ScanQual<'a> {
    /// Number of the index column in the condition, counted from 0.
    pub column: usize,
    restriction: *mut pg_sys::RestrictInfo,
    /// The condition, with the index column on its left.
    pub condition: Expr<'a>,
}

impl<'a> ScanPath<'a> {
    /// Wraps the arguments that the planner passes to `amcostestimate`.
    ///
    /// # Safety
    /// `root` is the planner's state, and `path` is one of its index paths. The planner has locked
    /// the index. Both live for `'a`, and only this handle uses the path.
    pub unsafe fn new(root: *mut pg_sys::PlannerInfo, path: *mut pg_sys::IndexPath) -> Self {
        let mut quals = Vec::new();
        // SAFETY: a path has an index, which has a table and an operator family for each key
        // column. It has a list of clauses, each with a list of conditions, which are expressions.
        unsafe {
            let path = &mut *path;
            let index = &*path.indexinfo;
            let columns = index.nkeycolumns as usize;
            let inputs = slice::from_raw_parts(index.opcintype, columns);
            let is_searched = |input: &pg_sys::Oid| *input != pg_sys::ANYRANGEOID;
            for clause in PgList::<pg_sys::IndexClause>::from_pg(path.indexclauses).iter_ptr() {
                let conditions = PgList::<pg_sys::RestrictInfo>::from_pg((*clause).indexquals);
                for restriction in conditions.iter_ptr() {
                    quals.push(ScanQual {
                        column: (*clause).indexcol as usize,
                        restriction,
                        condition: Expr::new((*restriction).clause.cast()),
                    });
                }
            }
            ScanPath {
                root,
                planner: Planner::new(root),
                index,
                table: &*index.rel,
                families: slice::from_raw_parts(index.opfamily, columns),
                searched_column: (inputs.iter().rposition(is_searched)).unwrap_or(columns - 1),
                quals,
                order_bys: List::new(path.indexorderbys),
                path,
            }
        }
    }

    /// Returns whether the scan is an index-only scan.
    pub fn is_index_only(&self) -> bool {
        self.path.path.pathtype == pg_sys::NodeTag::T_IndexOnlyScan
    }

    /// Turns an index-only scan into an index scan, which also reads the table. This changes the
    /// path's node type, which decides which of the two scans the planner puts into the plan.
    pub fn read_table(&mut self) {
        self.path.path.pathtype = pg_sys::NodeTag::T_IndexScan;
    }

    /// Returns whether the planner expects that other conditions of the query, which the index does
    /// not evaluate, remove more than 1 % of the scan's rows. `rows` is the estimated number of
    /// rows that the scan returns.
    pub fn filters_further(&self, rows: f64) -> bool {
        self.path.path.rows < 0.99 * rows
    }

    /// Estimated share of the table's rows that satisfy all conditions of the scan and the index's
    /// predicate, from 0 to 1.
    pub fn selectivity(&self) -> f64 {
        // SAFETY: an index of the planner and its conditions.
        self.share_of(unsafe {
            let quals = pg_sys::get_quals_from_indexclauses(self.path.indexclauses);
            pg_sys::add_predicate_to_index_quals(self.path.indexinfo, quals)
        })
    }

    /// Estimated share of the table's rows that satisfy these conditions, from 0 to 1.
    pub fn selectivity_of(&self, quals: impl Iterator<Item = ScanQual<'a>>) -> f64 {
        let mut list = PgList::new();
        quals.for_each(|qual| list.push(qual.restriction));
        self.share_of(list.into_pg())
    }

    fn share_of(&self, conditions: *mut pg_sys::List) -> f64 {
        let (table, join) = (self.table.relid as i32, pg_sys::JoinType::JOIN_INNER);
        let no_join = ptr::null_mut();
        // SAFETY: the planner's state and its conditions.
        unsafe { pg_sys::clauselist_selectivity(self.root, conditions, table, join, no_join) }
    }

    /// Estimates how many pages are read from disk in `accesses` random accesses to a relation of
    /// `relation_pages` pages (`index_pages_fetched`).
    pub fn pages_fetched(&self, accesses: f64, relation_pages: u32) -> f64 {
        let index_pages = f64::from(self.index.pages.max(1));
        // SAFETY: the planner's state.
        unsafe { pg_sys::index_pages_fetched(accesses, relation_pages, index_pages, self.root) }
    }
}

/// Returns the costs of reading one page of a tablespace from disk: the cost of a random read, and
/// of a sequential read.
pub fn page_costs(tablespace: pg_sys::Oid) -> (f64, f64) {
    let (mut random, mut sequential) = (0.0, 0.0);
    // SAFETY: both pointers are to local variables.
    unsafe {
        pg_sys::get_tablespace_page_costs(tablespace, &raw mut random, &raw mut sequential);
    }
    (random, sequential)
}
