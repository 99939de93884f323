//! Catalogue entries, and what the relation cache keeps of them.
use pgrx::pg_sys;

/// Returns whether a role owns a relation, or is a member of the role that does.
#[cfg(feature = "pg15")]
pub fn owns_relation(relation: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: catalogue look-ups.
    unsafe { pg_sys::pg_class_ownercheck(relation, role) }
}

/// Returns whether a role owns a relation, or is a member of the role that does.
#[cfg(not(feature = "pg15"))]
pub fn owns_relation(relation: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: catalogue look-ups.
    unsafe { pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, role) }
}

/// A column of a row's description, counted from 0 (`TupleDescAttr`).
///
/// # Safety
/// The descriptor has such a column; the result lives as long as it.
pub unsafe fn attribute(
    descriptor: pg_sys::TupleDesc,
    column: usize,
) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*descriptor).attrs.as_ptr().add(column);
        #[cfg(feature = "pg18")]
        return pg_sys::TupleDescAttr(descriptor, column as i32);
    }
}

/// The transaction that made an index's catalogue entry.
///
/// # Safety
/// The relation is an open index.
pub unsafe fn creation_xid(index: pg_sys::Relation) -> pg_sys::TransactionId {
    // SAFETY: the caller's promise; the header of the entry lies before its data.
    unsafe { pg_sys::submodules::htup::HeapTupleHeaderGetXmin((*(*index).rd_indextuple).t_data) }
}

/// The number of a relation's file (`relfilenode`).
///
/// # Safety
/// The relation is open.
pub unsafe fn file_number(relation: pg_sys::Relation) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*relation).rd_node.relNode.to_u32();
        #[cfg(not(feature = "pg15"))]
        return (*relation).rd_locator.relNumber.to_u32();
    }
}
