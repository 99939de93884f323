//! Errors and notices as users see them: each with an SQLSTATE, a detail and, where there is one, a
//! hint.
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::held_back;

/// An error on its way to the user.
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

    /// Adds what exactly is wrong with the value at hand.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what the user can do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// 22P02: a text that is not a value of the type. `made_by` is an expression that makes a value
    /// from a document, if there is one; it is the hint for input that looks like a document.
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

    /// 22023: an argument whose value the function cannot take.
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    /// 22004: a NULL where none can stand.
    pub fn null_not_allowed(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, message)
    }

    /// 53200: the machine, or a limit set for the server, has no more memory.
    pub fn out_of_memory() -> Self {
        held_back::release();
        UserError::new(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, "out of memory")
            .detail("A neardup function or index scan could not get the memory that it needs.")
    }

    /// 22021: bytes that are no text in the expected encoding.
    pub fn bad_encoding(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE, message)
    }

    /// Ends the current statement with this error. The caller runs below a guard (`pg::fmgr`).
    #[track_caller]
    pub fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("an error report of level ERROR does not return")
    }

    /// Sends it to the client as a notice, and goes on.
    pub fn notify(self) {
        self.report(PgLogLevel::NOTICE);
    }

    /// Sends it to the client and to the server's log as a warning, and goes on.
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

/// Returns whether a text has a letter that is not a hexadecimal digit or the `x` of `0x`.
fn has_words(text: &[u8]) -> bool {
    (text.iter()).any(|byte| !byte.is_ascii() || matches!(byte | 0x20, b'g'..=b'w' | b'y' | b'z'))
}

/// A notice to the user, after which the statement goes on.
pub struct UserNotice {
    /// One line.
    pub message: String,
    /// The facts behind it: full sentences.
    pub detail: String,
    /// Advice: full sentences.
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

/// Tells the user something, at the level NOTICE.
pub fn notice(message: String) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message,
        "neardup",
    )
    .report(PgLogLevel::NOTICE);
}

/// User input for a message: pure ASCII, so that it is valid in every server encoding, and short.
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
