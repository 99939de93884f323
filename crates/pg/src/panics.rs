//! Backtraces: for panics, which are bugs, and not for errors, which are none.
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};

/// Keeps errors on their way through Rust code free of backtraces.
///
/// An error of the server's (a cancelled query, a violated constraint) unwinds frames of Rust as a
/// panic, and so do errors of our own. With `RUST_BACKTRACE=1` in the server's environment pgrx's
/// hook captures a backtrace of each, which takes 100 ms at first and is shown to the user as the
/// error's detail. Called once, when the library is loaded, after pgrx has set its hook.
pub fn keep_backtraces_for_bugs() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        // These know where they were raised, which is all else that the hook would note.
        let is_error = payload.is::<CaughtError>()
            || payload.is::<ErrorReportWithLevel>()
            || payload.is::<ErrorReport>();
        if !is_error {
            hook(info);
        }
    }));
}
