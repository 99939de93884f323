//! Output of the commands for the user. Progress goes to standard error, results go to standard
//! output.
use anyhow::Result;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Returns whether standard error is a terminal that can show a spinner.
fn lively() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stderr().is_terminal() && std::env::var_os("CI").is_none() && !dumb
}

/// Prints a heading before the output of a part of the command, such as the tests on one PostgreSQL
/// version.
pub fn heading(text: impl Display) {
    eprintln!("==> {text}");
}

/// Prints an indented remark.
pub fn note(text: impl Display) {
    eprintln!("    {text}");
}

/// Prints the error that ends the program, with its causes.
pub fn error(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

/// Calls `run` as one step of the command. `text` describes the step. Meanwhile shows a spinner, or
/// prints a plain line if there is no terminal. Prints the duration of the step at the end.
pub fn step<T>(text: impl Into<Cow<'static, str>>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let text = text.into();
    let start = Instant::now();
    if !lively() {
        eprint!("==> {text} ... ");
        let result = run();
        eprintln!("{:.1?}", start.elapsed());
        return result;
    }
    let bar = ProgressBar::new_spinner().with_message(text.clone());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    let result = run();
    bar.finish_and_clear();
    if result.is_ok() {
        heading(format!("{text} ({:.1?})", start.elapsed()));
    }
    result
}

/// Formats a number with separators between thousands. Returns an empty string if the number does
/// not fit into a `u64`.
pub fn number(value: impl TryInto<u64>) -> String {
    value
        .try_into()
        .map_or(String::new(), |value| HumanCount(value).to_string())
}

/// Formats a number and a noun. The noun is `one` for the number 1, and `many` for other numbers.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}
