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

/// Makes an SQL array of type `tid[]` from row addresses, in the current memory context.
pub fn tid_array(rows: &[Tid]) -> pg_sys::Datum {
    let mut pointers: Vec<pg_sys::ItemPointerData> =
        (rows.iter()).map(|&tid| item_pointer(tid)).collect();
    let mut datums: Vec<pg_sys::Datum> = (pointers.iter_mut())
        .map(|pointer| pg_sys::Datum::from(&raw mut *pointer))
        .collect();
    // SAFETY: each address has six bytes, aligned to two, and is passed by reference.
    let array = unsafe {
        pg_sys::construct_array(
            datums.as_mut_ptr(),
            datums.len() as i32,
            pg_sys::TIDOID,
            size_of::<pg_sys::ItemPointerData>() as i32,
            false,
            pg_sys::TYPALIGN_SHORT as core::ffi::c_char,
        )
    };
    pg_sys::Datum::from(array)
}
