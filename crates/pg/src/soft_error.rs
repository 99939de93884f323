//! Errors that a caller wants as data instead of an exception (`pg_input_is_valid`, COPY with
//! ON_ERROR).
use pgrx::pg_sys;

use super::compat::save_soft_error;
use super::errors::UserError;
use super::fmgr::Call;

impl UserError {
    /// Leaves the error with a caller that asked for soft errors (`pg_input_is_valid`, COPY with
    /// ON_ERROR; from version 16 on) and returns SQL NULL; without such a caller, raises it.
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
