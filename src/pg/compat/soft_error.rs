//! Errors handed to a caller as data.
use pgrx::{PgSqlErrorCode, pg_sys};

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
    // SAFETY: the context of a call is null or a node, whose tag says what it is. The record is
    // allocated whole, in the memory context that the caller has chosen for the answer.
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

/// A copy of `text` as a C string in the current memory context.
#[cfg(not(feature = "pg15"))]
fn copy(text: &str) -> *mut core::ffi::c_char {
    // SAFETY: `pnstrdup` reads as many bytes as the text has, and adds the terminator.
    unsafe { pg_sys::pnstrdup(text.as_ptr().cast(), text.len()) }
}
