//! Marks of `action=mark`. The mark of a near-duplicate is the key of its original, which is the
//! row that it repeats. An original has no mark (NULL), so the triggers make no chains of marks. A
//! mark "names" the row with that key.
//!
//! - The BEFORE trigger locks the original FOR KEY SHARE before it marks a row with its key. A
//!   session that deletes the original waits for that transaction, as with a foreign key. So does
//!   an UPDATE of the original's fingerprint, scope, key or mark, because the triggers then lock
//!   the original FOR UPDATE. Other UPDATEs do not wait.
//! - The AFTER trigger handles originals that are deleted, changed or marked. It sets the marks
//!   that name the original to NULL, one by one in key order, and the BEFORE trigger compares each
//!   of these rows again. The first row becomes an original or joins another, and the next rows
//!   find it.
//! - A mark that a statement sets is resolved to an original, which is locked in the same way. A
//!   mark that a statement removes stays removed, unless it does not name an original any more.
//!   Then a foreign key's ON DELETE SET NULL has removed it, and the row is compared again. With
//!   `manual=false` the row keeps its previous mark while that mark names an original. With
//!   `manual=<condition>` this rule applies to rows that do not meet the condition (`by_hand`).
use core::cell::Cell;
use std::ffi::CString;

use neardup_blocktree::key::Tid;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::columns::NamedColumns;
use super::names;
use neardup_pg::catalog;
use neardup_pg::equality::TypeEquality;
use neardup_pg::errors::UserError;
use neardup_pg::new_row::NewRow;
use neardup_pg::rel::Rel;
use neardup_pg::row_lock::{self, Version};
use neardup_pg::security_context::AsConstraint;
use neardup_pg::spi::{self, Sees};
use neardup_pg::tid::item_pointer;
use neardup_pg::value::{OwnedValue, Value};

/// Maximum number of rows read to follow marks from a key to an original. A longer chain is treated
/// like a circle, which leads to no original. Chains of marks exist only if marks were set while
/// the trigger was disabled.
pub const LONGEST_CHAIN: usize = 16;

/// Reason why a mark does not lead to an original.
pub enum NoOriginal {
    /// The mark leads to the row that would get the mark.
    Itself,
    /// No row has this key. The key is the mark itself, or a later mark in the chain.
    Missing(OwnedValue),
    /// The chain of marks is a circle, or longer than [`LONGEST_CHAIN`] rows.
    Circle,
}

/// Key and mark columns of a table, and the statements of `action=mark` that read and write marks.
pub struct Marks {
    /// Attribute number of the key column.
    key: i16,
    /// Attribute number of the mark column.
    pub mark: i16,
    /// Equality of the key type, which is also the type of marks.
    equality: TypeEquality,
    /// Equality operator of the key type in SQL, with a blank on each side.
    pub equals: Vec<u8>,
    /// Statement that reads the address and the mark of the row with a given key, and locks the
    /// row.
    lock: CString,
    /// Statement that reads the address of the row with a given key.
    address: CString,
    /// Statement that reads whether the row with a given key is an original.
    is_original: CString,
    /// Statement that finds the row with a given key if row security lets the current user see it.
    is_visible: CString,
    /// Statement that reads the addresses of the rows that are marked with a given key, in the
    /// order of their own keys.
    dependents: CString,
    /// Statement that reads the row at a given address as one composite value.
    whole_row: CString,
    /// Statement that removes the mark of the row at a given address, if the mark still names a
    /// given key.
    unmark: CString,
}

/// Raises an error: the key type has no equality operator.
fn raise_without_equality(key_type: pg_sys::Oid) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
        format!(
            "could not identify an equality operator for type {}",
            catalog::type_name(key_type)
        ),
    )
    .detail("neardup_dedup looks up rows by their keys.")
    .hint("Use a key of another type.")
    .raise()
}

impl Marks {
    /// Prepares the statements for a table. `key` and `mark` are the attribute numbers of its key
    /// and mark columns.
    pub fn new(table: Rel, key: i16, mark: i16) -> Self {
        let attribute = table.attribute(key);
        let key_type = attribute.atttypid;
        let (equality, equals) = TypeEquality::new(key_type, attribute.attcollation)
            .unwrap_or_else(|| raise_without_equality(key_type));
        let name = |column| catalog::quoted(&table.column_name(column));
        let (key_name, mark_name) = (name(key), name(mark));
        let equals = operator(equals);
        let order = match catalog::default_operators(key_type).1 {
            None => Vec::new(),
            Some(_) => [b" ORDER BY ", key_name.as_slice()].concat(),
        };
        let text = |parts: &[&[u8]]| CString::new(parts.concat()).expect("made of C strings");
        let table_name = table.qualified_name();
        let row = [
            b" FROM ONLY ",
            table_name.as_slice(),
            b" WHERE ",
            &key_name,
            &equals,
            b"$1 LIMIT 1",
        ]
        .concat();
        Marks {
            key,
            mark,
            equality,
            lock: text(&[b"SELECT ctid, ", &mark_name, &row, b" FOR KEY SHARE"]),
            address: text(&[b"SELECT ctid", &row]),
            is_original: text(&[b"SELECT ", &mark_name, b" IS NULL", &row]),
            is_visible: text(&[b"SELECT true", &row]),
            dependents: text(&[
                b"SELECT ctid FROM ONLY ",
                &table_name,
                b" WHERE ",
                &mark_name,
                &equals,
                b"$1",
                &order,
            ]),
            whole_row: text(&[
                b"SELECT neardup_row FROM ONLY ",
                &table_name,
                b" AS neardup_row WHERE ctid OPERATOR(pg_catalog.=) $1",
            ]),
            unmark: text(&[
                b"UPDATE ONLY ",
                &table_name,
                b" SET ",
                &mark_name,
                b" = NULL WHERE ctid OPERATOR(pg_catalog.=) $1 AND ",
                &mark_name,
                &equals,
                b"$2",
            ]),
            equals,
        }
    }

    /// Prepares the statements for the columns that a trigger names. Returns `None` if the key or
    /// the mark column is missing, as for actions other than `mark`.
    pub fn from_columns(table: Rel, columns: &NamedColumns) -> Option<Self> {
        Some(Self::new(table, columns.key?, columns.mark?))
    }

    /// Returns a key or a mark as a value of the key type. The type of the mark column may be a
    /// domain over the key type, or the reverse.
    pub fn keyed<'v>(&self, value: Value<'v>) -> Value<'v> {
        value.relabelled(self.equality.type_oid())
    }

    /// Returns whether two keys or marks are equal by the operator that the statements use.
    pub fn equal(&self, a: Option<Value>, b: Option<Value>) -> bool {
        let [a, b] = [a, b].map(|value| value.map(|value| self.keyed(value)));
        self.equality.equal(a, b)
    }

    /// Applies the mark that an UPDATE sets in a row. `old` is the version that the UPDATE
    /// replaces, and `row` is the new version. `own` is the row's key. If the UPDATE sets a new
    /// mark, [`Marks::set`] replaces it by the key of the original that it leads to. For this,
    /// `visible` returns whether the current user may read the key of another row.
    ///
    /// Returns true if the UPDATE sets the mark to NULL, and the mark of `old` does not name an
    /// original any more. The row may then be a near-duplicate of another original, so the caller
    /// must compare it with other rows. Returns false in all other cases.
    pub fn settle(
        &self,
        table: Rel,
        old: &NewRow,
        row: &mut NewRow,
        own: Option<Value>,
        visible: impl Fn(Value) -> bool,
    ) -> bool {
        let (before, now) = (old.get(self.mark), row.get(self.mark));
        if self.equal(before, now) {
            return false;
        }
        match (before, now) {
            (Some(before), None) => !self.names_original(table, before),
            (_, Some(now)) => {
                self.set(table, row, now, own, visible);
                false
            }
            (None, None) => false,
        }
    }

    /// Gives the new version `row` the mark of the version `old`, and returns true. If that mark
    /// does not name an original any more, does nothing and returns false. The original needs no
    /// lock: a session that changes the original finds this row by the stored mark, and waits for
    /// this row.
    pub fn keep(&self, table: Rel, old: &NewRow, row: &mut NewRow) -> bool {
        let before = old.get(self.mark);
        if before.is_some_and(|before| !self.names_original(table, before)) {
            return false;
        }
        row.set(self.mark, before);
        true
    }

    /// Returns whether the row with the key `key` exists and is an original. Reads the latest data,
    /// which the statement's snapshot may not see: the statement may have waited for a transaction
    /// that changed the mark.
    fn names_original(&self, table: Rel, key: Value) -> bool {
        let _owner = AsConstraint::new(table);
        let found = spi::first(&self.is_original, &[self.keyed(key)], Sees::Latest);
        found
            .flatten()
            .is_some_and(|original| original.get().as_bool())
    }

    /// Locks the row with the key `key` against deletion and against changes that affect marks, and
    /// returns its mark, which is `Some(None)` for an original. Returns `None` if there is no such
    /// row.
    fn lock(&self, table: Rel, key: Value) -> Option<Option<OwnedValue>> {
        loop {
            let owner = AsConstraint::new(table);
            let [address, mark] = spi::row(&self.lock, &[key], Sees::Latest)?;
            drop(owner);
            let address = address.expect("each row has an address").as_tid();
            // The version that was read may have been replaced while this session waited for the
            // lock. In REPEATABLE READ and SERIALIZABLE the next attempt raises error 40001.
            if row_lock::is_current(table, item_pointer(address)) {
                return Some(mark);
            }
            pgrx::check_for_interrupts!();
        }
    }

    /// Returns the current version of the row with the key `key`, or `None` if there is no such
    /// row.
    pub fn row_with<'a>(&self, table: Rel<'a>, key: Value) -> Option<Version<'a>> {
        let owner = AsConstraint::new(table);
        let address = spi::first(&self.address, &[self.keyed(key)], Sees::Latest);
        drop(owner);
        Version::fetch(table, item_pointer(address.flatten()?.as_tid()))
    }

    /// Resolves a mark that a statement sets to the key of an original, and locks the original.
    /// `own` is the key of the row to be marked. Raises an error if the mark does not lead to an
    /// original.
    fn resolve(&self, table: Rel, wanted: Value, own: Option<Value>) -> OwnedValue {
        match self.follow(table, wanted, own) {
            Ok(original) => original,
            Err(NoOriginal::Itself) => UserError::new(
                PgSqlErrorCode::ERRCODE_CHECK_VIOLATION,
                "a row cannot be marked as a near-duplicate of itself",
            )
            .detail(
                "The new mark is the key of this row, or of a row that is marked as a \
                 near-duplicate of this row.",
            )
            .hint("To make the other row an original, remove its mark first.")
            .raise(),
            Err(NoOriginal::Missing(key)) => UserError::new(
                PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION,
                format!(
                    "mark does not reference a row of table \"{}\"",
                    table.shown()
                ),
            )
            .detail(format!(
                "No row has the key ({})=({}).",
                names::shown(&table.column_name(self.key)),
                key.get().output()
            ))
            .hint("Set the mark to the key of an existing row, or to NULL.")
            .raise(),
            Err(NoOriginal::Circle) => UserError::new(
                PgSqlErrorCode::ERRCODE_CHECK_VIOLATION,
                "mark does not lead to an original",
            )
            .detail(
                "The mark is the key of a marked row. The chain of marks from that row ends in a \
                 cycle.",
            )
            .hint("Set the mark of one row in the cycle to NULL.")
            .raise(),
        }
    }

    /// Follows marks from the row with the key `first` to an original, locks the original and
    /// returns its key. `own` is the key of the row to be marked. The error is the reason why the
    /// marks do not lead to an original.
    pub fn follow(
        &self,
        table: Rel,
        first: Value,
        own: Option<Value>,
    ) -> Result<OwnedValue, NoOriginal> {
        let mut key = self.keyed(first).to_owned();
        for _ in 0..LONGEST_CHAIN {
            if self.equal(Some(key.get()), own) {
                return Err(NoOriginal::Itself);
            }
            match self.lock(table, key.get()) {
                Some(None) => return Ok(key),
                Some(Some(next)) => key = self.keyed(next.get()).to_owned(),
                None => return Err(NoOriginal::Missing(key)),
            }
        }
        Err(NoOriginal::Circle)
    }

    /// Follows the mark `wanted`, which a statement sets, to an original. Marks `row` with the key
    /// of that original. `own` is the row's key. `visible` returns whether the current user may
    /// read the key of another row. If `wanted` is the key of a marked row, it leads to an original
    /// with another key, which the mark reveals. In this case, raises an error unless the user may
    /// read that key.
    pub fn set(
        &self,
        table: Rel,
        row: &mut NewRow,
        wanted: Value,
        own: Option<Value>,
        visible: impl Fn(Value) -> bool,
    ) {
        let original = self.resolve(table, wanted, own);
        if !self.equal(Some(original.get()), Some(wanted)) {
            // The statement has not named this original, so the writer may not know of it.
            if !visible(original.get()) {
                hidden(table);
            }
            row.set(self.mark, Some(original.get()));
        }
    }

    /// Returns whether `test` is true for any row that is marked with `key`. Passes the whole row
    /// to `test`, which runs as the current user.
    pub fn any_dependent(&self, table: Rel, key: Value, test: impl Fn(Value) -> bool) -> bool {
        let owner = AsConstraint::new(table);
        let mut rows = Vec::new();
        self.for_each_dependent(key, |_, row| rows.push(row));
        drop(owner);
        rows.into_iter().any(|row| {
            pgrx::check_for_interrupts!();
            let owner = AsConstraint::new(table);
            let address = item_pointer(row);
            let found = spi::first(&self.whole_row, &[Value::tid(&address)], Sees::Latest);
            drop(owner);
            found.flatten().is_some_and(|row| test(row.get()))
        })
    }

    /// Returns whether row security lets the current user see the row with the key `key`. The
    /// caller checks the privilege on the key column.
    pub fn is_visible(&self, key: Value) -> bool {
        // The row may be newer than the statement's snapshot.
        spi::first(&self.is_visible, &[self.keyed(key)], Sees::Latest).is_some()
    }

    /// Calls `unmark` for each row that is marked with `key`, one row at a time. Passes the address
    /// of the row, and the connection by which `unmark` can write the row.
    pub fn for_each_dependent(&self, key: Value, unmark: impl FnMut(&spi::Connection, Tid)) {
        spi::for_each_address(&self.dependents, &[self.keyed(key)], unmark);
    }

    /// Removes the mark of the row at an address if the mark still names `key`. Returns false if
    /// there is no such row with that mark.
    pub fn unmark(
        &self,
        connection: &spi::Connection,
        row: &pg_sys::ItemPointerData,
        key: Value,
    ) -> bool {
        let parameters = [Value::tid(row), self.keyed(key)];
        connection.update_as_constraint(&self.unmark, &parameters) > 0
    }
}

/// Raises error 23P01, because the mark would reveal the key of a row that the writer may not see.
pub fn hidden(table: Rel) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION,
        format!("near-duplicate of a row in table \"{}\"", table.shown()),
    )
    .detail("The new row would be marked with the key of a row that you may not read.")
    .hint(
        "Grant the role the right to read the keys of original rows. Or add a scope column, so \
         that rows are compared only with rows that the role may read.",
    )
    .raise()
}

/// Announcement of a row whose mark the AFTER trigger is removing, so that the BEFORE trigger
/// compares the row again.
#[derive(Clone, Copy)]
pub struct Recheck {
    table: pg_sys::Oid,
    /// Attribute number of the mark column. A table may have triggers with different mark columns.
    mark: i16,
    /// True after the BEFORE trigger has seen this announcement for the row.
    pub taken: bool,
}

thread_local! {
    static RECHECK: Cell<Option<Recheck>> = const { Cell::new(None) };
}

impl Recheck {
    /// Announces a row of a table to the BEFORE trigger while `write` removes the row's mark.
    /// Returns whether the BEFORE trigger received the row.
    pub fn announce(table: pg_sys::Oid, mark: i16, write: impl FnOnce()) -> bool {
        /// Restores the outer announcement, also when an error unwinds.
        struct Restore(Option<Recheck>);
        impl Drop for Restore {
            fn drop(&mut self) {
                RECHECK.set(self.0);
            }
        }
        let outer = Restore(RECHECK.replace(Some(Recheck {
            table,
            mark,
            taken: false,
        })));
        write();
        let taken = RECHECK.get().is_some_and(|recheck| recheck.taken);
        drop(outer);
        taken
    }

    /// Returns whether the row that the BEFORE trigger handles is the announced row. `table` is the
    /// table of the row, and `mark` is the number of the trigger's mark column. Returns true at
    /// most once for each announcement.
    pub fn take(table: pg_sys::Oid, mark: i16) -> bool {
        match RECHECK.get() {
            Some(recheck) if recheck.table == table && recheck.mark == mark && !recheck.taken => {
                RECHECK.set(Some(Recheck {
                    taken: true,
                    ..recheck
                }));
                true
            }
            _ => false,
        }
    }
}

/// Returns an operator in SQL, with its schema and with a blank on each side.
fn operator(oid: pg_sys::Oid) -> Vec<u8> {
    match catalog::operator_text(oid) {
        Some(text) => [b" ", text.as_slice(), b" "].concat(),
        None => spi::failed(c"an operator was dropped"),
    }
}
