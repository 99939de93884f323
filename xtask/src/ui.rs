//! What the user sees while things run. Progress goes to standard error, results to standard output.
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Whether standard error is a terminal that can show moving progress.
fn lively() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stderr().is_terminal() && std::env::var_os("CI").is_none() && !dumb
}

/// Announces a part that prints lines of its own.
pub fn heading(text: impl Display) {
    eprintln!("==> {text}");
}

/// A remark.
pub fn note(text: impl Display) {
    eprintln!("    {text}");
}

/// Says why the program ends.
pub fn error(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

/// Runs one step under a spinner (plain lines when there is no terminal) and says how long it took.
pub fn step<T>(text: impl Into<Cow<'static, str>>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let text = text.into();
    let bar = spinner(text.clone());
    let start = Instant::now();
    let result = run();
    bar.finish_and_clear();
    if result.is_ok() {
        eprintln!("==> {text} ({})", duration(start.elapsed()));
    }
    result
}

fn spinner(text: Cow<'static, str>) -> ProgressBar {
    if !lively() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(text);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// A time in the unit that suits it, three digits at most: `0.8 us`, `12 ms`, `3.4 s`, `2 min 5 s`.
pub fn duration(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    let short = |value: f64, unit: &str| {
        if value < 9.95 {
            format!("{value:.1} {unit}")
        } else {
            format!("{value:.0} {unit}")
        }
    };
    if us < 999.5 {
        short(us, "us")
    } else if us < 999_500.0 {
        short(us / 1e3, "ms")
    } else if us < 99.5e6 {
        short(us / 1e6, "s")
    } else {
        let seconds = time.as_secs();
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_fitting_unit() {
        let shown = |us: u64| duration(Duration::from_micros(us));
        assert_eq!(shown(8), "8.0 us");
        assert_eq!(shown(999), "999 us");
        assert_eq!(shown(1_000), "1.0 ms");
        assert_eq!(shown(12_345), "12 ms");
        assert_eq!(shown(999_700), "1.0 s");
        assert_eq!(shown(99_400_000), "99 s");
        assert_eq!(shown(125_000_000), "2 min 5 s");
    }
}
