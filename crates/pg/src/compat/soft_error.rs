//! Errors handed to a caller as data.
use pgrx::{PgSqlErrorCode, pg_sys};

#[cfg(not(feature = "pg15"))]
use crate::varlena;

/// Hands an input error to a caller that wants it as data instead of an exception. False if
/// there is no such caller; before version 16 there never is.
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

/// Hands an input error to a caller that wants it as data instead of an exception. False if
/// there is no such caller.
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
