//! Output for the user. Progress goes to standard error, results to standard output.
use anyhow::Result;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Returns whether standard error is a terminal that can show moving progress.
fn lively() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stderr().is_terminal() && std::env::var_os("CI").is_none() && !dumb
}

/// Announces a part that prints its own lines.
pub fn heading(text: impl Display) {
    eprintln!("==> {text}");
}

/// Prints a remark.
pub fn note(text: impl Display) {
    eprintln!("    {text}");
}

/// Prints the error that ends the program.
pub fn error(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

/// Runs one step with a spinner, or after a plain line if there is no terminal. Prints its
/// duration.
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

/// Formats a number with separated thousands.
pub fn number(value: impl TryInto<u64>) -> String {
    value
        .try_into()
        .map_or(String::new(), |value| HumanCount(value).to_string())
}

/// Formats a number and a noun in the singular or plural.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}
