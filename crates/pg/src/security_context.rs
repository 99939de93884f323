//! Running what a table's owner has written: the functions of an index's expressions and predicate,
//! and statements that keep a table consistent as any user writes to it.
use pgrx::pg_sys;

use super::rel::Rel;
use super::{compat, server};

/// The rights of a table's owner instead of the caller's, until dropped, and no way to change what
/// outlives that: else a user who may make an index could have a superuser run functions. The
/// server's own commands that read a table for an index do the same.
pub struct AsOwner {
    _path: RestrictedPath,
    _user: AsUser,
}

impl AsOwner {
    /// Takes on the rights of the owner of a table, or of an index, which is that of its table.
    pub fn of(relation: Rel) -> Self {
        let user = AsUser::new(relation.owner(), pg_sys::SECURITY_RESTRICTED_OPERATION);
        AsOwner {
            _path: RestrictedPath::set(),
            _user: user,
        }
    }
}

/// A `search_path` of the server's own schemas only, until dropped.
pub struct RestrictedPath {
    settings: core::ffi::c_int,
}

impl RestrictedPath {
    /// Sets the path.
    pub fn set() -> Self {
        let settings = server::NewGUCNestLevel();
        compat::restrict_search_path();
        RestrictedPath { settings }
    }
}

impl Drop for RestrictedPath {
    fn drop(&mut self) {
        // After an error the server takes all of it back when the transaction ends.
        if !std::thread::panicking() {
            server::AtEOXact_GUC(false, self.settings);
        }
    }
}

/// The rights of a table's owner for statements on that table, past row security, until dropped: as
/// the server runs the statements of a foreign key.
pub struct AsConstraint {
    _user: AsUser,
}

impl AsConstraint {
    /// Takes on the rights of a table's owner.
    pub fn of(relation: Rel) -> Self {
        let flags = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_NOFORCE_RLS;
        AsConstraint {
            _user: AsUser::new(relation.owner(), flags),
        }
    }
}

/// Another current user, until dropped.
struct AsUser {
    before: pg_sys::Oid,
    context: core::ffi::c_int,
}

impl AsUser {
    /// Adds flags to the security context.
    fn new(user: pg_sys::Oid, flags: u32) -> Self {
        let (mut before, mut context) = (pg_sys::InvalidOid, 0);
        // SAFETY: changes this backend's state.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&raw mut before, &raw mut context);
            pg_sys::SetUserIdAndSecContext(user, context | flags as i32);
        }
        AsUser { before, context }
    }
}

impl Drop for AsUser {
    fn drop(&mut self) {
        // After an error the server takes it back when the transaction, or its part, ends.
        if !std::thread::panicking() {
            server::SetUserIdAndSecContext(self.before, self.context);
        }
    }
}
