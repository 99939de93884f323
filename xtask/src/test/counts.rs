//! Counts passed, failed and skipped tests, and reads these numbers from the output of test
//! programs.
use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

/// Numbers of tests, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of tests that passed.
    pub passed: usize,
    /// Number of tests that failed.
    pub failed: usize,
    /// Number of tests that were not run, for example because a tool is missing.
    pub skipped: usize,
}

impl Counts {
    /// Returns the counts in the result line of a Rust test program:
    /// `test result: FAILED. 3 passed; 1 failed; ...`. Returns zeros for other lines.
    pub fn from_line(line: &str) -> Self {
        if !line.starts_with("test result: ") {
            return Self::default();
        }
        let number = |what: &str| -> Option<usize> {
            let (before, _) = line.split_once(what)?;
            before.split_whitespace().last()?.parse().ok()
        };
        Self {
            passed: number(" passed;").unwrap_or(0),
            failed: number(" failed;").unwrap_or(0),
            skipped: number(" ignored;").unwrap_or(0),
        }
    }

    /// Counts the tests in `list` as skipped instead of passed, because a test program counts a
    /// skipped test as passed. `tests/support/skip.rs` writes the list.
    pub fn skip(&mut self, list: &str) {
        let skipped = skipped_tests(list);
        self.passed -= skipped;
        self.skipped += skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Returns the number of different tests in the list of skipped tests, which
/// `tests/support/skip.rs` writes. A test that skips only some of its cases has another kind of
/// line and does not count.
fn skipped_tests(lines: &str) -> usize {
    let tests = lines
        .lines()
        .filter_map(|line| line.split_once(": skipped, "));
    tests.map(|(test, _)| test).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_result_lines() {
        let line = "test result: FAILED. 13 passed; 2 failed; 1 ignored; 0 measured; \
                    4 filtered out; finished in 0.03s";
        let expected = Counts {
            passed: 13,
            failed: 2,
            skipped: 1,
        };
        assert_eq!(Counts::from_line(line), expected);
        assert_eq!(Counts::from_line("test a::b ... ok"), Counts::default());
        assert_eq!(Counts::from_line("13 passed; 2 failed;"), Counts::default());
    }

    #[test]
    fn counts_each_skipped_test_once() {
        let lines = "engines::spark: skipped, no Spark\nengines::spark: skipped, no Spark\n\
                     documents::all: skipped in part, no pg_trgm\nwheel::a: skipped, no Python\n";
        let mut counts = Counts {
            passed: 5,
            failed: 1,
            skipped: 1,
        };
        counts.skip(lines);
        let expected = Counts {
            passed: 3,
            failed: 1,
            skipped: 3,
        };
        assert_eq!(counts, expected);
    }
}
