//! Output for the user. Progress goes to standard error, results to standard output.
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Returns whether standard error is a terminal that can show moving progress.
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
    let counter = Counter::new(text, "{spinner} {msg} ({elapsed})");
    let result = run();
    match result {
        Ok(_) => {
            counter.finish();
        }
        Err(_) => counter.bar.finish_and_clear(),
    }
    result
}

/// Counts things under a spinner. Without a terminal it says what it does at the beginning, and how
/// long it took in the end when that was long.
pub struct Counter {
    bar: ProgressBar,
    text: Cow<'static, str>,
    start: Instant,
}

impl Counter {
    /// Begins to count.
    pub fn counting(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(text.into(), "{spinner} {msg}: {human_pos} ({elapsed})")
    }

    fn new(text: Cow<'static, str>, template: &str) -> Self {
        let bar = if lively() {
            ProgressBar::new_spinner().with_message(text.clone())
        } else {
            eprintln!("==> {text}");
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self {
            bar,
            text,
            start: Instant::now(),
        }
    }

    /// One more.
    pub fn add_one(&self) {
        self.bar.inc(1);
    }

    /// Ends the count with a line that says how long it took, and returns that.
    pub fn finish(self) -> Duration {
        let time = self.start.elapsed();
        self.bar.finish_and_clear();
        if lively() {
            eprintln!("==> {} ({})", self.text, duration(time));
        } else if time > Duration::from_secs(2) {
            note(format!("took {}", duration(time)));
        }
        time
    }
}

/// A whole number with a comma between the thousands.
pub fn number(value: impl TryInto<u128>) -> String {
    let digits = value
        .try_into()
        .map_or(String::new(), |v: u128| v.to_string());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and a noun, in the singular where that is due.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// A size in the unit that suits it.
pub fn size(bytes: u64) -> String {
    if bytes < 10_000 {
        format!("{} bytes", number(bytes))
    } else if bytes < 10_000_000 {
        format!("{} kB", number((bytes + 500) / 1000))
    } else {
        format!("{} MB", number((bytes + 500_000) / 1_000_000))
    }
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
    fn numbers_have_thousands_apart() {
        assert_eq!(number(7_usize), "7");
        assert_eq!(number(123_456_u64), "123,456");
        assert_eq!(number(1_000_000_i64), "1,000,000");
        assert_eq!(plural(1, "pair", "pairs"), "1 pair");
        assert_eq!(plural(1200, "pair", "pairs"), "1,200 pairs");
        assert_eq!(size(8192), "8,192 bytes");
        assert_eq!(size(13_302_024), "13 MB");
    }

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
