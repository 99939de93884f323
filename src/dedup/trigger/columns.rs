//! What a trigger's arguments name: columns of its table, and the index that finds near-duplicates.
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::arguments::{Action, Arguments};
use super::metric::Metric;
use super::names;
use crate::am::index::{Index, words_of};
use crate::am::keys::{Layout, attribute, hash_of, with_words};
use crate::am::strategies;
use crate::pg::compat;
use crate::pg::errors::UserError;

/// A column of an index, and when its values are equal.
pub struct EqualColumn {
    /// The column of the table, counted from 1; 0 for an expression.
    pub column: i16,
    equality: pg_sys::RegProcedure,
    collation: pg_sys::Oid,
    /// The type of the index's column.
    stored: pg_sys::Oid,
}

impl EqualColumn {
    /// The `i`th column of an open index, by the operator of this strategy.
    ///
    /// # Safety
    /// The index is open, and has so many columns.
    pub unsafe fn of(index: pg_sys::Relation, i: usize, strategy: i16) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let (family, input) = (*(*index).rd_opfamily.add(i), *(*index).rd_opcintype.add(i));
            let operator = pg_sys::get_opfamily_member(family, input, input, strategy);
            EqualColumn {
                column: *(*(*index).rd_index).indkey.values.as_ptr().add(i),
                equality: pg_sys::get_opcode(operator),
                collation: *(*index).rd_indcollation.add(i),
                stored: attribute(index, i).atttypid,
            }
        }
    }

    /// Whether two values of the column are equal.
    ///
    /// # Safety
    /// Both are of the column's type.
    pub unsafe fn equal(&self, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
        // SAFETY: the operator of the index's class for this type.
        unsafe { pg_sys::OidFunctionCall2Coll(self.equality, self.collation, a, b).value() != 0 }
    }

    /// The hash of a value of a scope column, as the index has it: the same for equal values.
    ///
    /// # Safety
    /// The value is of the column's type.
    pub unsafe fn hash(&self, value: pg_sys::Datum) -> u64 {
        // SAFETY: the caller's promise. The index was not made if its type had no hash.
        unsafe { hash_of(self.stored, self.collation, value) }
    }
}

/// The extension's own types, by the schema that it is in.
#[derive(Clone, Copy)]
pub struct Types {
    schema: pg_sys::Oid,
}

impl Types {
    /// By one of the extension's functions.
    pub fn beside(function: pg_sys::Oid) -> Self {
        Types {
            // SAFETY: a catalogue look-up.
            schema: unsafe { pg_sys::get_func_namespace(function) },
        }
    }

    /// The schema.
    pub fn schema(self) -> pg_sys::Oid {
        self.schema
    }

    /// A type's name if it is one of them.
    pub fn name(self, oid: pg_sys::Oid) -> Option<Vec<u8>> {
        // SAFETY: a catalogue look-up; the entry is read before it is released.
        unsafe {
            let cache = pg_sys::SysCacheIdentifier::TYPEOID as i32;
            let tuple = pg_sys::SearchSysCache1(cache, oid.into());
            if tuple.is_null() {
                return None;
            }
            let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_type>();
            let name = CStr::from_ptr(form.typname.data.as_ptr())
                .to_bytes()
                .to_vec();
            let here = form.typnamespace == self.schema;
            pg_sys::ReleaseSysCache(tuple);
            here.then_some(name)
        }
    }

    /// Whether values of a type, or of what a domain is over, are MinHash signatures.
    fn is_signature(self, oid: pg_sys::Oid) -> bool {
        // SAFETY: a catalogue look-up.
        let base = unsafe { pg_sys::getBaseType(oid) };
        self.name(base).as_deref() == Some(b"minhash_signature")
    }
}

/// Columns that a trigger's arguments name, counted from 1.
pub struct NamedColumns {
    pub fingerprint: i16,
    pub text: Option<i16>,
    /// By which rows are named to users.
    pub key: Option<i16>,
    /// Where the key of the row that is repeated goes.
    pub mark: Option<i16>,
    /// The scope, in the order of the arguments.
    pub scope: Vec<i16>,
}

impl NamedColumns {
    /// Finds all of them; raises an error if one is missing.
    ///
    /// # Safety
    /// The relation is open and locked.
    pub unsafe fn find(relation: pg_sys::Relation, arguments: &Arguments) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let column = |name: &CString| column(relation, name);
            let fingerprint = column(&arguments.fingerprint);
            let text = arguments.text.as_ref().map(column);
            let mark = match &arguments.action {
                Action::Mark(name) => Some(column(name)),
                _ => None,
            };
            let key = match &arguments.key {
                Some(name) => Some(column(name)),
                None => primary_key(relation),
            };
            let scope = arguments.scope.iter().map(column).collect();
            if key.is_none() && matches!(arguments.action, Action::Mark(_) | Action::Log(_)) {
                UserError::new(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                    format!(
                        "table \"{}\" has no primary key of one column",
                        table(relation)
                    ),
                )
                .detail("neardup_dedup writes down the key of the row that is repeated.")
                .hint("Name the column that identifies rows, such as 'key=id'.")
                .raise();
            }
            if let (Some(mark), Some(key)) = (mark, key) {
                check_types(relation, mark, key);
            }
            NamedColumns {
                fingerprint,
                text,
                key,
                mark,
                scope,
            }
        }
    }
}

/// Columns of the trigger's table, counted from 1, and the index.
pub struct Columns {
    pub fingerprint: i16,
    pub text: Option<i16>,
    /// By which rows are named to users.
    pub key: Option<i16>,
    /// Where the key of the row that is repeated goes.
    pub mark: Option<i16>,
    /// Within whose equal values rows are compared, in the order of the index's columns.
    pub scope: Vec<EqualColumn>,
    pub index: pg_sys::Oid,
    pub metric: Metric,
}

impl Columns {
    /// Finds all of them; raises an error if one is missing.
    ///
    /// # Safety
    /// The relation is open and locked.
    pub unsafe fn find(relation: pg_sys::Relation, types: Types, arguments: &Arguments) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let NamedColumns {
                fingerprint,
                text,
                key,
                mark,
                scope: wanted,
            } = NamedColumns::find(relation, arguments);
            let form = &*compat::attribute((*relation).rd_att, fingerprint as usize - 1);
            let holds_signatures = types.is_signature(form.atttypid);
            // Whatever index there is: an argument that makes no sense is told first.
            arguments.or_invalid(match holds_signatures {
                true => arguments.near.mismatches(1).map(drop),
                false => arguments.near.bits().map(drop),
            });
            let Some((index, scope, metric)) =
                find_index(relation, fingerprint, &wanted, mark, arguments)
            else {
                no_index(relation, arguments, holds_signatures);
            };
            Columns {
                fingerprint,
                text,
                key,
                mark,
                scope,
                index,
                metric,
            }
        }
    }
}

/// The number of a column by its name.
unsafe fn column(relation: pg_sys::Relation, name: &CStr) -> i16 {
    // SAFETY: a catalogue look-up for an open relation.
    unsafe {
        let number = pg_sys::get_attnum((*relation).rd_id, name.as_ptr());
        if number <= 0 {
            UserError::new(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!(
                    "column \"{}\" of table \"{}\" does not exist",
                    name.to_string_lossy(),
                    table(relation)
                ),
            )
            .detail("An argument of the trigger neardup_dedup names it.")
            .hint("Drop the trigger and create it with the right names.")
            .raise();
        }
        number
    }
}

/// The only column of the primary key.
unsafe fn primary_key(relation: pg_sys::Relation) -> Option<i16> {
    // SAFETY: the relation is open; its indexes are opened with the lock that reading needs.
    unsafe {
        // Also finds the index for RelationGetPrimaryKeyIndex's sake.
        pg_sys::list_free(pg_sys::RelationGetIndexList(relation));
        let oid = (*relation).rd_pkindex;
        if oid == pg_sys::InvalidOid {
            return None;
        }
        let index = pg_sys::index_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let form = &*(*index).rd_index;
        let key = (form.indnkeyatts == 1).then(|| *form.indkey.values.as_ptr());
        pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
        key
    }
}

/// Refuses a column to mark in that does not hold keys.
unsafe fn check_types(relation: pg_sys::Relation, mark: i16, key: i16) {
    // SAFETY: both are columns of the open relation.
    unsafe {
        let type_of =
            |column: i16| (*compat::attribute((*relation).rd_att, column as usize - 1)).atttypid;
        let (mark, key) = (type_of(mark), type_of(key));
        if pg_sys::getBaseType(mark) != pg_sys::getBaseType(key) {
            let name = |oid| CStr::from_ptr(pg_sys::format_type_be(oid)).to_string_lossy();
            UserError::new(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                "the column to mark near-duplicates in is not of the key's type",
            )
            .detail(format!(
                "It is {}, and the key is {}.",
                name(mark),
                name(key)
            ))
            .hint("Give both columns one type.")
            .raise();
        }
    }
}

/// The index that a look goes through, its scope columns, and what near-duplicates are by it: an
/// index with exactly the wanted columns in front.
unsafe fn find_index(
    relation: pg_sys::Relation,
    fingerprint: i16,
    wanted: &[i16],
    mark: Option<i16>,
    arguments: &Arguments,
) -> Option<(pg_sys::Oid, Vec<EqualColumn>, Metric)> {
    // SAFETY: the relation is open, and each of its indexes while it is looked at.
    unsafe {
        let indexes = pg_sys::RelationGetIndexList(relation);
        let mut found = None;
        for i in 0..pg_sys::list_length(indexes) {
            let oid = pg_sys::list_nth_oid(indexes, i);
            let index = pg_sys::index_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            if found.is_none() {
                let fits = fits(index, fingerprint, wanted, mark, arguments);
                found = fits.map(|(scope, metric)| (oid, scope, metric));
            }
            pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
        pg_sys::list_free(indexes);
        found
    }
}

unsafe fn fits(
    index: pg_sys::Relation,
    fingerprint: i16,
    wanted: &[i16],
    mark: Option<i16>,
    arguments: &Arguments,
) -> Option<(Vec<EqualColumn>, Metric)> {
    // SAFETY: the index is open; it has as many columns and classes as its form says.
    unsafe {
        let form = &*(*index).rd_index;
        let access_method = pg_sys::get_am_name((*(*index).rd_rel).relam);
        if access_method.is_null()
            || CStr::from_ptr(access_method) != c"neardup"
            || !form.indisvalid
            || !form.indisready
        {
            return None;
        }
        let columns =
            core::slice::from_raw_parts(form.indkey.values.as_ptr(), form.indnatts as usize);
        let layout = Layout::of(index);
        let (last, front) = columns.split_last()?;
        let same_scope =
            front.len() == wanted.len() && wanted.iter().all(|column| front.contains(column));
        if *last != fingerprint || layout.balls || !same_scope || !covers(index, mark) {
            return None;
        }
        let scope = (0..front.len())
            .map(|i| EqualColumn::of(index, i, strategies::EQUAL as i16))
            .collect();
        Some((scope, metric(index, &layout, arguments)?))
    }
}

/// What near-duplicates are by an index; `None` if it cannot look them up.
unsafe fn metric(
    index: pg_sys::Relation,
    layout: &Layout,
    arguments: &Arguments,
) -> Option<Metric> {
    if !layout.signatures {
        return Some(Metric::Fingerprints {
            words: layout.fingerprint_words,
            radius: arguments.or_invalid(arguments.near.bits()),
        });
    }
    // SAFETY: the index is open.
    let bands = unsafe { with_words!(words_of(index), N => Index::<N>::open(index).bands) }?;
    let hashes = bands.hashes();
    let mismatches = arguments.or_invalid(arguments.near.mismatches(hashes));
    // Beyond it a look would read the whole index.
    (mismatches <= bands.guaranteed()).then_some(Metric::Signatures { hashes, mismatches })
}

/// Whether an index holds all rows that count: all, or where near-duplicates are marked, all that
/// are not marked.
unsafe fn covers(index: pg_sys::Relation, mark: Option<i16>) -> bool {
    // SAFETY: the index is open; the condition is made as the parser makes it.
    unsafe {
        let predicate = pg_sys::RelationGetIndexPredicate(index);
        if predicate.is_null() {
            return true;
        }
        let Some(mark) = mark else {
            return false;
        };
        let table = pg_sys::table_open(
            (*(*index).rd_index).indrelid,
            pg_sys::AccessShareLock as pg_sys::LOCKMODE,
        );
        let column = &*compat::attribute((*table).rd_att, mark as usize - 1);
        let variable = pg_sys::makeVar(
            1,
            mark,
            column.atttypid,
            column.atttypmod,
            column.attcollation,
            0,
        );
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        let test = pg_sys::palloc0(size_of::<pg_sys::NullTest>()).cast::<pg_sys::NullTest>();
        (*test).xpr.type_ = pg_sys::NodeTag::T_NullTest;
        (*test).arg = variable.cast();
        (*test).nulltesttype = pg_sys::NullTestType::IS_NULL;
        (*test).location = -1;
        let condition = pg_sys::lappend(core::ptr::null_mut(), test.cast());
        pg_sys::predicate_implied_by(predicate, condition, false)
    }
}

/// The name of a table, for messages.
pub unsafe fn table<'a>(relation: pg_sys::Relation) -> std::borrow::Cow<'a, str> {
    // SAFETY: the relation is open.
    unsafe { CStr::from_ptr((*(*relation).rd_rel).relname.data.as_ptr()).to_string_lossy() }
}

unsafe fn no_index(relation: pg_sys::Relation, arguments: &Arguments, of_signatures: bool) -> ! {
    // SAFETY: the relation is open, and names are C strings.
    unsafe {
        let quoted = names::shown;
        let schema = pg_sys::get_namespace_name((*(*relation).rd_rel).relnamespace);
        let name = (*(*relation).rd_rel).relname.data.as_ptr();
        let mut columns: Vec<String> = arguments
            .scope
            .iter()
            .map(|name| quoted(name.as_c_str()))
            .collect();
        columns.push(quoted(&arguments.fingerprint));
        let (what, options) = match of_signatures {
            true => {
                let similarity = arguments.near.similarity();
                let wanted = format!("WITH (similarity = {similarity})");
                (
                    format!(" for a similarity of {similarity}"),
                    format!(
                        " {wanted}; and hashes = ... in the brackets unless signatures have 128."
                    ),
                )
            }
            false => (
                String::new(),
                "; with the operator class bigint_hamming_ops behind a bigint column.".to_owned(),
            ),
        };
        UserError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!(
                "table \"{}\" has no neardup index on {}{what}",
                table(relation),
                columns.join(", ")
            ),
        )
        .detail("Without it neardup_dedup would read the whole table for each row.")
        .hint(format!(
            "CREATE INDEX ON {}.{} USING neardup ({}){options}",
            quoted(CStr::from_ptr(schema)),
            quoted(CStr::from_ptr(name)),
            columns.join(", ")
        ))
        .raise()
    }
}
