//! Search for all pairs of rows with near signatures. Rows with equal signatures form a run. The
//! search compares a run like a single row. So it finds pairs of sides, and each side is a run or a
//! single row.
use neardup_blocktree::key::Tid;
use pgrx::pg_sys;

use super::signature_edges::SignatureEdges;
use super::{EdgeSource, PairArguments, PairSearch, check_file};
use crate::am::index::{Index, words_of};
use crate::am::keys::with_words;
use crate::dedup::bound::SignatureBound;
use crate::dedup::row_filter::Wanted;
use crate::dedup::signatures::equal_rows::{EqualRows, RunsInOrder, Side};
use crate::dedup::signatures::rows::SignatureRows;
use crate::dedup::work_limit::{BY_PARAMETER, SignaturePlan};
use neardup_pg::caller_sql::Condition;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::temp::TempSpace;

/// Iteration over the pairs of rows of two sides. Each row of one side forms a pair with each row
/// of the other side. If both sides are the same run, any two rows of the run form a pair.
struct Product {
    sides: [Side; 2],
    /// The next pair: the position of its first row in the first side, and the position of its
    /// second row in the second side.
    next: [u32; 2],
    /// Number of positions in which the signatures of the two sides differ.
    mismatches: u32,
}

/// Search for all pairs of rows with near signatures. Returns the pairs of equal signatures first,
/// run by run, then the pairs of different signatures.
pub struct SignaturePairs {
    index: pg_sys::Oid,
    /// Number of the index's file when the search began.
    file: u32,
    equal_rows: EqualRows,
    /// Runs whose inner pairs (pairs of two rows of the same run) have not been returned yet.
    runs: RunsInOrder,
    /// Search for the pairs of different signatures.
    edges: Box<dyn EdgeSource>,
    /// True if only one row of each run of equal signatures takes part.
    is_distinct: bool,
    /// Sides whose pairs of rows are being returned.
    product: Option<Product>,
}

impl SignaturePairs {
    /// Begins the search for the histogram. The search finds all pairs within `bound` among the
    /// rows that meet `filter`. With `is_distinct`, only one row of each run of equal signatures
    /// takes part. Raises an error if the search takes too much work.
    pub fn all(
        relations: &LockedIndex,
        bound: SignatureBound,
        filter: Option<&Condition>,
        is_distinct: bool,
    ) -> Self {
        let otherwise = "Count only a sample with sample_rows => 1000.";
        SignaturePairs {
            is_distinct,
            ..Self::begin(relations, bound, filter, Some(otherwise))
        }
    }

    /// Begins the search that a call of `neardup_pairs` with these arguments asks for. Raises an
    /// error if the search takes too much work, unless the argument `exhaustive` is true.
    pub fn new(relations: &LockedIndex, bound: SignatureBound, arguments: &PairArguments) -> Self {
        let otherwise = (!arguments.exhaustive).then_some(BY_PARAMETER);
        Self::begin(relations, bound, arguments.filter.as_ref(), otherwise)
    }

    /// Begins a search among the rows that meet `filter`. If the search takes too much work, raises
    /// an error whose hint starts with `otherwise`. If `otherwise` is `None`, the work is not
    /// limited ([`SignaturePlan::new`]).
    fn begin(
        relations: &LockedIndex,
        bound: SignatureBound,
        filter: Option<&Condition>,
        otherwise: Option<&str>,
    ) -> Self {
        let mut files = TempSpace;
        let (mut equal_rows, edges) = with_words!(words_of(relations.index()), N => {
            let index = Index::<N>::open(relations.index());
            let mut rows = SignatureRows::new(relations, &index);
            let wanted = Wanted::new(filter, &index, relations, &mut files);
            let mut equal_rows = EqualRows::find(&index, &mut rows, wanted, files);
            let mut is_wanted = |entry| equal_rows.is_wanted(entry);
            let plan = SignaturePlan::new(relations, &index, bound, otherwise, &mut is_wanted);
            let edges: Box<dyn EdgeSource> = Box::new(SignatureEdges::new(&index, plan));
            (equal_rows, edges)
        });
        SignaturePairs {
            index: relations.index().oid(),
            file: relations.index().file_number(),
            runs: equal_rows.all(),
            equal_rows,
            edges,
            is_distinct: false,
            product: None,
        }
    }

    /// Returns the iteration over the pairs of the next two sides. Returns `None` if no sides are
    /// left.
    fn next_product(&mut self) -> Option<Product> {
        if !self.is_distinct
            && let Some((_, run)) = self.runs.next()
        {
            return Some(Product {
                sides: [run; 2],
                next: [0, 1],
                mismatches: 0,
            });
        }
        let (oid, file) = (self.index, self.file);
        let relations = || {
            let relations = LockedIndex::reopen(oid);
            check_file(&relations, file);
            relations
        };
        let (sides, mismatches) = self.edges.next_edge(&mut self.equal_rows, &relations)?;
        Some(Product {
            sides,
            next: [0, 0],
            mismatches,
        })
    }
}

impl PairSearch for SignaturePairs {
    fn next_pair(&mut self) -> Option<([Tid; 2], u32)> {
        loop {
            let Some(product) = &mut self.product else {
                self.product = Some(self.next_product()?);
                continue;
            };
            let [left, right] = product.sides;
            let is_one = left == right;
            let [i, j] = product.next;
            match (self.equal_rows.row(left, i), self.equal_rows.row(right, j)) {
                (Some(a), Some(b)) => {
                    product.next = match self.is_distinct {
                        // No row has this number, so only one pair of the two sides is returned.
                        true => [u32::MAX; 2],
                        false => [i, j + 1],
                    };
                    return Some(([a.min(b), a.max(b)], product.mismatches));
                }
                (Some(_), None) if !is_one || i + 2 < right.len() => {
                    product.next = [i + 1, if is_one { i + 2 } else { 0 }];
                }
                _ => self.product = None,
            }
        }
    }
}
