//! What a caller may see of a table, for functions that read an index past the executor, which
//! would check this otherwise.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::compat;
use super::errors::UserError;

/// Raises an error unless the caller has the right to read anything at all of a table. To be asked
/// before the table is locked, so that nobody can hold a lock on what is not theirs to read.
pub fn check_some(table: pg_sys::Oid) {
    // SAFETY: catalogue look-ups.
    unsafe {
        let (user, select) = (pg_sys::GetUserId(), pg_sys::ACL_SELECT as pg_sys::AclMode);
        let any = pg_sys::AclMaskHow::ACLMASK_ANY;
        let okay = pg_sys::AclResult::ACLCHECK_OK;
        if pg_sys::pg_class_aclcheck(table, user, select) != okay
            && pg_sys::pg_attribute_aclcheck_all(table, user, select, any) != okay
        {
            refuse(table);
        }
    }
}

/// Raises an error unless the caller owns the table of an index. To be called before anything is
/// locked. What is no index passes, for the caller to refuse.
pub fn check_owner(index: pg_sys::Oid) {
    // SAFETY: catalogue look-ups.
    let (table, user) = unsafe { (pg_sys::IndexGetRelation(index, true), pg_sys::GetUserId()) };
    if table == pg_sys::InvalidOid || compat::owns_relation(table, user) {
        return;
    }
    UserError::new(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("must be owner of table {}", name(table)),
    )
    .detail("This function reads an index whole, past row security and rights on columns.")
    .raise()
}

/// Raises an error unless the caller has the right to read all that an index tells of its table:
/// the table, or each column that the index, its expressions and its predicate use. Where a policy
/// of row security applies to the caller, the index would show rows that the policy hides.
///
/// # Safety
/// Both are open, and the index is the table's.
pub unsafe fn check_index(table: pg_sys::Relation, index: pg_sys::Relation) {
    // SAFETY: the caller's promise; the expressions are copies, or the relation cache's own.
    unsafe {
        let form = (*index).rd_index;
        let columns = (*form).indkey.values.as_slice((*form).indkey.dim1 as usize);
        let mut used = core::ptr::null_mut();
        for node in [
            pg_sys::RelationGetIndexExpressions(index).cast::<pg_sys::Node>(),
            pg_sys::RelationGetIndexPredicate(index).cast::<pg_sys::Node>(),
        ] {
            pg_sys::pull_varattnos(node, 1, &raw mut used);
        }
        let mut columns: Vec<i16> = columns.iter().copied().filter(|&c| c != 0).collect();
        let mut member = -1;
        loop {
            member = pg_sys::bms_next_member(used, member);
            if member < 0 {
                break;
            }
            columns.push((member + pg_sys::FirstLowInvalidHeapAttributeNumber) as i16);
        }
        check_columns(table, &columns);
    }
}

/// Raises an error unless the caller has the right to read the table or all of these columns (0:
/// whole rows), and no policy of row security applies to the caller.
///
/// # Safety
/// The table is open.
pub unsafe fn check_columns(table: pg_sys::Relation, columns: &[i16]) {
    // SAFETY: catalogue look-ups, of an open table.
    unsafe {
        let (oid, user) = ((*table).rd_id, pg_sys::GetUserId());
        let select = pg_sys::ACL_SELECT as pg_sys::AclMode;
        let okay = pg_sys::AclResult::ACLCHECK_OK;
        let may_read = pg_sys::pg_class_aclcheck(oid, user, select) == okay
            || (!columns.is_empty()
                && columns.iter().all(|&column| {
                    column != 0 && pg_sys::pg_attribute_aclcheck(oid, column, user, select) == okay
                }));
        if !may_read {
            refuse(oid);
        }
        let applies = pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32;
        if pg_sys::check_enable_rls(oid, pg_sys::InvalidOid, true) == applies {
            UserError::new(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("row security applies to you on table {}", name(oid)),
            )
            .detail("This function reads an index or a table whole, rows that a policy hides included.")
            .hint("Use a join, a.fp <~> b.fp <= 3, which heeds policies; or have the table's owner run it.")
            .raise()
        }
    }
}

/// Raises an error for a table that this session cannot read.
///
/// # Safety
/// The relation is open.
pub unsafe fn check_reachable(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        let form = (*relation).rd_rel;
        let persistence = (*form).relpersistence as u8;
        if persistence == pg_sys::RELPERSISTENCE_TEMP && !(*relation).rd_islocaltemp {
            UserError::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot read temporary tables of other sessions",
            )
            .raise()
        }
        if persistence == pg_sys::RELPERSISTENCE_UNLOGGED && pg_sys::RecoveryInProgress() {
            UserError::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot read unlogged tables on a standby",
            )
            .raise()
        }
    }
}

fn refuse(table: pg_sys::Oid) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("permission denied for table {}", name(table)),
    )
    .raise()
}

fn name(table: pg_sys::Oid) -> String {
    // SAFETY: a catalogue look-up, whose result is null or a C string.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        match name.is_null() {
            true => table.to_u32().to_string(),
            false => core::ffi::CStr::from_ptr(name)
                .to_string_lossy()
                .into_owned(),
        }
    }
}
