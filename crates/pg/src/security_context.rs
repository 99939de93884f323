//! Runs code with the rights of a table's owner: functions in index expressions and predicates, and
//! statements that keep a table consistent.
use pgrx::pg_sys;

use super::rel::Rel;
use super::{compat, server};

/// Runs code with the rights of a table's owner until this value is dropped.
///
/// The code cannot change state that outlasts this value, such as settings or the current role.
/// Without this limit, a user who may create an index could put a function into it that gains the
/// rights of a superuser. The server sets the same limit in its own commands that read a table for
/// an index.
pub struct AsOwner {
    _path: RestrictedPath,
    _user: AsUser,
}

impl AsOwner {
    /// Takes the rights of the owner of a table or index until the returned value is dropped. The
    /// owner of an index is the owner of its table.
    pub fn new(relation: Rel) -> Self {
        let user = AsUser::new(relation.owner(), pg_sys::SECURITY_RESTRICTED_OPERATION);
        AsOwner {
            _path: RestrictedPath::set(),
            _user: user,
        }
    }
}

/// Restricts `search_path` to the server's own schemas until this value is dropped.
pub struct RestrictedPath {
    /// Nesting level of settings that begins when this value is made. Dropping this value ends the
    /// level, which restores `search_path`.
    settings: core::ffi::c_int,
}

impl RestrictedPath {
    /// Restricts `search_path` to the server's own schemas until the returned value is dropped.
    pub fn set() -> Self {
        let settings = server::NewGUCNestLevel();
        compat::restrict_search_path();
        RestrictedPath { settings }
    }
}

impl Drop for RestrictedPath {
    fn drop(&mut self) {
        // After an error the server restores the settings when the transaction ends.
        if !std::thread::panicking() {
            server::AtEOXact_GUC(false, self.settings);
        }
    }
}

/// Runs statements on a table with the rights of the table's owner and without row security, until
/// this value is dropped. The server runs the statements of a foreign key in the same way.
pub struct AsConstraint {
    _user: AsUser,
}

impl AsConstraint {
    /// Takes the rights of the table's owner until the returned value is dropped.
    pub fn new(relation: Rel) -> Self {
        let flags = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_NOFORCE_RLS;
        AsConstraint {
            _user: AsUser::new(relation.owner(), flags),
        }
    }
}

/// Changes the current user until this value is dropped.
struct AsUser {
    /// User to return to.
    before: pg_sys::Oid,
    /// Security context to return to.
    context: core::ffi::c_int,
}

impl AsUser {
    /// Makes `user` the current user until the returned value is dropped. Meanwhile the security
    /// context also has the flags `flags` (`SECURITY_...`).
    fn new(user: pg_sys::Oid, flags: u32) -> Self {
        let (mut before, mut context) = (pg_sys::InvalidOid, 0);
        // SAFETY: changes only this backend's state.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&raw mut before, &raw mut context);
            pg_sys::SetUserIdAndSecContext(user, context | flags as i32);
        }
        AsUser { before, context }
    }
}

impl Drop for AsUser {
    fn drop(&mut self) {
        // After an error the server restores the user when the (sub)transaction ends.
        if !std::thread::panicking() {
            server::SetUserIdAndSecContext(self.before, self.context);
        }
    }
}
