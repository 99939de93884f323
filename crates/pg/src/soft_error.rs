//! Soft errors: errors that the calling command receives as data, not as an exception
//! (`pg_input_is_valid`, COPY with ON_ERROR).
use pgrx::pg_sys;

use super::compat::save_soft_error;
use super::errors::UserError;
use super::fmgr::Call;

impl UserError {
    /// Saves this error as data if the caller of the SQL function requests that
    /// (`pg_input_is_valid`, COPY with ON_ERROR; version 16 and later), and returns SQL NULL. For
    /// other callers, raises the error.
    #[track_caller]
    pub fn raise_soft(self, call: &mut Call) -> pg_sys::Datum {
        let saved = save_soft_error(
            call.context(),
            self.code,
            &self.message,
            self.detail.as_deref(),
            self.hint.as_deref(),
        );
        if saved {
            call.return_null()
        } else {
            self.raise()
        }
    }
}
