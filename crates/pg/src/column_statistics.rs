//! Statistics of columns (pg_statistic), as the planner finds them for an estimate.
use std::cell::RefCell;

use pgrx::pg_sys::{self, Oid, VariableStatData};

use super::catalog;
use super::expr::{Expr, List};
use super::planner_request::{Condition, Rows};
use super::value::{Value, ValueType};

/// The statistics of the operands of a condition.
pub enum Operands<'s, 'a> {
    /// A column and an expression, of which the rows of a relation are asked for.
    Restriction(&'s Statistics, Expr<'a>),
    /// A column, of which the rows of a relation are asked for, and a column of another relation,
    /// of which one row at a time is known: the inner side of a nested loop.
    Parameterized {
        /// Column of the rows that are asked for.
        column: &'s Statistics,
        /// Column of the other relation.
        other: &'s Statistics,
    },
    /// Two columns, of which all pairs of rows are asked for.
    Pairs(&'s Statistics, &'s Statistics),
    /// Two columns, of which the outer rows are asked for that have an inner one: semi-joins and
    /// anti-joins.
    Matched {
        /// Column of the outer rows.
        outer: &'s Statistics,
        /// Column of the inner rows.
        inner: &'s Statistics,
    },
}

impl<'a> Condition<'a> {
    /// Estimates a share from the statistics of the operands. `None` if those of a restriction are
    /// not a column and an expression.
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
                // SAFETY: the list has two expressions. If the first is filled in, so is the other.
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
    /// The statistics of an expression with columns of one relation; `None` for any other one.
    fn statistics_of(
        &self,
        root: *mut pg_sys::PlannerInfo,
        expression: Expr<'a>,
    ) -> Option<Statistics> {
        if !expression.has_columns() {
            return None;
        }
        let mut variable = VariableStatData::default();
        // SAFETY: the planner's state and an expression of its, for which the server fills in
        // statistics.
        unsafe {
            pg_sys::examine_variable(root, expression.as_ptr(), 0, &raw mut variable);
            (!variable.rel.is_null()).then(|| Statistics::new(variable))
        }
    }
}

/// The statistics of one column or expression.
pub struct Statistics {
    /// Number of different values.
    pub distinct: f64,
    /// True if that number is a guess.
    pub is_guess: bool,
    /// Rows of the relation after its conditions, and before them; `None` if they are not known.
    pub rows: Option<(f64, f64)>,
    /// Share of NULLs; `None` if nothing is known of the values.
    pub null_fraction: Option<f64>,
    variable: VariableStatData,
    /// Values that the server has handed out.
    slots: RefCell<Vec<pg_sys::AttStatsSlot>>,
}

impl Statistics {
    /// # Safety
    /// The server has filled in `variable`.
    unsafe fn new(mut variable: VariableStatData) -> Self {
        let mut is_guess = false;
        // SAFETY: the relation and the statistics tuple are null or what their types say.
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

    /// Returns whether the user may learn of the values through this function.
    pub fn allow(&self, function: Oid) -> bool {
        let mut variable = self.variable;
        // SAFETY: filled in by the server.
        unsafe { pg_sys::statistic_proc_security_check(&mut variable, function) }
    }

    /// The values of a kind of statistics, and their shares of all rows if the kind has shares.
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
        // SAFETY: the tuple is one of pg_statistic. The server fills in arrays of as many elements
        // as it says, which are kept for as long as the statistics.
        unsafe {
            if !pg_sys::get_attstatsslot(&mut slot, tuple, kind as i32, any, flags as i32) {
                return None;
            }
            self.slots.borrow_mut().push(slot);
            let of = ValueType::of(slot.valuetype);
            let value = |n| Value::typed(*slot.values.add(n), of);
            let share = |n| f64::from(*slot.numbers.add(n));
            let values = (0..slot.nvalues as usize).map(value).collect();
            Some((values, (0..slot.nnumbers as usize).map(share).collect()))
        }
    }

    /// An index that is searched for values of this column or expression by an operator, holds all
    /// rows of the table, and has no other column.
    pub fn index(&self, operator: Oid) -> Option<Oid> {
        let (rel, operand) = (self.variable.rel, self.variable.var);
        // SAFETY: a relation of the planner's, or null, with its list of indexes. Each has one
        // family for each of its columns.
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

    /// Gives the memory back. (Not by dropping: the server must not be called while unwinding.)
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
