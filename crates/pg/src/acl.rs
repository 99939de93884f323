//! Checks of the current user's privileges on a table, for functions that read the table or an
//! index without the executor. The executor makes these checks for ordinary queries only.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::catalog::relation_name;
use super::errors::UserError;
use super::rel::Rel;
use super::{backend, catalog, compat, server};

const SELECT: pg_sys::AclMode = pg_sys::ACL_SELECT as pg_sys::AclMode;
const OKAY: pg_sys::AclResult::Type = pg_sys::AclResult::ACLCHECK_OK;

/// Raises error 42501 unless the current user may read a table, or at least one of its columns.
/// Call it before locking the table, so that users cannot lock tables that they may not read.
pub fn check_any_column(table: pg_sys::Oid) {
    let any = pg_sys::AclMaskHow::ACLMASK_ANY;
    if !may_select_table(table)
        && server::pg_attribute_aclcheck_all(table, server::GetUserId(), SELECT, any) != OKAY
    {
        refuse(table);
    }
}

/// Returns whether the current user owns the table of an index, is a member of the role that owns
/// the table, or is a superuser. Returns true for relations other than indexes; callers reject
/// those.
pub fn owns_table_of(index: pg_sys::Oid) -> bool {
    let table = server::IndexGetRelation(index, true);
    table == pg_sys::InvalidOid || compat::owns_relation(table, server::GetUserId())
}

/// Raises error 42501 unless [`owns_table_of`] returns true for the index. Call it before locking
/// the index or its table. Accepts relations other than indexes; callers reject those.
pub fn check_owner(index: pg_sys::Oid) {
    if !owns_table_of(index) {
        refuse_non_owner(index, "");
    }
}

/// Raises error 42501 unless [`owns_table_of`] returns true for the index, or the current user has
/// the privileges of the server's role `pg_stat_scan_tables`. PostgreSQL has this role for
/// monitoring functions that lock tables with AccessShareLock; `pg_monitor` is a member of the
/// role. Call it before locking the index or its table. Accepts relations other than indexes;
/// callers reject those.
pub fn check_owner_or_monitor(index: pg_sys::Oid) {
    let monitors = pg_sys::Oid::from_u32(pg_sys::ROLE_PG_STAT_SCAN_TABLES);
    if !owns_table_of(index) && !server::has_privs_of_role(server::GetUserId(), monitors) {
        refuse_non_owner(index, " or have privileges of role pg_stat_scan_tables");
    }
}

/// Raises error 42501: the current user must own the table of the index. `others` is appended to
/// the message. It names other roles whose members may call the function, or is empty.
fn refuse_non_owner(index: pg_sys::Oid, others: &str) -> ! {
    let table = server::IndexGetRelation(index, true);
    UserError::new(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("must be owner of table {}{others}", relation_name(table)),
    )
    .detail("This function reads the whole index and bypasses row security and column privileges.")
    .raise()
}

/// Raises error 42501 unless the role that owns a table is the current user, the session user and
/// the role that logged in. Superusers and members of the owner's role are rejected as well. Call
/// it before locking the table.
///
/// Functions that fire the table's triggers must call it. Triggers run the owner's code. This code
/// can undo SET ROLE and SET SESSION AUTHORIZATION, and deferred triggers run under the role of the
/// session anyway. So the code could otherwise gain the rights of another role, such as a
/// superuser.
pub fn check_session_of_owner(table: pg_sys::Oid) {
    // The table was dropped. The caller raises an error when it opens the table.
    let Some(owner) = catalog::relation_owner(table) else {
        return;
    };
    let users = [
        server::GetUserId(),
        server::GetSessionUserId(),
        server::GetAuthenticatedUserId(),
    ];
    if users != [owner; 3] {
        refuse_session(table, owner);
    }
}

fn refuse_session(table: pg_sys::Oid, owner: pg_sys::Oid) -> ! {
    let (name, may_log_in) = catalog::role(owner).unwrap_or_default();
    let hint = match may_log_in {
        true => format!("Connect as role \"{name}\". SET ROLE is not enough."),
        false => format!(
            "Role \"{name}\" cannot log in. Use ALTER TABLE ... OWNER TO to give the table to a \
             role that can, and connect as that role."
        ),
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!(
            "must be connected as the owner of table {}",
            relation_name(table)
        ),
    )
    .detail(
        "This function fires the table's triggers. Their code can undo SET ROLE and use the \
         privileges of the session user.",
    )
    .hint(hint)
    .raise()
}

/// Raises error 42501 unless the current user may read all table data that an index reveals. The
/// user must have the right to read the whole table, or each column that the index, its expressions
/// and its predicate use. Also raises the error if a row security policy applies to the user,
/// because the index would show rows that the policy hides.
pub fn check_index(table: Rel, index: Rel) {
    let mut columns = index.index_form().columns;
    columns.retain(|&column| column != 0);
    columns.extend(index.columns_of_expressions());
    check_columns(table, &columns);
}

/// Raises error 42501 unless the current user may read the whole table, or all its columns with the
/// attribute numbers `columns`. If `columns` is empty or contains 0, which stands for whole rows,
/// the user must have the right to read the whole table. Also raises the error if a row security
/// policy of the table applies to the user.
pub fn check_columns(table: Rel, columns: &[i16]) {
    let may_read = may_select_table(table.oid())
        || (!columns.is_empty()
            && columns
                .iter()
                .all(|&column| column != 0 && may_select(table, column)));
    if !may_read {
        refuse(table.oid());
    }
    if has_policies(table) {
        UserError::new(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!(
                "row-level security policies of table {} apply to you",
                relation_name(table.oid())
            ),
        )
        .detail("This function reads the whole index or table, including rows that a policy hides.")
        .hint(
            "Use a join instead, with a condition such as a.fp <~> b.fp <= 6. A join obeys the \
             policies. Or ask the owner of the table to call the function.",
        )
        .raise()
    }
}

fn may_select_table(table: pg_sys::Oid) -> bool {
    server::pg_class_aclcheck(table, server::GetUserId(), SELECT) == OKAY
}

/// Returns whether the current user may read the whole table, or at least the column with the
/// attribute number `column`.
pub fn may_select(table: Rel, column: i16) -> bool {
    let table = table.oid();
    may_select_table(table)
        || server::pg_attribute_aclcheck(table, column, server::GetUserId(), SELECT) == OKAY
}

/// Returns whether row security policies of a table apply to the current user.
pub fn has_policies(table: Rel) -> bool {
    let applies = pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32;
    server::check_enable_rls(table.oid(), pg_sys::InvalidOid, true) == applies
}

/// Raises error 0A000 for a table whose rows this session cannot read: a temporary table of another
/// session, or an unlogged table on a standby.
pub fn check_reachable(relation: Rel) {
    let persistence = relation.persistence();
    if persistence == pg_sys::RELPERSISTENCE_TEMP && !relation.is_local_temp() {
        UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot read temporary tables of other sessions",
        )
        .raise()
    }
    if persistence == pg_sys::RELPERSISTENCE_UNLOGGED && backend::in_recovery() {
        UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot read unlogged tables on a standby",
        )
        .raise()
    }
}

fn refuse(table: pg_sys::Oid) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("permission denied for table {}", relation_name(table)),
    )
    .raise()
}
