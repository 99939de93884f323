//! Tests in Rust: those of the pure packages, and those over a connection.
use super::{Counts, PURPOSE, node, python};
use crate::cargo::cargo;
use crate::private::Private;
use crate::ui;
use anyhow::{Context, Result};
use neardup_pgserver::Server;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Variable that proptest reads the seed of its random cases from.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Packages with tests in Rust; only the last needs the server. That of the benchmarks is left to
/// `cargo test`, since it is no use to build its dependencies here.
const PACKAGES: [&str; 7] = [
    "neardup-sketch",
    "neardup-blocktree",
    "neardup-textdiff",
    "neardup-report",
    "neardup-pgserver",
    "xtask",
    "neardup-tests",
];

/// Runs the tests that `filters` select: all of a package that is named, else those named.
pub fn run(private: &Private, server: &Server, filters: &[String]) -> Result<Counts> {
    let is_filtered = !filters.is_empty();
    // No test in Rust has a slash in its name; golden files have: regress/dedup.
    let filters: Vec<String> = (filters.iter())
        .filter(|filter| !filter.contains('/'))
        .cloned()
        .collect();
    if filters.is_empty() && is_filtered {
        return Ok(Counts::default());
    }
    let (whole, rest): (Vec<&str>, Vec<&str>) = PACKAGES
        .iter()
        .partition(|name| is_selected(name, &filters));
    let mut counts = Counts::default();
    // Together, as packages that are built apart have dependencies with other features, rebuilt.
    if !whole.is_empty() {
        counts += cargo_test(private, server, &whole, &[])?;
    }
    if !rest.is_empty() {
        counts += cargo_test(private, server, &rest, &filters)?;
    }
    Ok(counts)
}

/// Returns whether the filters (none: everything) select all tests of a package.
fn is_selected(package: &str, filters: &[String]) -> bool {
    filters.is_empty()
        || filters
            .iter()
            .any(|filter| package.contains(filter.as_str()))
}

/// Runs `cargo test` for `packages`, passes its output on and counts.
fn cargo_test(
    private: &Private,
    server: &Server,
    packages: &[&str],
    filters: &[String],
) -> Result<Counts> {
    ui::heading(format!("cargo test: {}", packages.join(", ")));
    let seed = property_seed();
    println!("{SEED}={seed}");
    let skip_list = private.instance.data_root.join("test-skipped.txt");
    if skip_list.exists() {
        fs::remove_file(&skip_list)?;
    }
    let mut command = cargo();
    command.args(["test", "--no-fail-fast"]);
    for name in packages {
        command.args(["--package", name]);
    }
    command
        .arg("--")
        .args(filters)
        .env(SEED, &seed)
        .env("NEARDUP_TEST_SKIPPED", &skip_list)
        .env("NEARDUP_TEST_CONNINFO", server.conninfo("postgres"));
    provide(&mut command, private, PURPOSE);
    if private.has_citus {
        command.env("NEARDUP_TEST_CITUS", "1");
    }
    if packages.contains(&"neardup-tests") {
        if let Some(interpreter) = python::with_drivers(filters)? {
            command.env("NEARDUP_TEST_PYTHON", interpreter);
        }
        if let Some(folder) = node::with_packages(filters) {
            command.env("NEARDUP_TEST_NODE", folder);
        }
        if let Some(browser) = node::with_browser(filters) {
            command
                .env("NEARDUP_TEST_BROWSER", browser.packages)
                .env("NEARDUP_TEST_CHROMIUM", browser.chromium);
        }
    }
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let mut counts = Counts::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            if !is_noise(&line) {
                println!("{line}");
            }
            counts += of_line(&line);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        println!("property tests ran with {SEED}={seed}");
        if counts.failed == 0 {
            // A test that does not compile, or a process that died under its tests.
            eprintln!("cargo test failed ({status}) without naming a test; counted as one failure");
            counts.failed = 1;
        }
    }
    let lines = fs::read_to_string(&skip_list).unwrap_or_default();
    print!("{lines}");
    // libtest counts a skipped test as passed.
    let skipped = skipped_tests(&lines);
    counts.passed -= skipped;
    counts.skipped += skipped;
    Ok(counts)
}

/// Seed of the property tests: the caller's, else a fresh one.
fn property_seed() -> String {
    std::env::var(SEED).unwrap_or_else(|_| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default().as_nanos().to_string()
    })
}

/// Counts the tests in a list of skipped tests, whose lines `tests/support/skip.rs` writes. A test
/// that skips only some of its cases counts as passed.
fn skipped_tests(lines: &str) -> usize {
    let tests = lines
        .lines()
        .filter_map(|line| line.split_once(": skipped, "));
    tests.map(|(test, _)| test).collect::<BTreeSet<_>>().len()
}

/// Tells tests where they can make servers of their own; the names of these begin with `purpose`.
pub fn provide(command: &mut Command, private: &Private, purpose: &str) {
    let instance = &private.instance;
    command
        .env("NEARDUP_TEST_BINDIR", &instance.bindir)
        .env("NEARDUP_TEST_DATA_ROOT", &instance.data_root)
        .env("NEARDUP_TEST_OS_USER", instance.user.name())
        .env("NEARDUP_TEST_SERVERS", purpose);
}

/// Lines about targets without tests, of which a filtered run has many.
fn is_noise(line: &str) -> bool {
    line.is_empty() || line == "running 0 tests" || line.starts_with("test result: ok. 0 passed")
}

/// Reads `test result: FAILED. 3 passed; 1 failed; ...`.
fn of_line(line: &str) -> Counts {
    let number = |what: &str| -> Option<usize> {
        let before = line
            .split(what)
            .next()
            .filter(|part| part.len() < line.len())?;
        before.split_whitespace().last()?.parse().ok()
    };
    if !line.starts_with("test result: ") {
        return Counts::default();
    }
    Counts {
        passed: number(" passed;").unwrap_or(0),
        failed: number(" failed;").unwrap_or(0),
        skipped: number(" ignored;").unwrap_or(0),
    }
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
        assert_eq!(of_line(line), expected);
        assert_eq!(of_line("test a::b ... ok"), Counts::default());
        assert_eq!(of_line("13 passed; 2 failed;"), Counts::default());
    }

    #[test]
    fn counts_each_skipped_test_once() {
        let lines = "engines::spark: skipped, no Spark\nengines::spark: skipped, no Spark\n\
                     documents::all: skipped in part, no pg_trgm\nwheel::a: skipped, no Python\n";
        assert_eq!(skipped_tests(lines), 2);
    }

    #[test]
    fn filters_select_packages_by_a_part_of_the_name() {
        let filters = ["sketch".to_owned()];
        assert!(is_selected("neardup-sketch", &filters));
        assert!(!is_selected("neardup-blocktree", &filters));
        assert!(is_selected("neardup-blocktree", &[]));
    }
}
