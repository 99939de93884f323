//! The life of marks, for `action=mark`. A mark names a row that exists and is an original, its own
//! mark being NULL; there are no chains of marks.
//!
//! - The BEFORE trigger locks the original FOR SHARE before it marks a row with its key. Whoever
//!   changes or deletes the original waits for that transaction.
//! - The AFTER trigger sees an original go, change, or become marked itself. It sets the marks
//!   that name it to NULL, one by one in the order of keys, and the BEFORE trigger compares each of
//!   these rows again: the first becomes an original or joins another, and the next ones find it.
//! - A mark that is set by hand is resolved to an original, which is locked in the same way. One
//!   that is taken away by hand stays away, unless it names no original any more: then it is a
//!   foreign key's ON DELETE SET NULL that takes it away, and the row is compared again.
use core::cell::Cell;
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::columns::{NamedColumns, table};
use super::names;
use super::new_row::NewRow;
use super::spi_plans::{self, Sees};
use crate::pg::compat;
use crate::pg::errors::UserError;
use crate::pg::security_context::AsConstraint;

/// Steps from a mark to its original. There are no chains, but marks that were set while the
/// trigger was off may make some.
const LONGEST_CHAIN: usize = 16;

/// The marks of a table: columns, and the statements that read them.
pub struct Marks {
    key: i16,
    pub mark: i16,
    key_type: pg_sys::Oid,
    equality: pg_sys::Oid,
    collation: pg_sys::Oid,
    /// The mark of the row with a key, which gets locked.
    lock: CString,
    /// Whether the row with a key is an original.
    is_original: CString,
    /// Whether there is a row with a key, for a user.
    is_visible: CString,
    /// The rows that are marked with a key.
    pub dependents: CString,
    /// Takes the mark of a row away if it is still this one.
    pub unmark: CString,
}

impl Marks {
    /// # Safety
    /// The relation is open, and the columns are its own.
    pub unsafe fn new(relation: pg_sys::Relation, key: i16, mark: i16) -> Self {
        // SAFETY: the caller's promise; names are C strings, and the cache entry stays.
        unsafe {
            let form = &*compat::attribute((*relation).rd_att, key as usize - 1);
            let wanted = pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_LT_OPR;
            let operators = &*pg_sys::lookup_type_cache(form.atttypid, wanted as i32);
            if operators.eq_opr == pg_sys::InvalidOid {
                let name = CStr::from_ptr(pg_sys::format_type_be(form.atttypid));
                UserError::new(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                    format!("type {} has no equality", name.to_string_lossy()),
                )
                .detail("neardup_dedup looks up rows by their keys.")
                .hint("Name a key of another type.")
                .raise();
            }
            let table = qualified(relation);
            let name = |column: i16| {
                let form = &*compat::attribute((*relation).rd_att, column as usize - 1);
                quoted(CStr::from_ptr(form.attname.data.as_ptr()))
            };
            let (key_name, mark_name) = (name(key), name(mark));
            let equals = operator(operators.eq_opr);
            let order = match operators.lt_opr {
                pg_sys::InvalidOid => Vec::new(),
                _ => [b" ORDER BY ", key_name.as_slice()].concat(),
            };
            let text = |parts: &[&[u8]]| CString::new(parts.concat()).expect("made of C strings");
            let row = [
                b" FROM ONLY ",
                table.as_slice(),
                b" WHERE ",
                &key_name,
                &equals,
                b"$1 LIMIT 1",
            ]
            .concat();
            Marks {
                key,
                mark,
                key_type: form.atttypid,
                equality: pg_sys::get_opcode(operators.eq_opr),
                collation: form.attcollation,
                lock: text(&[b"SELECT ", &mark_name, &row, b" FOR SHARE"]),
                is_original: text(&[b"SELECT ", &mark_name, b" IS NULL", &row]),
                is_visible: text(&[b"SELECT true", &row]),
                dependents: text(&[
                    b"SELECT ctid FROM ONLY ",
                    &table,
                    b" WHERE ",
                    &mark_name,
                    &equals,
                    b"$1",
                    &order,
                ]),
                unmark: text(&[
                    b"UPDATE ONLY ",
                    &table,
                    b" SET ",
                    &mark_name,
                    b" = NULL WHERE ctid OPERATOR(pg_catalog.=) $1 AND ",
                    &mark_name,
                    &equals,
                    b"$2",
                ]),
            }
        }
    }

    /// The marks that named columns are about, if the action is `mark`.
    ///
    /// # Safety
    /// As for [`Self::new`].
    pub unsafe fn of(relation: pg_sys::Relation, columns: &NamedColumns) -> Option<Self> {
        let (key, mark) = (columns.key?, columns.mark?);
        // SAFETY: the caller's promise.
        Some(unsafe { Self::new(relation, key, mark) })
    }

    /// The type of keys and marks, as parameters have it.
    pub fn key_type(&self) -> pg_sys::Oid {
        self.key_type
    }

    /// Whether two keys are equal, as the statements have it.
    ///
    /// # Safety
    /// Both are of the key's type, or NULL.
    pub unsafe fn equal(&self, a: Option<pg_sys::Datum>, b: Option<pg_sys::Datum>) -> bool {
        match (a, b) {
            // SAFETY: the caller's promise.
            (Some(a), Some(b)) => unsafe {
                pg_sys::OidFunctionCall2Coll(self.equality, self.collation, a, b).value() != 0
            },
            (None, None) => true,
            _ => false,
        }
    }

    /// Decides about the mark of a row whose fingerprint and scope stay as they were. True: the row
    /// is to be compared with others.
    ///
    /// # Safety
    /// Both are versions of one row of this relation.
    pub unsafe fn settle(
        &self,
        relation: pg_sys::Relation,
        old: &NewRow,
        row: &mut NewRow,
        visible: impl Fn(pg_sys::Datum) -> bool,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let (before, now) = (old.get(self.mark), row.get(self.mark));
            if self.equal(before, now) {
                return false;
            }
            match (before, now) {
                (Some(before), None) => !self.names_original(relation, before),
                (_, Some(now)) => {
                    let original = self.resolve(relation, now, row.get(self.key));
                    if !self.equal(Some(original), Some(now)) {
                        // The writer has not named this row, and may not know of it.
                        if !visible(original) {
                            hidden(relation);
                        }
                        row.set(self.mark, Some(original));
                    }
                    false
                }
                (None, None) => false,
            }
        }
    }

    /// Whether a key is that of an original.
    unsafe fn names_original(&self, relation: pg_sys::Relation, key: pg_sys::Datum) -> bool {
        // SAFETY: the relation is open, and the key of its column's type.
        unsafe {
            let _owner = AsConstraint::of(relation);
            let parameters = [(self.key_type, key)];
            let found = spi_plans::value(&self.is_original, &parameters);
            found.is_some_and(|original| original.value() != 0)
        }
    }

    /// The key of the original that a mark set by hand leads to. That row is locked.
    unsafe fn resolve(
        &self,
        relation: pg_sys::Relation,
        wanted: pg_sys::Datum,
        own: Option<pg_sys::Datum>,
    ) -> pg_sys::Datum {
        // SAFETY: the relation is open, and keys are of their column's type.
        unsafe {
            let mut key = wanted;
            for _ in 0..LONGEST_CHAIN {
                if self.equal(Some(key), own) {
                    UserError::new(
                        PgSqlErrorCode::ERRCODE_CHECK_VIOLATION,
                        "a row cannot be marked as a near-duplicate of itself",
                    )
                    .detail(
                        "The new mark names the row itself, or a row that is marked with its key.",
                    )
                    .hint("Take the other row's mark away first: it is an original then.")
                    .raise();
                }
                let owner = AsConstraint::of(relation);
                let parameters = [(self.key_type, key)];
                let found = spi_plans::first(&self.lock, &parameters, Sees::Latest);
                drop(owner);
                match found {
                    Some(None) => return key,
                    Some(Some(next)) => key = next,
                    None => UserError::new(
                        PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION,
                        format!("a mark names no row of table \"{}\"", table(relation)),
                    )
                    .detail(format!(
                        "No row has the key ({}).",
                        self.shown(relation, key)
                    ))
                    .hint("Mark the row with the key of an existing row, or with NULL.")
                    .raise(),
                }
            }
            UserError::new(
                PgSqlErrorCode::ERRCODE_CHECK_VIOLATION,
                "a mark leads to no original",
            )
            .detail("The rows from the one that it names on are marked with each other's keys.")
            .hint("Set the mark of one of them to NULL.")
            .raise()
        }
    }

    /// A key for messages.
    unsafe fn shown(&self, relation: pg_sys::Relation, key: pg_sys::Datum) -> String {
        // SAFETY: the relation is open, and the key of its column's type.
        unsafe {
            let form = &*compat::attribute((*relation).rd_att, self.key as usize - 1);
            let (mut output, mut varlena) = (pg_sys::InvalidOid, false);
            pg_sys::getTypeOutputInfo(self.key_type, &mut output, &mut varlena);
            let value = CStr::from_ptr(pg_sys::OidOutputFunctionCall(output, key));
            let name = names::shown(CStr::from_ptr(form.attname.data.as_ptr()));
            format!("{name})=({}", value.to_string_lossy())
        }
    }

    /// Whether row security lets the current user see the row with a key.
    ///
    /// # Safety
    /// The key is of its column's type, and the user may read that column.
    pub unsafe fn is_visible(&self, key: pg_sys::Datum) -> bool {
        // SAFETY: the caller's promise. The row may be younger than the statement.
        unsafe { spi_plans::first(&self.is_visible, &[(self.key_type, key)], Sees::Latest) }
            .is_some()
    }
}

/// Error 23P01 in place of a mark that would tell the key of a row which its writer may not see.
pub unsafe fn hidden(relation: pg_sys::Relation) -> ! {
    // SAFETY: the relation is open.
    let table = unsafe { table(relation) };
    UserError::new(
        PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION,
        format!("near-duplicate of a row in table \"{table}\""),
    )
    .detail("The new row would be marked with the key of a row that you may not read.")
    .hint("Writers need the right to read the keys of originals, or a scope of their own.")
    .raise()
}

/// A row that the AFTER trigger has unmarked for the BEFORE trigger to compare again.
#[derive(Clone, Copy)]
pub struct Recheck {
    table: pg_sys::Oid,
    /// The column of its mark: a table may have triggers with several.
    mark: i16,
    /// Whether the BEFORE trigger has come to it.
    pub taken: bool,
}

thread_local! {
    static RECHECK: Cell<Option<Recheck>> = const { Cell::new(None) };
}

impl Recheck {
    /// Announces a row of a table while `write` runs, which writes it. Returns whether the BEFORE
    /// trigger came to it.
    pub fn announce(table: pg_sys::Oid, mark: i16, write: impl FnOnce()) -> bool {
        /// Puts back what was announced outside, also when an error unwinds.
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

    /// Whether the row of a table that is being written is the announced one, which it is at most
    /// once.
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

/// A table's name with its schema, quoted, in the server's encoding.
///
/// # Safety
/// The relation is open.
pub unsafe fn qualified(relation: pg_sys::Relation) -> Vec<u8> {
    // SAFETY: the caller's promise; both names are C strings.
    unsafe {
        let form = (*relation).rd_rel;
        let schema = pg_sys::get_namespace_name((*form).relnamespace);
        let name = pg_sys::quote_qualified_identifier(schema, (*form).relname.data.as_ptr());
        CStr::from_ptr(name).to_bytes().to_vec()
    }
}

/// A name, quoted if need be, in the server's encoding.
pub fn quoted(name: &CStr) -> Vec<u8> {
    // SAFETY: the server returns the name itself or a new C string.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())) }
        .to_bytes()
        .to_vec()
}

/// An operator with its schema, between blanks.
unsafe fn operator(oid: pg_sys::Oid) -> Vec<u8> {
    // SAFETY: catalogue look-ups of an operator that exists; the entry is read before its release.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::OPEROID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, oid.into());
        if tuple.is_null() {
            spi_plans::failed(c"an operator was dropped");
        }
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_operator>();
        let schema = quoted(CStr::from_ptr(pg_sys::get_namespace_name(
            form.oprnamespace,
        )));
        let name = CStr::from_ptr(form.oprname.data.as_ptr()).to_bytes();
        let text = [b" OPERATOR(", schema.as_slice(), b".", name, b") "].concat();
        pg_sys::ReleaseSysCache(tuple);
        text
    }
}
