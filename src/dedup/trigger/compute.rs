//! The new row's fingerprint: given with the row, computed from its text, or by the expression of
//! a generated column, which the server itself evaluates only after the triggers.
use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use super::arguments::{Arguments, OPTIONS};
use super::columns::{Columns, Types};
use super::generated::{self, GeneratedColumns};
use super::new_row::NewRow;
use super::spi_plans;
use crate::pg::compat;
use crate::pg::errors::UserError;

/// Where fingerprints come from.
pub enum Fingerprints {
    Given,
    /// A statement with the text as its parameter, and the parameter's type.
    OfText(CString, pg_sys::Oid),
    /// The expression of the generated column.
    Generated(GeneratedColumns),
}

impl Fingerprints {
    /// # Safety
    /// The relation is open; the memory context lasts as long as the statement.
    pub unsafe fn of(
        relation: pg_sys::Relation,
        types: Types,
        arguments: &Arguments,
        columns: &Columns,
        memory: pg_sys::MemoryContext,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let column = &*compat::attribute((*relation).rd_att, columns.fingerprint as usize - 1);
            let generated = generated::is_stored(relation, columns.fingerprint);
            match (columns.text, generated) {
                (None, false) => Fingerprints::Given,
                (None, true) => Fingerprints::Generated(GeneratedColumns::of(
                    relation,
                    &[columns.fingerprint],
                    memory,
                )),
                (Some(_), true) => UserError::new(
                    PgSqlErrorCode::ERRCODE_GENERATED_ALWAYS,
                    "a generated fingerprint column is not computed by neardup_dedup as well",
                )
                .detail("The column's own expression makes the fingerprint.")
                .hint("Leave the text's column out of the trigger's arguments.")
                .raise(),
                (Some(text), false) => {
                    let text = &*compat::attribute((*relation).rd_att, text as usize - 1);
                    let Some(parameter) = text_type(text.atttypid) else {
                        UserError::new(
                            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                            "neardup_dedup computes fingerprints of texts only",
                        )
                        .detail(format!(
                            "The column to compute from is of type {}, and not text, varchar, \
                             char, citext or a domain over one of them.",
                            CStr::from_ptr(pg_sys::format_type_be(text.atttypid)).to_string_lossy()
                        ))
                        .hint("Compute the fingerprint yourself, and name only its column.")
                        .raise();
                    };
                    let statement = statement(types, column.atttypid, arguments);
                    Fingerprints::OfText(statement, parameter)
                }
            }
        }
    }

    /// The fingerprint of a row, which gets it if it was computed; `None` for NULL.
    ///
    /// # Safety
    /// The row is of the relation that this was made for.
    pub unsafe fn of_row(&self, row: &mut NewRow, columns: &Columns) -> Option<pg_sys::Datum> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Fingerprints::Given => row.get(columns.fingerprint),
                Fingerprints::OfText(statement, text_type) => {
                    let text = columns.text.and_then(|column| row.get(column));
                    let fingerprint =
                        text.and_then(|text| spi_plans::value(statement, &[(*text_type, text)]));
                    row.set(columns.fingerprint, fingerprint);
                    fingerprint
                }
                Fingerprints::Generated(column) => column.values(row.tuple)[0],
            }
        }
    }
}

/// The type as which a text goes to the function that makes fingerprints of it, which takes text:
/// text itself for types, and domains over types, that are stored alike; `None` if it is no text.
unsafe fn text_type(column: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: catalogue look-ups.
    unsafe {
        let base = pg_sys::getBaseType(column);
        match base {
            // Its cast to text takes the blanks at its end away.
            pg_sys::BPCHAROID => Some(base),
            _ => pg_sys::IsBinaryCoercible(base, pg_sys::TEXTOID).then_some(pg_sys::TEXTOID),
        }
    }
}

/// The statement that makes a fingerprint of this type from a text.
unsafe fn statement(types: Types, fingerprint: pg_sys::Oid, arguments: &Arguments) -> CString {
    // SAFETY: catalogue look-ups, whose results are null or C strings.
    unsafe {
        let schema = types.schema();
        let base = pg_sys::getBaseType(fingerprint);
        let function = match types.name(base).as_deref() {
            Some(b"fingerprint") => c"simhash",
            Some(b"fingerprint128") => c"simhash128",
            Some(b"minhash_signature") => c"minhash",
            _ => UserError::new(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                "neardup_dedup cannot compute this column from a text",
            )
            .detail(format!(
                "It is of type {}; simhash makes a fingerprint, simhash128 a fingerprint128, minhash a minhash_signature.",
                CStr::from_ptr(pg_sys::format_type_be(fingerprint)).to_string_lossy()
            ))
            .hint("Compute it yourself, and name only its column.")
            .raise(),
        };
        let known = parameters(function, schema);
        let mut text = b"SELECT ".to_vec();
        text.extend(quoted(CStr::from_ptr(pg_sys::get_namespace_name(schema))));
        text.push(b'.');
        text.extend(function.to_bytes());
        text.extend(b"($1");
        for (name, value) in &arguments.parameters {
            if !known.contains(name) {
                let known: Vec<_> = known.iter().map(|name| name.to_string_lossy()).collect();
                UserError::invalid_parameter(format!(
                    "neardup_dedup knows no option \"{}\"",
                    name.to_string_lossy()
                ))
                .detail(format!(
                    "The trigger's own options are {}; those of {} are {}.",
                    OPTIONS.join(", "),
                    function.to_string_lossy(),
                    match known.is_empty() {
                        true => "none".to_owned(),
                        false => known.join(", "),
                    }
                ))
                .hint("Drop the trigger and create it with the right options.")
                .raise();
            }
            text.extend(b", ");
            text.extend(quoted(name));
            text.extend(b" => ");
            let literal = pg_sys::quote_literal_cstr(value.as_ptr());
            text.extend(CStr::from_ptr(literal).to_bytes());
        }
        text.push(b')');
        CString::new(text).expect("made of C strings")
    }
}

unsafe fn quoted<'a>(name: &CStr) -> &'a [u8] {
    // SAFETY: a new C string, or the one that was given, which the callers keep.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())).to_bytes() }
}

/// The named parameters, beyond the text itself, of the function that takes a text first.
unsafe fn parameters(function: &CStr, schema: pg_sys::Oid) -> Vec<CString> {
    // SAFETY: a catalogue look-up; entries are read before the list is released.
    unsafe {
        let list = pg_sys::SearchSysCacheList(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            1,
            pg_sys::Datum::from(function.as_ptr()),
            pg_sys::Datum::null(),
            pg_sys::Datum::null(),
        );
        let mut found = Vec::new();
        for i in 0..(*list).n_members {
            let member = *(*list).members.as_ptr().add(i as usize);
            let tuple = &raw mut (*member).tuple;
            let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
            let takes_text =
                form.pronargs > 0 && *form.proargtypes.values.as_ptr() == pg_sys::TEXTOID;
            if form.pronamespace != schema || !takes_text {
                continue;
            }
            let (mut types, mut names, mut modes) = (
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            );
            let count = pg_sys::get_func_arg_info(tuple, &mut types, &mut names, &mut modes);
            if !names.is_null() {
                found.extend((1..count as usize).map(|n| CStr::from_ptr(*names.add(n)).to_owned()));
            }
        }
        pg_sys::ReleaseCatCacheList(list);
        found
    }
}
