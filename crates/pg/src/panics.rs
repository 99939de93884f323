//! Panic hook that captures backtraces of bugs in this library, but not of ordinary errors.
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};

/// Replaces pgrx's panic hook, which captures a backtrace of each error, by one that captures
/// backtraces of bugs only.
///
/// Errors of the server (a cancelled query, a violated constraint) and this library's own errors
/// unwind Rust frames as panics. With `RUST_BACKTRACE=1` in the server's environment, pgrx's hook
/// captures a backtrace of each error. The first backtrace takes 100 ms, and the user sees it as
/// the error's detail.
///
/// Called once, when the library is loaded, after pgrx has set its hook.
pub fn keep_backtraces_for_bugs() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        // These payloads already contain the error's location. The hook would add only the
        // backtrace.
        let is_error = payload.is::<CaughtError>()
            || payload.is::<ErrorReportWithLevel>()
            || payload.is::<ErrorReport>();
        if !is_error {
            hook(info);
        }
    }));
}
