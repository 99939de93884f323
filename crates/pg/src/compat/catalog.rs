//! Version differences in catalogue rows and their copies in the relation cache.
use pgrx::pg_sys;

/// Returns whether a role owns a relation, is a member of the role that owns it, or is a superuser.
pub fn owns_relation(relation: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: the functions only look up rows of catalogues.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relation, role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, role);
    }
}

/// The description of a column, counted from 1, in a row descriptor (`TupleDescAttr`). Raises an
/// internal error if there is no such column.
///
/// # Safety
/// The server has made the descriptor.
#[inline]
pub unsafe fn attribute(
    descriptor: &pg_sys::TupleDescData,
    column: i16,
) -> &pg_sys::FormData_pg_attribute {
    assert!(
        (1..=descriptor.natts as i16).contains(&column),
        "no such column"
    );
    let column = column as usize - 1;
    // SAFETY: the caller promised a valid descriptor, which has `natts` columns.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        return &*descriptor.attrs.as_ptr().add(column);
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        return &*pg_sys::TupleDescAttr(core::ptr::from_ref(descriptor).cast_mut(), column as i32);
    }
}

/// The id of the transaction that inserted the index's row in pg_index.
///
/// # Safety
/// The relation is an open index.
pub unsafe fn creation_xid(index: pg_sys::Relation) -> pg_sys::TransactionId {
    // SAFETY: the caller's promise; the header of the entry lies before its data.
    unsafe { pg_sys::submodules::htup::HeapTupleHeaderGetXmin((*(*index).rd_indextuple).t_data) }
}

/// The number of a relation's file on disk (`relfilenode`).
#[inline]
pub fn file_number(relation: &pg_sys::RelationData) -> u32 {
    #[cfg(feature = "pg15")]
    return relation.rd_node.relNode.to_u32();
    #[cfg(not(feature = "pg15"))]
    return relation.rd_locator.relNumber.to_u32();
}

/// Returns whether the current transaction has made a relation, or has given it a new file.
pub fn has_new_file(relation: &pg_sys::RelationData) -> bool {
    #[cfg(feature = "pg15")]
    let first = relation.rd_firstRelfilenodeSubid;
    #[cfg(not(feature = "pg15"))]
    let first = relation.rd_firstRelfilelocatorSubid;
    // 0 is InvalidSubTransactionId.
    relation.rd_createSubid != 0 || first != 0
}
