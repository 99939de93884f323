//! Panic hook that captures backtraces for bugs but not for errors.
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};

/// Prevents backtraces of errors that unwind Rust code.
///
/// Errors of the server (a cancelled query, a violated constraint) and our own errors unwind Rust
/// frames as panics. With `RUST_BACKTRACE=1` in the server's environment, pgrx's hook captures a
/// backtrace of each error. The first one takes 100 ms, and the user sees it as the error's
/// detail. Called once, when the library is loaded, after pgrx has set its hook.
pub fn keep_backtraces_for_bugs() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        // These errors already contain their location, which is all else that the hook records.
        let is_error = payload.is::<CaughtError>()
            || payload.is::<ErrorReportWithLevel>()
            || payload.is::<ErrorReport>();
        if !is_error {
            hook(info);
        }
    }));
}
