//! Statistics of columns (pg_statistic), looked up as the planner does when it estimates the
//! selectivity of a condition: the share of rows that satisfy it.
use std::cell::RefCell;

use pgrx::pg_sys::{self, Oid, VariableStatData};

use super::catalog;
use super::expr::{Expr, List};
use super::planner_request::{Condition, Rows};
use super::value::{Value, ValueType};

/// Statistics of the two operands of a condition, from which the condition's selectivity is
/// estimated. The variants differ in the rows for which the selectivity is estimated: rows of one
/// relation, or pairs of rows of two relations.
pub enum Operands<'s, 'a> {
    /// Condition that compares a column with an expression, for the rows of one relation. Has the
    /// statistics of the column, and the expression that it is compared with.
    Restriction(&'s Statistics, Expr<'a>),
    /// Condition that compares columns of two relations, as a condition on the rows of one of them.
    /// The row of the other relation is known when the condition is evaluated, as on the inner side
    /// of a nested loop.
    Parameterized {
        /// Statistics of the column of the relation whose rows are estimated.
        column: &'s Statistics,
        /// Statistics of the column of the other relation.
        other: &'s Statistics,
    },
    /// Condition that compares columns of two relations, for all pairs of their rows. Has the
    /// statistics of both columns.
    Pairs(&'s Statistics, &'s Statistics),
    /// Condition that compares columns of two relations, for the outer rows of a semi-join or
    /// anti-join. The selectivity is the share of outer rows that match at least one inner row.
    Matched {
        /// Statistics of the column of the outer relation.
        outer: &'s Statistics,
        /// Statistics of the column of the inner relation.
        inner: &'s Statistics,
    },
}

impl<'a> Condition<'a> {
    /// Estimates the selectivity of the condition, from 0 to 1. Looks up the statistics of
    /// `operands`, the two operands of the condition, and returns the result of `estimate` for
    /// these statistics. Returns `None` if the server passes no planner state.
    ///
    /// For a condition on the rows of one relation, also returns `None` unless one operand is a
    /// column of this relation and the other operand contains no column of it.
    pub fn estimate(
        &self,
        operands: [Expr<'a>; 2],
        estimate: impl FnOnce(Operands<'_, 'a>) -> f64,
    ) -> Option<f64> {
        let root = self.planner.root()?;
        let list = List::build(&operands);
        let mut a = VariableStatData::default();
        match self.rows {
            Rows::Relation(relation) => {
                let (mut b, mut left) = (core::ptr::null_mut(), false);
                let (a_at, b_at, left_at) = (&raw mut a, &raw mut b, &raw mut left);
                // SAFETY: the list has two expressions. The server fills in both or neither.
                let (column, other) = unsafe {
                    pg_sys::get_restriction_variable(root, list, relation, a_at, b_at, left_at)
                        .then(|| (Statistics::new(a), Expr::new(b)))?
                };
                let share = match self.statistics_of(root, other) {
                    None => estimate(Operands::Restriction(&column, other)),
                    Some(known) => {
                        let share = estimate(Operands::Parameterized {
                            column: &column,
                            other: &known,
                        });
                        known.release();
                        share
                    }
                };
                column.release();
                Some(share)
            }
            Rows::Join(kind, special) => {
                let (mut b, mut reversed) = (VariableStatData::default(), false);
                // SAFETY: the list has two expressions, for which the server fills in statistics.
                let (a, b) = unsafe {
                    pg_sys::get_join_variables(root, list, special, &mut a, &mut b, &mut reversed);
                    (Statistics::new(a), Statistics::new(b))
                };
                let (outer, inner) = if reversed { (&b, &a) } else { (&a, &b) };
                let share = estimate(match kind {
                    pg_sys::JoinType::JOIN_SEMI | pg_sys::JoinType::JOIN_ANTI => {
                        Operands::Matched { outer, inner }
                    }
                    _ => Operands::Pairs(&a, &b),
                });
                a.release();
                b.release();
                Some(share)
            }
        }
    }
}

impl<'a> Condition<'a> {
    /// Looks up the statistics of an expression that has columns of one relation only. Returns
    /// `None` for any other expression.
    fn statistics_of(
        &self,
        root: *mut pg_sys::PlannerInfo,
        expression: Expr<'a>,
    ) -> Option<Statistics> {
        if !expression.has_columns() {
            return None;
        }
        let mut variable = VariableStatData::default();
        // SAFETY: the planner's state and an expression of its query.
        unsafe {
            pg_sys::examine_variable(root, expression.as_ptr(), 0, &raw mut variable);
            (!variable.rel.is_null()).then(|| Statistics::new(variable))
        }
    }
}

/// Statistics of one column, or of an expression over the columns of one relation.
pub struct Statistics {
    /// Estimated number of distinct values.
    pub distinct: f64,
    /// True if `distinct` is the server's default value, because the server has no data.
    pub is_guess: bool,
    /// Two estimated numbers of rows of the relation: rows that satisfy the query's conditions on
    /// the relation, and all rows. `None` if the relation is unknown.
    pub rows: Option<(f64, f64)>,
    /// Share of the rows whose value is NULL; `None` if pg_statistic has no row for the column.
    pub null_fraction: Option<f64>,
    variable: VariableStatData,
    /// Arrays from pg_statistic that the server has allocated for [`Statistics::values`].
    slots: RefCell<Vec<pg_sys::AttStatsSlot>>,
}

impl Statistics {
    /// Reads the estimates from `variable`, the server's record of a column's statistics.
    ///
    /// # Safety
    /// The server has filled in `variable`.
    unsafe fn new(mut variable: VariableStatData) -> Self {
        let mut is_guess = false;
        // SAFETY: the relation and the statistics tuple are null or valid.
        unsafe {
            let distinct = pg_sys::get_variable_numdistinct(&mut variable, &mut is_guess);
            let rows = variable.rel.as_ref().map(|rel| (rel.rows, rel.tuples));
            let tuple = variable.statsTuple;
            let null_fraction = (!tuple.is_null()).then(|| {
                let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_statistic>();
                (*row).stanullfrac.into()
            });
            Statistics {
                distinct,
                is_guess,
                rows,
                null_fraction,
                variable,
                slots: RefCell::default(),
            }
        }
    }

    /// Returns whether an estimate may pass values from pg_statistic to the function with the OID
    /// `function`. The current user must be able to read the column, or the function must be
    /// leakproof.
    pub fn allow(&self, function: Oid) -> bool {
        let mut variable = self.variable;
        // SAFETY: filled in by the server.
        unsafe { pg_sys::statistic_proc_security_check(&mut variable, function) }
    }

    /// Reads the values of one kind of statistics (`STATISTIC_KIND_...`) from pg_statistic. If
    /// `has_shares` is true, also reads for each value the share of all rows that have it;
    /// otherwise the list of shares is empty. Returns `None` if pg_statistic has no statistics of
    /// this kind for the column.
    pub fn values(&self, kind: u32, has_shares: bool) -> Option<(Vec<Value<'_>>, Vec<f64>)> {
        let tuple = self.variable.statsTuple;
        if tuple.is_null() {
            return None;
        }
        let mut slot = pg_sys::AttStatsSlot::default();
        let flags = match has_shares {
            true => pg_sys::ATTSTATSSLOT_VALUES | pg_sys::ATTSTATSSLOT_NUMBERS,
            false => pg_sys::ATTSTATSSLOT_VALUES,
        };
        let any = pg_sys::InvalidOid;
        // SAFETY: the tuple is a row of pg_statistic. The server fills in arrays and their
        // lengths. The arrays live as long as the statistics.
        unsafe {
            if !pg_sys::get_attstatsslot(&mut slot, tuple, kind as i32, any, flags as i32) {
                return None;
            }
            self.slots.borrow_mut().push(slot);
            let of = ValueType::from_oid(slot.valuetype);
            let value = |n| Value::typed(*slot.values.add(n), of);
            let share = |n| f64::from(*slot.numbers.add(n));
            let values = (0..slot.nvalues as usize).map(value).collect();
            Some((values, (0..slot.nnumbers as usize).map(share).collect()))
        }
    }

    /// OID of an index on this column or expression that supports `operator`, has no other key
    /// column and holds all rows of the table; `None` if there is no such index.
    pub fn index(&self, operator: Oid) -> Option<Oid> {
        let (rel, operand) = (self.variable.rel, self.variable.var);
        // SAFETY: null, or a relation of the planner with its list of indexes. Each index has an
        // operator family for each key column.
        unsafe {
            let indexes = rel.as_ref()?.indexlist;
            let mut indexes = (0..pg_sys::list_length(indexes)).map(|n| {
                let index: *mut pg_sys::IndexOptInfo = pg_sys::list_nth(indexes, n).cast();
                index
            });
            let found = indexes.find(|&index| {
                let info = &*index;
                info.nkeycolumns == 1
                    && info.indpred.is_null()
                    && !info.hypothetical
                    && pg_sys::op_in_opfamily(operator, *info.opfamily)
                    && pg_sys::match_index_to_operand(operand, 0, index)
                    && catalog::relation_kind(info.indexoid) == pg_sys::RELKIND_INDEX
            })?;
            Some((*found).indexoid)
        }
    }

    /// Frees the memory that the server has allocated. This is not in `drop`, because the server
    /// must not be called while unwinding.
    fn release(self) {
        // SAFETY: filled in by the server; the values are no longer used.
        unsafe {
            for mut slot in self.slots.into_inner() {
                pg_sys::free_attstatsslot(&mut slot);
            }
            let tuple = self.variable.statsTuple;
            if let (false, Some(free)) = (tuple.is_null(), self.variable.freefunc) {
                pg_sys::ffi::pg_guard_ffi_boundary(|| free(tuple));
            }
        }
    }
}
