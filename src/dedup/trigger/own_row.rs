//! Recognizes existing versions of the row being written: the version that an UPDATE replaces or,
//! for an INSERT, rows that have the same values as the new row in a unique key.
use core::cell::OnceCell;
use std::rc::Rc;

use neardup_blocktree::key::Tid;

use neardup_pg::generated::{GeneratedColumns, PlannedColumns};
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::Rel;
use neardup_pg::slot::Slot;
use neardup_pg::tid::tid_of;
use neardup_pg::unique_keys::UniqueKeys;

/// Plans of all generated columns of a table, made when the first row needs them.
#[derive(Clone, Default)]
pub struct AllPlanned(Rc<OnceCell<PlannedColumns>>);

impl AllPlanned {
    /// Returns whether the plans, if there are any, are still valid.
    pub fn is_valid(&self) -> bool {
        self.0.get().is_none_or(PlannedColumns::is_valid)
    }
}

/// Generated columns of a table, compiled when the first row of a statement needs them.
pub struct Generated {
    planned: AllPlanned,
    compiled: OnceCell<GeneratedColumns>,
}

impl Generated {
    pub fn new(planned: &AllPlanned) -> Self {
        Generated {
            planned: planned.clone(),
            compiled: OnceCell::new(),
        }
    }

    /// Returns the generated columns of a table. Every call must pass the same table.
    pub fn get(&self, table: Rel) -> &GeneratedColumns {
        self.compiled.get_or_init(|| {
            let Some(planned) = self.planned.0.get() else {
                let planned = PlannedColumns::all(table);
                let compiled = planned.compile(table);
                // While planning, the server can call a function that fires this trigger again, so
                // the plans can be there already.
                let _ = self.planned.0.set(planned);
                return compiled;
            };
            planned.compile(table)
        })
    }
}

/// Unique keys and generated columns of a table, prepared when the first row of a statement needs
/// them.
pub struct Keys {
    unique: OnceCell<UniqueKeys>,
    generated: Generated,
}

impl Keys {
    pub fn new(planned: &AllPlanned) -> Self {
        Keys {
            unique: OnceCell::new(),
            generated: Generated::new(planned),
        }
    }

    /// Returns a new row with its generated columns, or `None` if the table has none. Every call
    /// must pass the same table.
    pub fn complete<'a>(&self, table: Rel, row: &NewRow<'a>) -> Option<NewRow<'a>> {
        self.generated.get(table).complete(table, row)
    }
}

/// Rule by which existing rows are recognized as versions of the row being written.
pub enum OwnRow<'a> {
    /// The row at this address: the version that the UPDATE replaces.
    Version(Tid),
    /// Every row that has the same values as this new row in a unique key. ON CONFLICT or a unique
    /// violation handles such a row.
    Key(NewKey<'a>),
}

/// Values of a new row in the unique keys of its table.
pub struct NewKey<'a> {
    table: Rel<'a>,
    row: &'a NewRow<'a>,
    keys: &'a Keys,
    /// The new row with its generated columns, which may be part of keys. `None` if the table has
    /// none.
    complete: OnceCell<Option<NewRow<'a>>>,
}

impl<'a> NewKey<'a> {
    /// Prepares the comparison of existing rows of a table with the unique keys of a new row.
    pub fn new(table: Rel<'a>, row: &'a NewRow<'a>, keys: &'a Keys) -> Self {
        NewKey {
            table,
            row,
            keys,
            complete: OnceCell::new(),
        }
    }

    fn is_key_of(&self, existing: &Slot) -> bool {
        let unique = self.keys.unique.get_or_init(|| UniqueKeys::new(self.table));
        if unique.is_empty() {
            return false;
        }
        let generated = self.keys.generated.get(self.table);
        let complete = self
            .complete
            .get_or_init(|| generated.complete(self.table, self.row));
        unique.any_equal(self.table, existing, complete.as_ref().unwrap_or(self.row))
    }
}

impl OwnRow<'_> {
    /// Returns whether an existing row is the version that the UPDATE replaces. Returns false for
    /// an INSERT.
    pub fn is_version(&self, existing: &Slot) -> bool {
        matches!(self, OwnRow::Version(tid) if *tid == tid_of(existing.address()))
    }

    /// Returns whether an existing row and the row to insert have equal values in a unique key.
    /// Returns false for an UPDATE.
    pub fn has_key_of(&self, existing: &Slot) -> bool {
        matches!(self, OwnRow::Key(key) if key.is_key_of(existing))
    }
}
