//! Errors and notices for users, with an SQLSTATE, a detail and, where possible, a hint.
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::held_back;

/// Error for the user.
pub struct UserError {
    pub(super) code: PgSqlErrorCode,
    pub(super) message: String,
    pub(super) detail: Option<String>,
    pub(super) hint: Option<String>,
}

impl UserError {
    /// An error with its SQLSTATE and its one-line message.
    pub fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        UserError {
            code,
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// Adds a detail that describes the mistake.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a hint with advice for the user.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// 22P02: a text is not a valid value of the type. If `made_by` is given, it is an expression
    /// that makes a value from a document: the hint for input that looks like a document.
    pub fn invalid_text(
        type_name: &str,
        text: &[u8],
        expected: impl Into<String>,
        made_by: Option<&str>,
    ) -> Self {
        let error = UserError::new(
            PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
            format!(
                "invalid input syntax for type {type_name}: \"{}\"",
                shown(text)
            ),
        )
        .detail(expected);
        match made_by {
            Some(made_by) if has_words(text) => error.hint(format!(
                "To compare with a text, compute its value first: {made_by}."
            )),
            _ => error,
        }
    }

    /// 22023: an argument has a value that the function does not accept.
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    /// 22004: a value is NULL where NULL is not allowed.
    pub fn null_not_allowed(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, message)
    }

    /// 53200: the machine has no more memory, or the server has reached its memory limit.
    pub fn out_of_memory() -> Self {
        held_back::release();
        UserError::new(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, "out of memory")
            .detail("A neardup function or index scan could not get the memory that it needs.")
    }

    /// 22021: bytes are not valid text in the expected encoding.
    pub fn bad_encoding(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE, message)
    }

    /// Ends the current statement with this error. The caller runs inside a guard (`pg::fmgr`).
    #[track_caller]
    pub fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("an error report of level ERROR does not return")
    }

    /// Sends the message to the client as a notice, and returns.
    pub fn notify(self) {
        self.report(PgLogLevel::NOTICE);
    }

    /// Sends the message to the client and to the server's log as a warning, and returns.
    pub fn warn(self) {
        self.report(PgLogLevel::WARNING);
    }

    #[track_caller]
    fn report(self, level: PgLogLevel) {
        let mut report = ErrorReport::new(self.code, self.message, "neardup");
        if let Some(detail) = self.detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        report.report(level);
    }
}

/// Returns whether a text has a character that is not ASCII, or a letter other than hexadecimal
/// digits and `x`.
fn has_words(text: &[u8]) -> bool {
    (text.iter()).any(|byte| !byte.is_ascii() || matches!(byte | 0x20, b'g'..=b'w' | b'y' | b'z'))
}

/// Notice for the user. The statement continues.
pub struct UserNotice {
    /// Message in one line.
    pub message: String,
    /// Facts, in full sentences.
    pub detail: String,
    /// Advice, in full sentences.
    pub hint: String,
}

impl UserNotice {
    /// Sends the notice.
    pub fn report(self) {
        let code = PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION;
        ErrorReport::new(code, self.message, "neardup")
            .set_detail(self.detail)
            .set_hint(self.hint)
            .report(PgLogLevel::NOTICE);
    }
}

/// Sends a message to the user at the level NOTICE.
pub fn notice(message: String) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message,
        "neardup",
    )
    .report(PgLogLevel::NOTICE);
}

/// User input for a message, shortened and in ASCII, which is valid in every server encoding.
pub fn shown(text: &[u8]) -> String {
    const LONGEST: usize = 80;
    let mut shown: String = text
        .iter()
        .take(LONGEST)
        .flat_map(|byte| std::ascii::escape_default(*byte))
        .map(char::from)
        .collect();
    if text.len() > LONGEST {
        shown.push_str("...");
    }
    shown
}
