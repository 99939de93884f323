//! Running what a table's owner has written: the functions of an index's expressions and predicate,
//! and statements that keep a table consistent as any user writes to it.
use pgrx::pg_sys;

use super::compat;
use super::rel::Rel;

/// The rights of a table's owner instead of the caller's, until dropped, and no way to change what
/// outlives that: else a user who may make an index could have a superuser run functions. The
/// server's own commands that read a table for an index do the same.
pub struct AsOwner {
    user: pg_sys::Oid,
    context: core::ffi::c_int,
    settings: core::ffi::c_int,
}

impl AsOwner {
    /// Takes on the rights of the owner of a table, or of an index, which is that of its table.
    pub fn of(relation: Rel) -> Self {
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        // SAFETY: changes this backend's state.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
            let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
            pg_sys::SetUserIdAndSecContext(relation.owner(), restricted);
            let settings = pg_sys::NewGUCNestLevel();
            compat::restrict_search_path();
            AsOwner {
                user,
                context,
                settings,
            }
        }
    }
}

impl Drop for AsOwner {
    fn drop(&mut self) {
        // After an error the server takes all of it back when the transaction ends.
        if !std::thread::panicking() {
            // SAFETY: what `of` has put aside, in the same backend.
            unsafe {
                pg_sys::AtEOXact_GUC(false, self.settings);
                pg_sys::SetUserIdAndSecContext(self.user, self.context);
            }
        }
    }
}

/// The rights of a table's owner for statements on that table, past row security, until dropped: as
/// the server runs the statements of a foreign key.
pub struct AsConstraint {
    user: pg_sys::Oid,
    context: core::ffi::c_int,
}

impl AsConstraint {
    /// Takes on the rights of a table's owner.
    pub fn of(relation: Rel) -> Self {
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        let flags = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_NOFORCE_RLS;
        // SAFETY: changes this backend's state.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
            pg_sys::SetUserIdAndSecContext(relation.owner(), context | flags as i32);
        }
        AsConstraint { user, context }
    }
}

impl Drop for AsConstraint {
    fn drop(&mut self) {
        // After an error the server takes it back when the transaction, or its part, ends.
        if !std::thread::panicking() {
            // SAFETY: what `of` has put aside, in the same backend.
            unsafe { pg_sys::SetUserIdAndSecContext(self.user, self.context) };
        }
    }
}
