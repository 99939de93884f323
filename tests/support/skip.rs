//! Skipped tests, which `cargo xtask test` counts apart from passed tests.
use crate::support::Outcome;
use anyhow::bail;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Environment variable with the path of the file to which a skipped test appends a line. Set by
/// `cargo xtask test`.
const LIST: &str = "NEARDUP_TEST_SKIPPED";
/// Environment variable that makes a test fail, not skip, if a tool is missing. Set to 1 in CI.
const STRICT: &str = "NEARDUP_TEST_STRICT";

/// Skips the running test because a tool is missing. CI installs this tool.
///
/// # Errors
/// When `NEARDUP_TEST_STRICT` is 1.
pub fn skip_without(tool: impl Display) -> Outcome {
    let reason = format!("no {tool}");
    if std::env::var(STRICT).is_ok_and(|strict| strict == "1") {
        bail!("{reason}, and {STRICT} is set");
    }
    note("skipped", reason)
}

/// Skips the running test because it does not apply to this server, or because it needs something
/// that CI does not install. Returns normally in strict runs as well.
///
/// # Errors
/// When the list of skipped tests cannot be written.
pub fn skip_optional(reason: impl Display) -> Outcome {
    note("skipped", reason)
}

/// Reports that the running test goes on without one of its cases. The test still counts as passed.
///
/// # Errors
/// When the list of skipped tests cannot be written.
pub fn skip_case(reason: impl Display) -> Outcome {
    note("skipped in part", reason)
}

/// Appends the running test, its outcome and the reason to the list.
fn note(what: &str, reason: impl Display) -> Outcome {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("{test}: {what}, {reason}\n");
    match std::env::var_os(LIST) {
        // One write, so that the lines of concurrent tests do not mix.
        Some(path) => OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)?
            .write_all(line.as_bytes())?,
        None => eprint!("{line}"),
    }
    Ok(())
}
