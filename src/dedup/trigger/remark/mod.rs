//! `neardup_remark`: sets all marks of a table as the trigger would have set them if the rows had
//! been inserted in the order of their keys, or in the caller's order of preference. The mark of a
//! near-duplicate is the key of its original, which is the row that it repeats.
//!
//! Reads the rows in that order. All originals before a row are then known, and the index contains
//! them without a mark, so one search finds the nearest original. A row without a near original
//! becomes an original. Only rows with a new mark are written. The table is locked against writers,
//! and the triggers `neardup_dedup` ignore the rows that this function writes ([`writes`]).
mod manual;
mod recent;
mod rule;
mod subject;

use core::cell::Cell;
use core::ops::ControlFlow;
use std::ffi::{CStr, CString};

use neardup_blocktree::key::Tid;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::columns::Columns;
use super::compared::ComparedValue;
use super::extension_types::ExtensionTypes;
use super::marks::Marks;
use super::text_comparison::TextComparison;
use super::trigger_arguments::Arguments;
use crate::am::dirty_scan::{DirtyRow, near_rows};
use manual::{Kept, Manual};
use neardup_pg::acl;
use neardup_pg::caller_sql::Condition;
use neardup_pg::catalog;
use neardup_pg::equality::TypeOrder;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::local_rows::{Reader, require_local_rows};
use neardup_pg::memory_context::OwnContext;
use neardup_pg::order_by::OrderBy;
use neardup_pg::rel::{OpenRelation, Rel};
use neardup_pg::security_context::AsConstraint;
use neardup_pg::slot::Slot;
use neardup_pg::spi::{self, Sees};
use neardup_pg::tid::{item_pointer, tid_of};
use neardup_pg::value::{OwnedValue, Value};
use recent::{Original, Recent};
use subject::{Rule, Subject};

export! {
    guarded "neardup_remark" => neardup_remark;
}

/// Lock on the table. It blocks writers and other calls of `neardup_remark`, but not readers.
const LOCK: u32 = pg_sys::ShareRowExclusiveLock;

/// `neardup_remark(relation, trigger_name, manual, keep)`: returns the number of rows with a new
/// mark.
fn neardup_remark(call: &mut Call) -> pg_sys::Datum {
    if call.is_null(0) {
        UserError::null_not_allowed("\"relation\" must not be NULL")
            .hint("Pass a table with a trigger that calls neardup_dedup with action=mark.")
            .raise();
    }
    let (relation, name) = (call.oid(0), call.name(1));
    let manual = call.text(2).map(|text| Condition::parse("manual", &text));
    let keep = call.text(3).map(|list| OrderBy::parse("keep", &list));
    let options = RemarkOptions {
        trigger: name.as_deref(),
        manual: manual.as_ref(),
        keep: keep.as_ref(),
    };
    let kind = catalog::relation_kind(relation);
    if ![pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE].contains(&kind) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a table", catalog::relation_name(relation)),
        )
        .detail("Only a table with a trigger that calls neardup_dedup with action=mark has marks.")
        .raise();
    }
    let types = ExtensionTypes::beside(call.function_oid());
    let open = |oid| {
        acl::check_session_of_owner(oid);
        require_local_rows(oid, Reader::Marks);
        let table = OpenRelation::table(oid, LOCK);
        // The table may have changed its owner before it was locked.
        acl::check_session_of_owner(oid);
        table
    };
    let root = open(relation);
    let changed: u64 = match kind == pg_sys::RELKIND_PARTITIONED_TABLE {
        false => remark(root.rel(), types, options),
        // A mark never names a row of another partition.
        true => (leaves(relation).into_iter())
            .map(|leaf| remark(open(leaf).rel(), types, options))
            .sum(),
    };
    pg_sys::Datum::from(changed as i64)
}

/// Optional arguments of `neardup_remark`.
#[derive(Clone, Copy)]
struct RemarkOptions<'a> {
    /// Name of the trigger whose arguments apply. `None` for the only trigger that marks rows.
    trigger: Option<&'a CStr>,
    /// Condition on the rows whose marks are kept. `None` for the trigger's condition.
    manual: Option<&'a Condition>,
    /// Order in which rows become originals. `None` for the order of their keys.
    keep: Option<&'a OrderBy>,
}

/// Returns the leaf partitions of a table, in the order in which LOCK TABLE locks them.
fn leaves(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    const LEAVES: &CStr = c"SELECT t.relid::pg_catalog.oid
        FROM pg_catalog.pg_partition_tree($1::pg_catalog.regclass) t WHERE t.isleaf ORDER BY 1";
    let mut leaves = Vec::new();
    spi::for_each_row(LEAVES, &[Value::oid(table)], |_, row| {
        leaves.extend(row[0].as_ref().map(|leaf| leaf.get().as_oid()));
    });
    leaves
}

/// Sets the marks of a locked table and returns the number of rows written.
fn remark(table: Rel, types: ExtensionTypes, options: RemarkOptions) -> u64 {
    let trigger = rule::find(table, types, options.trigger);
    let arguments = Arguments::from_trigger(&trigger);
    let columns = Columns::find(table, types, &arguments);
    let of_trigger = arguments.manual.condition();
    let manual = options.manual.or(of_trigger.as_ref());
    if let Some(manual) = manual {
        manual.check(table);
    }
    if let Some(keep) = options.keep {
        keep.check(table);
    }
    let texts = TextComparison::new(table, &trigger, &arguments, &columns);
    let columns = &columns;
    let job = Job::new(table, Rule { columns, texts }, manual, options.keep);
    let _owner = AsConstraint::new(table);
    let mut changed = 0;
    loop {
        let pass = job.pass();
        changed += pass.written;
        match pass {
            Pass { missed: 0, .. } => return changed,
            // Some rows could not be written, because a user's trigger had changed them after the
            // pass read them. Another pass follows.
            Pass { written: 1.., .. } => {
                pgrx::check_for_interrupts!();
            }
            _ => UserError::new(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("could not update a mark in table \"{}\"", table.shown()),
            )
            .detail("Another trigger or a rule prevents the update of a row.")
            .hint("Change that trigger or rule so that it allows updates that set a mark.")
            .raise(),
        }
    }
}

/// Key and address of a row.
#[derive(Clone, Copy)]
struct KeyedRow<'a> {
    key: Value<'a>,
    address: Tid,
}

/// Result of one pass over all rows of a table.
struct Pass {
    /// Number of rows that got a new mark.
    written: u64,
    /// Number of rows whose mark should change, but that could not be written.
    missed: u64,
}

/// Recomputation of the marks of one table.
struct Job<'a> {
    table: Rel<'a>,
    rule: Rule<'a>,
    key: i16,
    mark: i16,
    marks: Marks,
    manual: Manual,
    order: TypeOrder,
    /// Query that reads the address, the columns of [`Manual`], key, mark, fingerprint, scope, time
    /// and compared text of each row, in the order of preference, then in key order.
    read: CString,
    /// Query that returns which of two rows comes first in the order of preference. The parameters
    /// are the addresses of both rows, and the result is one of these addresses. `None` if rows are
    /// in the order of their keys.
    first_of_two: Option<CString>,
    /// Statement that sets the mark of the row at an address.
    set: CString,
    /// Statement that removes the mark of the row at an address.
    clear: CString,
}

impl<'a> Job<'a> {
    fn new(
        table: Rel<'a>,
        rule: Rule<'a>,
        manual: Option<&Condition>,
        keep: Option<&OrderBy>,
    ) -> Self {
        let columns = rule.columns;
        let (key, mark) =
            (columns.key.zip(columns.mark)).expect("both columns are found for this action");
        let attribute = table.attribute(key);
        let Some(order) = TypeOrder::new(attribute.atttypid, attribute.attcollation) else {
            UserError::new(
                PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                format!(
                    "could not identify an ordering operator for type {}",
                    catalog::type_name(attribute.atttypid)
                ),
            )
            .detail("neardup_remark marks rows in the order of their keys.")
            .hint("Use a key of another type.")
            .raise();
        };
        let name = |column| catalog::quoted(&table.column_name(column));
        let text = |parts: &[&[u8]]| CString::new(parts.concat()).expect("made of C strings");
        let (table_name, mark_name) = (table.qualified_name(), name(mark));
        let scope = columns.scope.iter().map(|scope| scope.column);
        let read: Vec<Vec<u8>> = [key, mark, columns.fingerprint]
            .into_iter()
            .chain(scope)
            .chain(columns.time)
            .chain(columns.compared_text)
            .map(name)
            .collect();
        let update = [b"UPDATE ONLY ", table_name.as_slice(), b" SET ", &mark_name].concat();
        let at = b" WHERE ctid OPERATOR(pg_catalog.=) $1";
        let marks = Marks::new(table, key, mark);
        let manual = Manual::new(manual, &marks, [&table_name, &name(key), &mark_name]);
        let order_by = match keep {
            None => name(key),
            Some(keep) => [keep.sql(), name(key)].join(b", ".as_slice()),
        };
        let first_of_two = text(&[
            b"SELECT ctid FROM ONLY ",
            &table_name,
            b" WHERE ctid OPERATOR(pg_catalog.=) ANY (ARRAY[$1, $2]) ORDER BY ",
            &order_by,
            b" LIMIT 1",
        ]);
        Job {
            first_of_two: keep.map(|_| first_of_two),
            table,
            rule,
            key,
            mark,
            marks,
            order,
            read: text(&[
                b"SELECT ctid, ",
                &manual.columns,
                b", ",
                &read.join(b", ".as_slice()),
                b" FROM ONLY ",
                &table_name,
                b" ORDER BY ",
                &order_by,
            ]),
            set: text(&[&update, b" = $2", at]),
            clear: text(&[&update, b" = NULL", at]),
            manual,
        }
    }

    /// Reads all rows in the order of preference (the key order by default), and writes the marks
    /// that change. Returns the numbers of rows written and missed.
    fn pass(&self) -> Pass {
        let mut pass = Pass {
            written: 0,
            missed: 0,
        };
        let mut recent = Recent::default();
        spi::for_each_row(&self.read, &[], |connection, row| {
            let [
                Some(address),
                kept,
                named,
                key,
                mark,
                fingerprint,
                others @ ..,
            ] = row
            else {
                return;
            };
            let (scope, others) = others.split_at(self.rule.columns.scope.len());
            let (time, text) = others.split_at(usize::from(self.rule.columns.window.is_some()));
            let [time, text] = [time, text].map(|value| value.first().and_then(Option::as_ref));
            let is_true = |value: &Option<OwnedValue>| {
                value.as_ref().is_some_and(|value| value.get().as_bool())
            };
            let mark = mark.as_ref().map(OwnedValue::get);
            let scope: Option<Vec<OwnedValue>> = scope.iter().cloned().collect();
            let time = match &self.rule.columns.window {
                None => Some(None),
                Some(window) => window.span(time.map(OwnedValue::get)).map(Some),
            };
            let compared = fingerprint.clone().zip(scope).zip(time);
            let value = compared.map(|((fingerprint, scope), time)| ComparedValue {
                fingerprint,
                scope,
                time,
            });
            let flags = [is_true(kept), is_true(named)];
            let original = key.as_ref().and_then(|key| {
                // This context frees the memory of each comparison.
                let context = OwnContext::new(c"neardup remark");
                let subject = || self.rule.subject(value?, text.map(OwnedValue::get));
                let own = KeyedRow {
                    key: key.get(),
                    address: address.as_tid(),
                };
                context.run(|| self.wanted(&mut recent, own, mark, flags, subject))
            });
            let wanted = original.as_ref().map(OwnedValue::get);
            if self.marks.equal(mark, wanted) {
                return;
            }
            match self.write(connection, address.as_tid(), wanted) {
                true => pass.written += 1,
                false => pass.missed += 1,
            }
        });
        pass
    }

    /// Returns the mark that a row should have, or `None` for an original. `own` has the key and
    /// the address of the row, `mark` is the row's present mark, and `flags` are the values of
    /// [`Manual::columns`]. `subject` returns the values by which the row is compared, or `None`
    /// for a row that cannot be near any row. `recent` is the cache of nearest originals, to which
    /// this function adds the row if it is compared or becomes an original.
    fn wanted(
        &self,
        recent: &mut Recent,
        own: KeyedRow,
        mark: Option<Value>,
        flags: [bool; 2],
        subject: impl FnOnce() -> Option<Subject>,
    ) -> Option<OwnedValue> {
        match self.manual.decide(flags, &self.marks, own.key, mark) {
            Kept::Mark(mark) => Some(mark),
            Kept::Original => {
                recent.add(subject()?, own.key, &self.rule);
                None
            }
            Kept::No => self.original(recent, own, subject()?),
        }
    }

    /// Returns the key of the nearest original that precedes a row in the order of preference, or
    /// `None` if the row becomes an original. Of equally near originals, returns the first in that
    /// order.
    fn original(&self, recent: &mut Recent, own: KeyedRow, subject: Subject) -> Option<OwnedValue> {
        if let Some(original) = recent.get(&subject, &self.rule) {
            return Some(original.key);
        }
        let Some(original) = self.look_up(own, &subject) else {
            recent.add(subject, own.key, &self.rule);
            return None;
        };
        recent.put(subject, original.clone());
        Some(original.key)
    }

    /// Finds the nearest original of a row in the index. Considers only originals that precede the
    /// row in the order of preference.
    fn look_up(&self, own: KeyedRow, subject: &Subject) -> Option<Original> {
        let columns = self.rule.columns;
        let metric = &columns.metric;
        let scope = subject.value.scope_values();
        let mut best: Option<(Original, Tid)> = None;
        let each = |row: DirtyRow| {
            let Some((distance, key)) = self.candidate(row.slot, &subject.value) else {
                return ControlFlow::Continue(());
            };
            let farther = (best.as_ref()).is_some_and(|(best, _)| best.distance < distance);
            if farther && metric.can_order() {
                return ControlFlow::Break(());
            }
            let is_better = best.as_ref().is_none_or(|(best, address)| {
                let best_row = KeyedRow {
                    key: best.key.get(),
                    address: *address,
                };
                distance < best.distance
                    || distance == best.distance && self.is_before(row.slot, key, best_row)
            });
            // Skips rows after this row in the order, because their marks are not decided yet.
            // Texts are compared last, because that takes the most time.
            if is_better
                && self.is_before(row.slot, key, own)
                && self.rule.confirms(subject, row.slot)
            {
                let key = key.to_owned();
                best = Some((Original { distance, key }, tid_of(row.slot.address())));
            }
            ControlFlow::Continue(())
        };
        let (index, within) = (columns.index, (metric, columns.limit));
        let center = subject.value.fingerprint.get();
        near_rows(self.table, index, within, &scope, center, |_| {}, each);
        best.map(|(original, _)| original)
    }

    /// Returns whether the existing row `row`, whose key is `key`, precedes the row `other` in the
    /// order of preference.
    fn is_before(&self, row: &Slot, key: Value, other: KeyedRow) -> bool {
        let Some(statement) = &self.first_of_two else {
            return self.order.is_before(key, other.key);
        };
        let rows = [row.address(), item_pointer(other.address)];
        let first = spi::first(statement, &rows.each_ref().map(Value::tid), Sees::Latest);
        let first = first.flatten().map(|first| first.get().as_tid());
        first.is_some_and(|first| first != other.address)
    }

    /// Returns the distance and the key of an existing row if it has no mark and is near `value`.
    fn candidate<'s>(&self, row: &'s Slot, value: &ComparedValue) -> Option<(u32, Value<'s>)> {
        let key = row.get(self.key)?;
        if row.get(self.mark).is_some() {
            return None;
        }
        Some((value.distance_to_row(row, self.rule.columns)?, key))
    }

    /// Writes the mark of the row at an address. Returns false if there is no such row, or the row
    /// could not be written.
    fn write(&self, connection: &spi::Connection, row: Tid, mark: Option<Value>) -> bool {
        let address = item_pointer(row);
        let _announced = Announced::row(self.table, self.mark, row);
        let address = Value::tid(&address);
        let written = match mark {
            Some(mark) => connection.update_as_constraint(&self.set, &[address, mark]),
            None => connection.update_as_constraint(&self.clear, &[address]),
        };
        written > 0
    }
}

thread_local! {
    /// Row that `neardup_remark` is writing: table, mark column and old address.
    static WRITTEN: Cell<Option<(pg_sys::Oid, i16, Tid)>> = const { Cell::new(None) };
}

/// Announcement to the triggers that `neardup_remark` is writing a row. It ends when this value is
/// dropped, also if an error unwinds. The field has the previous announcement, which Drop restores,
/// because a trigger may call `neardup_remark` for another table.
struct Announced(Option<(pg_sys::Oid, i16, Tid)>);

impl Announced {
    fn row(table: Rel, mark: i16, row: Tid) -> Self {
        Announced(WRITTEN.replace(Some((table.oid(), mark, row))))
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        WRITTEN.set(self.0);
    }
}

/// Returns whether `neardup_remark` is replacing the row version at an address. If so, the triggers
/// leave the decision about the mark to `neardup_remark`.
pub fn writes(table: Rel, mark: i16, row: Tid) -> bool {
    WRITTEN.get() == Some((table.oid(), mark, row))
}
