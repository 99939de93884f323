//! Version differences in soft errors: input errors that a function stores for its caller instead
//! of raising them.
use pgrx::{PgSqlErrorCode, pg_sys};

#[cfg(not(feature = "pg15"))]
use crate::varlena;

/// Stores an input error in the call's context and returns true, or returns false if the error must
/// be raised. Before version 16 there are no soft errors, so this always returns false.
#[cfg(feature = "pg15")]
pub fn save_soft_error(
    _context: *mut pg_sys::Node,
    _code: PgSqlErrorCode,
    _message: &str,
    _detail: Option<&str>,
    _hint: Option<&str>,
) -> bool {
    false
}

/// Stores an input error in the call's context, if that is an `ErrorSaveContext`, and returns true.
/// Returns false for any other context, or null. The error must then be raised.
#[cfg(not(feature = "pg15"))]
pub fn save_soft_error(
    context: *mut pg_sys::Node,
    code: PgSqlErrorCode,
    message: &str,
    detail: Option<&str>,
    hint: Option<&str>,
) -> bool {
    let copy = |text: &str| varlena::cstring(text).cast_mut_ptr();
    // SAFETY: the context of a call is null or a node with a tag for its type. The record is
    // allocated whole, in the memory context that the caller has chosen for the result.
    unsafe {
        if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_ErrorSaveContext {
            return false;
        }
        let save = context.cast::<pg_sys::ErrorSaveContext>();
        (*save).error_occurred = true;
        if (*save).details_wanted {
            let data = pg_sys::palloc0(size_of::<pg_sys::ErrorData>()).cast::<pg_sys::ErrorData>();
            (*data).elevel = pgrx::PgLogLevel::ERROR as core::ffi::c_int;
            (*data).sqlerrcode = code as core::ffi::c_int;
            (*data).message = copy(message);
            (*data).detail = detail.map_or(core::ptr::null_mut(), copy);
            (*data).hint = hint.map_or(core::ptr::null_mut(), copy);
            (*data).assoc_context = pg_sys::CurrentMemoryContext;
            (*save).error_data = data;
        }
        true
    }
}
