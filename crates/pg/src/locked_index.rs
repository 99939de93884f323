//! Opens and locks an index that a user names, together with its table, after checking that it is a
//! neardup index.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::catalog::{relation_kind, relation_name};
use super::errors::UserError;
use super::local_rows::{Reader, require_local_rows};
use super::rel::{OpenRelation, Rel};
use super::{acl, backend, compat, server};

/// A neardup index and its table, open until dropped. Both stay locked until the transaction ends,
/// as after the server's own commands.
pub struct LockedIndex {
    // Declared before the table, so that the index is dropped, and so closed, first.
    index: OpenRelation,
    table: OpenRelation,
}

impl LockedIndex {
    /// Locks and opens an index and its table with the lock mode `lock`. Locks the table first, as
    /// the server does. Raises an error unless `oid` is a valid neardup index that this session can
    /// read.
    pub fn open(oid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Self {
        let table = table_of(oid).unwrap_or_else(|| refuse(oid));
        require_local_rows(table, Reader::Index);
        let table = OpenRelation::table(table, lock as u32);
        let index = OpenRelation::any(oid, lock as u32);
        // The index may have been dropped between the lookup and the lock, and another relation
        // may have its OID.
        if table_of(oid) != Some(table.rel().oid()) || !index.rel().is_neardup_index() {
            refuse(oid);
        }
        refuse_unreadable(index.rel());
        if !index.rel().index_form().is_valid {
            UserError::new(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("index \"{}\" is not valid", relation_name(oid)),
            )
            .hint(
                "CREATE INDEX CONCURRENTLY did not finish and left an invalid index. Drop the \
                 index or run REINDEX.",
            )
            .raise();
        }
        LockedIndex { index, table }
    }

    /// Opens an index with AccessShareLock, for a function that reads it without the executor and
    /// with the active snapshot. Raises an error if the current user may not read the table data
    /// that the index reveals. Also raises an error if the index may lack rows that the snapshot
    /// sees. Counts an index scan in the statistics.
    pub fn open_for_reading(oid: pg_sys::Oid) -> Self {
        let opened = Self::open_checked(oid);
        // SAFETY: functions run with an active snapshot; the index is open. Counting the scan
        // keeps users from dropping the index as unused.
        unsafe {
            opened.check_age((*pg_sys::GetActiveSnapshot()).xmin);
            opened.index.rel().count_index_scan();
        }
        opened
    }

    /// Opens an index with AccessShareLock. Raises an error unless the current user may read the
    /// table data that the index reveals.
    pub fn open_checked(oid: pg_sys::Oid) -> Self {
        acl::check_any_column(table_of(oid).unwrap_or_else(|| refuse(oid)));
        let opened = Self::reopen(oid);
        acl::check_index(opened.table.rel(), opened.index.rel());
        acl::check_reachable(opened.table.rel());
        opened
    }

    /// Opens an index with AccessShareLock, without checking privileges again. Call it only for an
    /// index that [`LockedIndex::open_for_reading`] has opened earlier in the same query.
    pub fn reopen(oid: pg_sys::Oid) -> Self {
        Self::open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE)
    }

    /// Raises error 40001 if the index may lack rows that a snapshot with this `xmin` sees. The
    /// build of an index omits old versions of rows whose HOT chains are broken, and older
    /// snapshots may still see these versions. amcheck has the same check.
    pub fn check_age(&self, xmin: pg_sys::TransactionId) {
        let index = self.index.rel().raw();
        // SAFETY: the relation is open.
        let is_older = unsafe {
            (*(*index).rd_index).indcheckxmin
                && !pg_sys::TransactionIdPrecedes(compat::creation_xid(index), xmin)
        };
        if is_older {
            UserError::new(
                PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                format!(
                    "index \"{}\" is newer than this transaction's snapshot",
                    self.index.rel().shown()
                ),
            )
            .hint("Read the index in a new transaction.")
            .raise();
        }
    }

    /// The neardup index.
    pub fn index(&self) -> Rel<'_> {
        self.index.rel()
    }

    /// The table of the index.
    pub fn table(&self) -> Rel<'_> {
        self.table.rel()
    }
}

/// The OID of the table of an index; `None` if there is no such index.
fn table_of(index: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let table = server::IndexGetRelation(index, true);
    (table != pg_sys::InvalidOid).then_some(table)
}

/// Raises an error for an index whose pages this session cannot read: an index that is partitioned,
/// on a temporary table of another session, or on an unlogged table while the server is a standby.
fn refuse_unreadable(index: Rel) {
    let (oid, persistence) = (index.oid(), index.persistence());
    let kind = relation_kind(oid);
    let name = || relation_name(oid);
    if kind == pg_sys::RELKIND_PARTITIONED_INDEX {
        UserError::new(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("index \"{}\" is partitioned", name()),
        )
        .detail("A partitioned index has no pages. Only the indexes of its partitions have pages.")
        .hint("Pass the index of a partition. pg_partition_tree() lists these indexes.")
        .raise();
    }
    if persistence == pg_sys::RELPERSISTENCE_TEMP && !index.is_local_temp() {
        UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "index \"{}\" is on a temporary table of another session",
                name()
            ),
        )
        .detail("The pages of the index are in the local memory of the other session.")
        .raise();
    }
    if persistence == pg_sys::RELPERSISTENCE_UNLOGGED && backend::in_recovery() {
        UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "index \"{}\" is on an unlogged table, whose data does not exist on a standby",
                name()
            ),
        )
        .hint("Read the index on the primary.")
        .raise();
    }
}

fn refuse(oid: pg_sys::Oid) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        format!("\"{}\" is not a neardup index", relation_name(oid)),
    )
    .hint("Pass an index that was created by CREATE INDEX ... USING neardup.")
    .raise()
}
