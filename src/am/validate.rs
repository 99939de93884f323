//! The operators that an operator class may have, and `amvalidate`, which checks them.
//!
//! There are four kinds of classes: for fingerprints, for balls (whose centres are stored, for
//! constraints of any radius), for MinHash signatures, and for the columns of a scope, which are
//! compared for equality.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::strategies::{DISTANCE, EQUAL, NEAR, WITHIN};
use crate::pg::errors::UserError;

/// The operators of a family.
fn members(family: pg_sys::Oid) -> Vec<pg_sys::FormData_pg_amop> {
    // SAFETY: a look-up in the catalogue cache, whose entries are copied before it is released.
    unsafe {
        let list = pg_sys::SearchSysCacheList(
            pg_sys::SysCacheIdentifier::AMOPSTRATEGY as i32,
            1,
            pg_sys::Datum::from(family),
            pg_sys::Datum::from(0),
            pg_sys::Datum::from(0),
        );
        let forms = (0..(*list).n_members)
            .map(|i| {
                let member = *(*list).members.as_ptr().add(i as usize);
                *pg_sys::GETSTRUCT(&raw mut (*member).tuple).cast::<pg_sys::FormData_pg_amop>()
            })
            .collect();
        pg_sys::ReleaseCatCacheList(list);
        forms
    }
}

/// The operator `<@` of a family with a type on its left; InvalidOid if it has none.
pub fn ball_operator(family: pg_sys::Oid, input: pg_sys::Oid) -> pg_sys::Oid {
    operator(family, input, WITHIN)
}

/// The equalities of a family with a type on their left, each with the type on its right.
pub fn equalities(family: pg_sys::Oid, input: pg_sys::Oid) -> Vec<(pg_sys::Oid, pg_sys::Oid)> {
    let members = members(family);
    let wanted = |form: &&pg_sys::FormData_pg_amop| {
        form.amopstrategy == EQUAL as i16 && form.amoplefttype == input
    };
    let found = members.iter().filter(wanted);
    found
        .map(|form| (form.amopopr, form.amoprighttype))
        .collect()
}

/// Returns whether a family has `~=` for a type.
pub fn compares_nearness(family: pg_sys::Oid, input: pg_sys::Oid) -> bool {
    operator(family, input, NEAR) != pg_sys::InvalidOid
}

fn operator(family: pg_sys::Oid, input: pg_sys::Oid, strategy: u16) -> pg_sys::Oid {
    members(family)
        .iter()
        .find(|form| form.amopstrategy == strategy as i16 && form.amoplefttype == input)
        .map_or(pg_sys::InvalidOid, |form| form.amopopr)
}

/// Kind of an operator class.
#[derive(Clone, Copy)]
enum ClassKind {
    /// Values of so many bytes.
    Fingerprint(i16),
    /// Balls around values of so many bytes.
    Ball(i16),
    /// MinHash signatures.
    Signature,
    Scope,
}

/// Checks an operator class: its type, and each operator's strategy and types.
pub unsafe fn validate(opclass: pg_sys::Oid) -> bool {
    // SAFETY: the server calls within a transaction.
    let problems = unsafe { problems(opclass) };
    for (what, object) in &problems {
        // As INFO, as the server's own access methods tell it.
        pgrx::info!("neardup: {what} (object {})", object.to_u32());
    }
    problems.is_empty()
}

/// Raises an error unless the operator classes of an index are what the access method can use: with
/// others it would take values for what they are not.
///
/// # Safety
/// The relation is an open index of this access method.
pub unsafe fn require_valid_classes(index: pg_sys::Relation) {
    // SAFETY: the caller's promise; names of what exists are C strings.
    unsafe {
        for column in 1..=i32::from((*(*index).rd_att).natts as i16) {
            let opclass = pg_sys::get_index_column_opclass((*index).rd_id, column);
            if let Some((what, _)) = problems(opclass).first() {
                UserError::new(
                    PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
                    format!("operator class of column {column} is incomplete"),
                )
                .detail(format!("neardup: {what}."))
                .hint(
                    "SELECT amvalidate(oid) FROM pg_opclass checks operator classes. \
                   Name one that comes with neardup.",
                )
                .raise();
            }
        }
    }
}

/// Returns the defects of an operator class, each with the object that has it.
unsafe fn problems(opclass: pg_sys::Oid) -> Vec<(&'static str, pg_sys::Oid)> {
    // SAFETY: within a transaction; the cache entry is released when it is read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(
            pg_sys::SysCacheIdentifier::CLAOID as i32,
            pg_sys::Datum::from(opclass),
        );
        if tuple.is_null() {
            panic!(
                "cache lookup failed for operator class {}",
                opclass.to_u32()
            );
        }
        let form = *pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_opclass>();
        pg_sys::ReleaseSysCache(tuple);

        let (input, stored) = (form.opcintype, form.opckeytype);
        let members = members(form.opcfamily);
        let has = |strategy: u16| {
            let fits = |form: &&pg_sys::FormData_pg_amop| form.amoplefttype == input;
            members
                .iter()
                .filter(fits)
                .any(|form| form.amopstrategy == strategy as i16)
        };
        let kind = if stored != pg_sys::InvalidOid {
            ClassKind::Ball(pg_sys::get_typlen(stored))
        } else if has(WITHIN) && pg_sys::get_typlen(input) == -1 {
            ClassKind::Signature
        } else if has(WITHIN) {
            ClassKind::Fingerprint(pg_sys::get_typlen(input))
        } else {
            ClassKind::Scope
        };
        let mut problems: Vec<(&'static str, pg_sys::Oid)> = members
            .iter()
            .filter_map(|form| Some((problem(form, kind)?, form.amopopr)))
            .collect();
        match kind {
            ClassKind::Fingerprint(size) if !matches!(size, 8 | 16 | 32) => {
                problems.push(("operator class is for a type of an unknown width", opclass));
            }
            ClassKind::Ball(size) if pg_sys::get_typlen(input) != size + 8 => {
                problems.push((
                    "operator class stores what is not its balls' centre",
                    opclass,
                ));
            }
            ClassKind::Ball(_) if !has(NEAR) => {
                problems.push(("operator class lacks the operator ~= (strategy 2)", opclass));
            }
            ClassKind::Scope if !has(EQUAL) => {
                problems.push(("operator class lacks the operator = (strategy 3)", opclass));
            }
            _ => (),
        }
        problems
    }
}

/// Returns the defect of an operator in one of the four kinds of operator class.
unsafe fn problem(form: &pg_sys::FormData_pg_amop, kind: ClassKind) -> Option<&'static str> {
    let strategy = u16::try_from(form.amopstrategy).unwrap_or(0);
    let same = form.amoprighttype == form.amoplefttype;
    let sound = match (kind, strategy) {
        (ClassKind::Fingerprint(size), WITHIN) => {
            // SAFETY: looks up a catalogue.
            let ball = unsafe { pg_sys::get_typlen(form.amoprighttype) };
            ball == size + 8
        }
        (ClassKind::Signature, WITHIN) => !same,
        (ClassKind::Signature, NEAR | EQUAL) => same,
        // A bigint is compared with shorter integers, too.
        (ClassKind::Fingerprint(8), EQUAL) if form.amoplefttype == pg_sys::INT8OID => matches!(
            form.amoprighttype,
            pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID
        ),
        (ClassKind::Fingerprint(_), NEAR | EQUAL | DISTANCE) | (ClassKind::Ball(_), NEAR) => same,
        // Integers of all widths hash alike.
        (ClassKind::Scope, EQUAL) => true,
        _ => return Some("operator class has an operator with an unknown strategy number"),
    };
    let (purpose, expected) = match strategy {
        DISTANCE => (pg_sys::AMOP_ORDER, pg_sys::INT4OID),
        _ => (pg_sys::AMOP_SEARCH, pg_sys::BOOLOID),
    };
    // SAFETY: looks up a catalogue.
    let result = unsafe { pg_sys::get_op_rettype(form.amopopr) };
    if !sound || result != expected || form.amoppurpose as u8 != purpose {
        return Some("operator has other types, or another purpose, than its strategy asks for");
    }
    None
}
