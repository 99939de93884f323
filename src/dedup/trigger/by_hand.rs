//! Rows whose marks are set by statements instead of the trigger, selected by the trigger's option
//! `manual=<condition>`. The mark of a row is the key of its original, which is the row that it
//! repeats. An original has no mark.
//!
//! A row that meets the condition has the mark that statements give it. Without a mark it is an
//! original, even if it is near another row. The row that its mark names stays an original, too.
//! The trigger sets the marks of all other rows, as with `manual=false`. `neardup_remark` follows
//! the same rules.
use core::ops::Deref;
use std::ffi::CString;
use std::rc::Rc;

use super::columns::Columns;
use super::marks::Marks;
use super::trigger_arguments::Arguments;
use super::{Incoming, MarkDecision, action};
use neardup_pg::caller_sql::Condition;
use neardup_pg::generated::{GeneratedColumns, PlannedColumns};
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::Rel;
use neardup_pg::value::{OwnedValue, Value};

/// Condition of the option `manual=<condition>` for the rows of one table.
pub struct ManualCondition {
    condition: Condition,
    /// Statement that evaluates the condition for a row.
    statement: CString,
    /// Attribute number of the fingerprint column.
    fingerprint: i16,
    /// Generated columns of the table, except the fingerprint, which the trigger computes anyway.
    planned: PlannedColumns,
    fingerprint_is_generated: bool,
}

impl ManualCondition {
    /// Prepares the condition of a trigger on `table`. Returns `None` if the trigger has no
    /// condition.
    pub fn new(arguments: &Arguments, table: Rel, columns: &Columns) -> Option<Self> {
        let condition = arguments.manual.condition()?;
        let fingerprint = columns.fingerprint;
        let generated: Vec<i16> = (1..=table.column_count())
            .filter(|&column| column != fingerprint && table.is_generated(column))
            .collect();
        Some(ManualCondition {
            statement: condition.statement_for_row(table),
            condition,
            fingerprint,
            planned: PlannedColumns::new(table, &generated),
            fingerprint_is_generated: table.is_generated(fingerprint),
        })
    }

    /// Returns whether the plans of generated columns are still valid.
    pub fn is_valid(&self) -> bool {
        self.planned.is_valid()
    }
}

/// Condition of the option `manual=<condition>`, compiled for the rows of one statement.
pub struct ByHand {
    prepared: Rc<ManualCondition>,
    generated: GeneratedColumns,
}

impl Deref for ByHand {
    type Target = ManualCondition;

    fn deref(&self) -> &ManualCondition {
        &self.prepared
    }
}

impl ByHand {
    /// Compiles the condition for the rows that one statement writes to `table`.
    pub fn new(prepared: &Rc<ManualCondition>, table: Rel) -> Self {
        ByHand {
            prepared: Rc::clone(prepared),
            generated: prepared.planned.compile(table),
        }
    }

    /// Returns whether `row` meets the condition. `fingerprint` is the row's fingerprint, which is
    /// not in `row` yet if the column is generated.
    pub fn holds(&self, table: Rel, row: &NewRow, fingerprint: Option<Value>) -> bool {
        let complete = self.generated.complete(table, row);
        let row = complete.as_ref().unwrap_or(row);
        let with_fingerprint =
            (self.fingerprint_is_generated).then(|| row.with(&[self.fingerprint], &[fingerprint]));
        let row = with_fingerprint.as_ref().unwrap_or(row);
        self.condition.holds(&self.statement, row.as_record())
    }

    /// Returns whether any row of the table is marked with `key` and meets the condition.
    fn is_named_by_kept_mark(&self, table: Rel, marks: &Marks, key: Value) -> bool {
        let holds = |row: Value| self.condition.holds(&self.statement, row);
        marks.any_dependent(table, key, holds)
    }

    /// Decides about the mark of the row `incoming`, which a statement writes. `key` is the
    /// attribute number of the key column. `stays` is true if an UPDATE keeps the row's
    /// fingerprint, scope, time and compared text.
    ///
    /// A row that meets the condition gets the mark that the statement sets. An original that an
    /// UPDATE changes stays an original if its key is the mark of another row that meets the
    /// condition. Returns `None` in all other cases, also if `stays` is true and the replaced
    /// version did not meet the condition. The trigger then decides as with `manual=false`.
    pub fn decide(
        &self,
        marks: &Marks,
        key: i16,
        incoming: &mut Incoming,
        stays: bool,
    ) -> Option<MarkDecision> {
        if incoming.by_hand {
            return Some(obey(marks, key, incoming, stays));
        }
        let (table, old) = (incoming.table, incoming.old?);
        if stays && !incoming.released {
            return None;
        }
        let own = old.get(key).filter(|_| old.get(marks.mark).is_none())?;
        self.is_named_by_kept_mark(table, marks, own).then(|| {
            incoming.row.set_null(Some(marks.mark));
            MarkDecision::Publish
        })
    }
}

/// Applies the mark that a statement gives to the row `incoming`, which meets the condition of
/// `manual=<condition>`. `key` is the attribute number of the key column. `stays` is true if an
/// UPDATE keeps the row's fingerprint, scope, time and compared text. The result states whether the
/// row is written, published as an original, or compared again because its mark does not lead to an
/// original.
fn obey(marks: &Marks, key: i16, incoming: &mut Incoming, stays: bool) -> MarkDecision {
    let table = incoming.table;
    let own = incoming.completed().get(key).map(Value::to_owned);
    let own = own.as_ref().map(OwnedValue::get);
    let visible = |value: Value| action::may_know(marks, table, key, value);
    let before = incoming.old.and_then(|old| old.get(marks.mark));
    if incoming.recheck {
        // The original that the row's previous mark names was changed, marked or deleted.
        return match before.map(|before| marks.follow(table, before, own)) {
            Some(Ok(original)) => {
                incoming.row.set(marks.mark, Some(original.get()));
                MarkDecision::Write
            }
            _ => MarkDecision::Compare { again: true },
        };
    }
    match (incoming.old, incoming.row.get(marks.mark)) {
        (Some(old), _) => {
            if marks.settle(table, old, &mut incoming.row, own, visible) {
                return MarkDecision::Compare { again: true };
            }
        }
        (None, Some(now)) => marks.set(table, &mut incoming.row, now, own, visible),
        (None, None) => {}
    }
    let was_original = incoming.old.is_some() && before.is_none();
    match incoming.row.get(marks.mark) {
        None if !(stays && was_original) => MarkDecision::Publish,
        _ => MarkDecision::Write,
    }
}
