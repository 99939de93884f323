//! Statistics of a column of fingerprints or signatures (pg_statistic).
use pgrx::pg_sys::{self, Datum, Oid, VariableStatData};

use super::{nodes, signature_sample};

/// The statistics of one column or expression, as the estimates need them.
pub struct Column {
    /// The share of NULLs.
    pub null_fraction: f64,
    /// Number of different values, at least 1. Without statistics, as many as rows:
    /// fingerprints of different documents differ.
    pub distinct: f64,
    /// The most common values with their shares of all rows.
    pub common: Vec<(Datum, f64)>,
    /// Values drawn evenly from the others: the bounds of the histogram.
    pub sample: Vec<Datum>,
    /// Rows expected from the relation; `None` if it is unknown.
    pub rows: Option<f64>,
    /// Rows in the relation, before conditions; 0 if it is unknown.
    pub tuples: f64,
    slots: Vec<pg_sys::AttStatsSlot>,
}

impl Column {
    /// Reads the statistics that the planner has found for `variable`. `function` is what will be
    /// applied to the values: the server says whether the user may learn of them through it.
    ///
    /// # Safety
    /// `variable` was filled in by `get_restriction_variable` or `get_join_variables`.
    pub unsafe fn read(variable: &mut VariableStatData, function: Oid) -> Self {
        let mut column = Column {
            null_fraction: 0.0,
            distinct: 1.0,
            common: Vec::new(),
            sample: Vec::new(),
            rows: None,
            tuples: 0.0,
            slots: Vec::new(),
        };
        // SAFETY: the relation and the statistics tuple are null or what their types say.
        unsafe {
            let mut is_default = false;
            column.distinct = pg_sys::get_variable_numdistinct(variable, &mut is_default);
            if !variable.rel.is_null() {
                column.rows = Some((*variable.rel).rows);
                column.tuples = (*variable.rel).tuples;
                if is_default {
                    column.distinct = (*variable.rel).tuples;
                }
            }
            column.distinct = column.distinct.max(1.0);
            if variable.statsTuple.is_null() {
                return column;
            }
            let row =
                pg_sys::GETSTRUCT(variable.statsTuple).cast::<pg_sys::FormData_pg_statistic>();
            column.null_fraction = (*row).stanullfrac.into();
            if !pg_sys::statistic_proc_security_check(variable, function) {
                return column;
            }
            let kinds = [pg_sys::STATISTIC_KIND_MCV, signature_sample::COMMON_KIND];
            if let Some(slot) = column.first_slot(variable, kinds) {
                let shares = core::slice::from_raw_parts(slot.numbers, slot.nnumbers as usize);
                column.common = values(&slot)
                    .iter()
                    .copied()
                    .zip(shares.iter().map(|share| f64::from(*share)))
                    .collect();
            }
            let kinds = [
                pg_sys::STATISTIC_KIND_HISTOGRAM,
                signature_sample::SAMPLE_KIND,
            ];
            if let Some(slot) = column.first_slot(variable, kinds) {
                column.sample = values(&slot).to_vec();
            }
        }
        column
    }

    /// The share of rows that are neither NULL nor one of the most common values.
    pub fn other_fraction(&self) -> f64 {
        (1.0 - self.null_fraction - self.common.iter().map(|(_, share)| share).sum::<f64>())
            .max(0.0)
    }

    /// Number of different values beside the most common ones, at least 1.
    pub fn other_distinct(&self) -> f64 {
        (self.distinct - self.common.len() as f64).max(1.0)
    }

    /// Gives the memory back. (Not by dropping: the server must not be called while unwinding.)
    pub fn release(self) {
        for mut slot in self.slots {
            // SAFETY: the slot was filled in by the server, and its values are no longer used.
            unsafe { pg_sys::free_attstatsslot(&mut slot) };
        }
    }

    /// The values of the first of these kinds that there is: the server's, or those of signatures
    /// that are too long for it.
    ///
    /// # Safety
    /// `variable` has a statistics tuple.
    unsafe fn first_slot(
        &mut self,
        variable: &VariableStatData,
        kinds: [u32; 2],
    ) -> Option<pg_sys::AttStatsSlot> {
        // SAFETY: as the caller promises.
        (kinds.into_iter()).find_map(|kind| unsafe { self.slot(variable, kind) })
    }

    /// # Safety
    /// `variable` has a statistics tuple.
    unsafe fn slot(
        &mut self,
        variable: &VariableStatData,
        kind: u32,
    ) -> Option<pg_sys::AttStatsSlot> {
        let mut slot = pg_sys::AttStatsSlot::default();
        let has_shares =
            kind == pg_sys::STATISTIC_KIND_MCV || kind == signature_sample::COMMON_KIND;
        let flags = pg_sys::ATTSTATSSLOT_VALUES
            | if has_shares {
                pg_sys::ATTSTATSSLOT_NUMBERS
            } else {
                0
            };
        // SAFETY: as the caller promises.
        let found = unsafe {
            pg_sys::get_attstatsslot(
                &mut slot,
                variable.statsTuple,
                kind as i32,
                pg_sys::InvalidOid,
                flags as i32,
            )
        };
        found.then(|| {
            self.slots.push(slot);
            slot
        })
    }
}

/// Gives back what `get_restriction_variable` or `get_join_variables` have pinned.
///
/// # Safety
/// `variable` was filled in by one of them, and its statistics tuple is no longer used.
pub unsafe fn release(variable: &VariableStatData) {
    if let (false, Some(free)) = (variable.statsTuple.is_null(), variable.freefunc) {
        // SAFETY: the server sets the function that its tuple is to be freed with.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| free(variable.statsTuple)) };
    }
}

/// # Safety
/// The slot was filled in with values.
unsafe fn values(slot: &pg_sys::AttStatsSlot) -> &[Datum] {
    // SAFETY: as the caller promises.
    unsafe { core::slice::from_raw_parts(slot.values, slot.nvalues as usize) }
}

/// The question that a join asks about the columns on both sides of a condition.
pub enum Sought<'a> {
    /// The share of all pairs of rows that fulfil the condition.
    Pairs(&'a Column, &'a Column),
    /// The share of outer rows for which some inner row fulfils it: semi-joins and anti-joins.
    Matched {
        outer: &'a Column,
        inner: &'a Column,
    },
}

/// The estimate for a condition that joins two relations.
///
/// # Safety
/// `root` is the planner's state, `special` what it knows of the join, the operands those of the
/// condition, and `function` the one behind it.
pub unsafe fn join_estimate(
    root: *mut pg_sys::PlannerInfo,
    kind_of_join: pg_sys::JoinType::Type,
    special: *mut pg_sys::SpecialJoinInfo,
    operands: [*mut pg_sys::Node; 2],
    function: pg_sys::Oid,
    estimate: impl FnOnce(Sought) -> f64,
) -> f64 {
    let mut left = pg_sys::VariableStatData::default();
    let mut right = pg_sys::VariableStatData::default();
    let mut reversed = false;
    // SAFETY: the list has the two expressions that the server's function asks for; what it fills
    // in is released at the end.
    unsafe {
        let operands = nodes::list(operands);
        pg_sys::get_join_variables(
            root,
            operands,
            special,
            &mut left,
            &mut right,
            &mut reversed,
        );
        let (a, b) = (
            Column::read(&mut left, function),
            Column::read(&mut right, function),
        );
        let share = estimate(match kind_of_join {
            pg_sys::JoinType::JOIN_SEMI | pg_sys::JoinType::JOIN_ANTI => {
                let (outer, inner) = if reversed { (&b, &a) } else { (&a, &b) };
                Sought::Matched { outer, inner }
            }
            _ => Sought::Pairs(&a, &b),
        });
        a.release();
        b.release();
        release(&left);
        release(&right);
        share
    }
}
