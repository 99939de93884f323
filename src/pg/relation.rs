//! Indexes named by a caller: opened, locked together with their table, and checked for being ours.
use pgrx::{PgSqlErrorCode, pg_sys};

use super::errors::UserError;
use super::security_context::AsOwner;
use super::{acl, compat};

/// An index of this access method and its table, open and locked until dropped. The locks stay
/// until the transaction ends, as for the server's own commands.
pub struct LockedIndex {
    index: pg_sys::Relation,
    table: pg_sys::Relation,
}

impl LockedIndex {
    /// Locks and opens both, the table first, as the server does. Raises an error for whatever is
    /// no valid index of this access method.
    pub fn open(oid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Self {
        // SAFETY: catalogue look-ups, and relations that are closed when the value is dropped; on
        // an error the transaction closes them.
        unsafe {
            let table = pg_sys::IndexGetRelation(oid, true);
            if table == pg_sys::InvalidOid {
                refuse(oid);
            }
            let table = pg_sys::table_open(table, lock);
            let index = pg_sys::relation_open(oid, lock);
            // Between the first look and the locks the index may have gone, and its number to
            // another.
            if pg_sys::IndexGetRelation(oid, true) != (*table).rd_id {
                refuse(oid);
            }
            let access_method = pg_sys::get_am_name((*(*index).rd_rel).relam);
            let is_ours =
                !access_method.is_null() && core::ffi::CStr::from_ptr(access_method) == c"neardup";
            if !is_ours {
                refuse(oid);
            }
            refuse_unreadable(index);
            if !(*(*index).rd_index).indisvalid {
                UserError::new(
                    PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!("index \"{}\" is not valid", relation_name(oid)),
                )
                .hint("An unfinished CREATE INDEX CONCURRENTLY left it. REINDEX or drop it.")
                .raise();
            }
            load_expressions(table, index);
            LockedIndex { index, table }
        }
    }

    /// Opens an index for a function that reads it past the executor, with the snapshot that is
    /// active. Raises an error unless the caller may see what it tells of its table, and unless
    /// it holds all rows that the snapshot sees.
    pub fn open_for_reading(oid: pg_sys::Oid) -> Self {
        // SAFETY: a catalogue look-up; both relations are open as long as `opened` lives.
        unsafe {
            let table = pg_sys::IndexGetRelation(oid, true);
            if table == pg_sys::InvalidOid {
                refuse(oid);
            }
            acl::check_some(table);
            let opened = Self::open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            acl::check_index(opened.table, opened.index);
            acl::check_reachable(opened.table);
            opened.check_age(pg_sys::GetActiveSnapshot());
            opened
        }
    }

    /// Opens again what [`LockedIndex::open_for_reading`] opened earlier in the same query.
    pub fn reopen(oid: pg_sys::Oid) -> Self {
        Self::open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE)
    }

    /// Raises an error if a snapshot may see rows that the index left out, because their chains of
    /// updates were broken when it was built. As for amcheck and the planner.
    ///
    /// # Safety
    /// The snapshot is registered or active.
    pub unsafe fn check_age(&self, snapshot: pg_sys::Snapshot) {
        // SAFETY: the relation is open, and the caller's promise.
        unsafe {
            let form = (*self.index).rd_index;
            let built_by = compat::creation_xid(self.index);
            if (*form).indcheckxmin && !pg_sys::TransactionIdPrecedes(built_by, (*snapshot).xmin) {
                UserError::new(
                    PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                    format!(
                        "index \"{}\" is younger than this transaction's snapshot",
                        relation_name((*self.index).rd_id)
                    ),
                )
                .hint("Read it in a new transaction.")
                .raise();
            }
        }
    }

    /// The index.
    pub fn index(&self) -> pg_sys::Relation {
        self.index
    }

    /// The table that it is on.
    pub fn table(&self) -> pg_sys::Relation {
        self.table
    }
}

impl Drop for LockedIndex {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: both were opened by us.
            unsafe {
                pg_sys::relation_close(self.index, pg_sys::NoLock as pg_sys::LOCKMODE);
                pg_sys::table_close(self.table, pg_sys::NoLock as pg_sys::LOCKMODE);
            }
        }
    }
}

/// Has the relation cache load an index's expressions and predicate, with the rights of the owner.
/// The first load folds constants, which runs functions that the owner has written; later ones find
/// the result in the cache, as long as the index stays open.
///
/// # Safety
/// Both are open, and the index is the table's.
pub unsafe fn load_expressions(table: pg_sys::Relation, index: pg_sys::Relation) {
    // SAFETY: the caller's promise. Both return copies in the current memory context, or NULL.
    unsafe {
        let _as_owner = AsOwner::of(table);
        pg_sys::RelationGetIndexExpressions(index);
        pg_sys::RelationGetIndexPredicate(index);
    }
}

/// Raises an error for an index whose pages this session cannot read.
unsafe fn refuse_unreadable(index: pg_sys::Relation) {
    // SAFETY: the caller's relation is open.
    let (oid, kind, persistence, is_local) = unsafe {
        let form = &*(*index).rd_rel;
        let local = (*index).rd_islocaltemp;
        ((*index).rd_id, form.relkind, form.relpersistence, local)
    };
    let name = || relation_name(oid);
    if kind as u8 == pg_sys::RELKIND_PARTITIONED_INDEX {
        UserError::new(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("index \"{}\" is partitioned", name()),
        )
        .detail("It has no pages of its own: those are in the indexes of the partitions.")
        .hint("Name the index of a partition; pg_partition_tree() lists them.")
        .raise();
    }
    if persistence as u8 == pg_sys::RELPERSISTENCE_TEMP && !is_local {
        UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "index \"{}\" is on a temporary table of another session",
                name()
            ),
        )
        .detail("Its pages are in that session's own memory.")
        .raise();
    }
    // SAFETY: asks for the server's state.
    let in_recovery = unsafe { pg_sys::RecoveryInProgress() };
    if persistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED && in_recovery {
        UserError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "index \"{}\" is on an unlogged table, which a standby does not have",
                name()
            ),
        )
        .hint("Look at it on the primary.")
        .raise();
    }
}

/// The name of a relation, or its number if there is none.
pub fn relation_name(oid: pg_sys::Oid) -> String {
    // SAFETY: a catalogue look-up, whose result is null or a C string.
    unsafe {
        let name = pg_sys::get_rel_name(oid);
        if name.is_null() {
            return oid.to_u32().to_string();
        }
        core::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
    }
}

fn refuse(oid: pg_sys::Oid) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        format!("\"{}\" is not a neardup index", relation_name(oid)),
    )
    .hint("Name an index made by CREATE INDEX ... USING neardup.")
    .raise()
}
