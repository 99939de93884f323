//! Version differences in soft errors: input errors that a function stores for its caller instead
//! of raising them.
use pgrx::{PgSqlErrorCode, pg_sys};

#[cfg(not(feature = "pg15"))]
use crate::varlena;

/// Returns false: the server has no soft errors before version 16, so the caller must raise the
/// error. From version 16 on, this function stores the error and returns true if the server
/// requests that.
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

/// Stores an input error in `context`, the node that the server passes with the call, and returns
/// true. The node must be an `ErrorSaveContext`. Returns false if it has another type or is null;
/// the caller must then raise the error.
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
