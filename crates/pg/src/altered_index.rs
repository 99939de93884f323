//! Hook that runs after a command such as ALTER INDEX has changed a neardup index, before later
//! commands see the change.
use core::cell::Cell;
use core::ffi::{c_int, c_void};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, ObjectAccessType, Oid};

use super::catalog::relation_kind;
use super::rel::{OpenRelation, Rel};

thread_local! {
    /// Function passed to [`install`]; `None` before that.
    static CALLBACK: Cell<Option<fn(Rel)>> = const { Cell::new(None) };
    /// Hook that was installed before [`install`] replaced it, and that must still be called.
    /// `None` if there was none.
    static PREVIOUS: Cell<pg_sys::object_access_hook_type> = const { Cell::new(None) };
}

/// Makes the server call `callback` with a neardup index after a command such as ALTER INDEX has
/// changed this index. During the call, the relation cache still describes the index as it was
/// before the command. Call `install` once, when the library is loaded.
pub fn install(callback: fn(Rel)) {
    assert!(CALLBACK.replace(Some(callback)).is_none());
    // SAFETY: the server has a single thread, and never unloads the library.
    unsafe {
        PREVIOUS.set(pg_sys::object_access_hook);
        pg_sys::object_access_hook = Some(accessed);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn accessed(
    access: ObjectAccessType::Type,
    class: Oid,
    object: Oid,
    part: c_int,
    argument: *mut c_void,
) {
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: passes the server's arguments unchanged.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(access, class, object, part, argument));
        }
    }
    let is_altered = access == ObjectAccessType::OAT_POST_ALTER
        && class == pg_sys::RelationRelationId
        && part == 0
        && relation_kind(object) == pg_sys::RELKIND_INDEX;
    if !is_altered {
        return;
    }
    // The command that changed the index has locked it.
    let index = OpenRelation::index(object, pg_sys::NoLock);
    if index.rel().is_neardup_index()
        && let Some(callback) = CALLBACK.get()
    {
        callback(index.rel());
    }
}
