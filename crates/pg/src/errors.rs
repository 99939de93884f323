//! Errors, warnings and notices for users, with an SQLSTATE, a detail and, where possible, a hint.
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::held_back;

/// Error for the user, not yet raised. It can also be sent as a notice or a warning.
pub struct UserError {
    pub(super) code: PgSqlErrorCode,
    pub(super) message: String,
    pub(super) detail: Option<String>,
    pub(super) hint: Option<String>,
}

impl UserError {
    /// Makes an error from its SQLSTATE and its message of one line.
    pub fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        UserError {
            code,
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// Sets the error's detail, which describes the mistake.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Sets the error's hint, which advises the user.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes error 22P02: `text` is not a valid value of the type `type_name`. `expected` is the
    /// detail, which describes valid values. `made_by` is an SQL expression that makes a value of
    /// this type from a document, or `None` if there is no such expression. If `text` looks like a
    /// document, the hint tells the user to write the expression.
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
                "To compare with a text, first compute a value from the text: {made_by}."
            )),
            _ => error,
        }
    }

    /// Makes error 22023: an argument has a value that the function does not accept.
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    /// Makes error 22004: a value is NULL where NULL is not allowed.
    pub fn null_not_allowed(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, message)
    }

    /// Makes error 53200: the machine has no more memory, or the server has reached its memory
    /// limit. Releases the memory that is reserved for error handling.
    pub fn out_of_memory() -> Self {
        held_back::release();
        UserError::new(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, "out of memory")
            .detail("A neardup function or index scan could not get the memory that it needs.")
    }

    /// Makes error 22021: bytes are not valid text in the expected encoding.
    pub fn bad_encoding(message: impl Into<String>) -> Self {
        UserError::new(PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE, message)
    }

    /// Raises the error, which ends the current statement. The caller must run inside a guard
    /// (`crate::fmgr`), which passes the error on to the server.
    #[track_caller]
    pub fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("an error report of level ERROR does not return")
    }

    /// Sends the error's message, detail and hint to the client as a notice, and returns.
    pub fn notify(self) {
        self.report(PgLogLevel::NOTICE);
    }

    /// Sends the error's message, detail and hint to the client and the server's log as a warning,
    /// and returns.
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

/// Returns whether a text has words, so that it looks like a document. It has words if it contains
/// a character that is not ASCII, or a letter that hexadecimal numbers such as `0x1f` do not
/// contain.
fn has_words(text: &[u8]) -> bool {
    (text.iter()).any(|byte| !byte.is_ascii() || matches!(byte | 0x20, b'g'..=b'w' | b'y' | b'z'))
}

/// Notice for the user, with a detail and a hint. The statement continues after it.
pub struct UserNotice {
    /// Message of the notice, in one line.
    pub message: String,
    /// Facts about the notice's cause, in full sentences.
    pub detail: String,
    /// Advice to the user, in full sentences.
    pub hint: String,
}

impl UserNotice {
    /// Sends the notice to the client.
    pub fn report(self) {
        let code = PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION;
        ErrorReport::new(code, self.message, "neardup")
            .set_detail(self.detail)
            .set_hint(self.hint)
            .report(PgLogLevel::NOTICE);
    }
}

/// Sends a message to the client as a notice without detail and hint.
pub fn notice(message: String) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message,
        "neardup",
    )
    .report(PgLogLevel::NOTICE);
}

/// User input in a form for messages: its first 80 bytes, followed by `...` if the input is longer.
/// All bytes that are not printable ASCII are escaped, because only ASCII is valid in every server
/// encoding.
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
