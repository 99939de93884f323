//! Conversion of row addresses between the server's type (`ItemPointerData`), the index's type
//! (`Tid`) and SQL values.
use neardup_blocktree::key::Tid;
use pgrx::itemptr::{item_pointer_get_both, item_pointer_set_all};
use pgrx::pg_sys;

use super::varlena;

/// Converts a row address from the server's type to the index's type.
#[inline]
pub fn tid_of(pointer: pg_sys::ItemPointerData) -> Tid {
    let (block, offset) = item_pointer_get_both(pointer);
    Tid { block, offset }
}

/// Converts a row address from the index's type to the server's type.
#[inline]
pub fn item_pointer(tid: Tid) -> pg_sys::ItemPointerData {
    let mut pointer = pg_sys::ItemPointerData::default();
    item_pointer_set_all(&mut pointer, tid.block, tid.offset);
    pointer
}

/// Makes an SQL value of type `tid` in the current memory context.
#[inline]
pub fn tid_datum(tid: Tid) -> pg_sys::Datum {
    varlena::by_reference(item_pointer(tid))
}
