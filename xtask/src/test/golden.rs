//! Runs the golden files (`tests/regress`) and the isolation tests (`tests/isolation`) by
//! PostgreSQL's own test programs, pg_regress and pg_isolation_regress. A golden file is an SQL
//! script with its expected output.
use super::selection::is_selected;
use super::{Counts, PURPOSE};
use crate::cargo::workspace;
use crate::private::Private;
use crate::program::runs;
use crate::{extension, setup, ui};
use anyhow::{Context, Result};
use neardup_pgserver::{PgConfig, Server};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Set of tests that one of PostgreSQL's test programs runs.
struct Suite {
    /// Name of the suite's folder below `tests/`. A filter that is part of this name selects the
    /// whole suite.
    name: &'static str,
    /// Path of the test program within the folder of PostgreSQL's test programs.
    program: &'static str,
    /// Folder of the test scripts within the suite's folder, and the extension of their names.
    scripts: (&'static str, &'static str),
}

const REGRESS: Suite = Suite {
    name: "regress",
    program: "regress/pg_regress",
    scripts: ("sql", "sql"),
};
const ISOLATION: Suite = Suite {
    name: "isolation",
    program: "isolation/pg_isolation_regress",
    scripts: ("specs", "spec"),
};

/// Returns whether the filters select at least one golden file or isolation test. Without filters,
/// all are selected.
pub fn are_selected(filters: &[String]) -> Result<bool> {
    Ok(!REGRESS.tests(filters)?.is_empty() || !ISOLATION.tests(filters)?.is_empty())
}

/// Runs the golden files of `tests/regress` that `filters` select on `server`, or all without
/// filters. Returns the counts of passed, failed and skipped files.
pub fn regress(private: &Private, server: &Server, filters: &[String]) -> Result<Counts> {
    REGRESS.run(private, server, filters)
}

/// Runs the isolation tests of `tests/isolation` that `filters` select on `server`, or all without
/// filters. Such a test runs the steps of concurrent sessions in every order that it lists. Returns
/// the counts of passed, failed and skipped tests.
pub fn isolation(private: &Private, server: &Server, filters: &[String]) -> Result<Counts> {
    ISOLATION.run(private, server, filters)
}

impl Suite {
    /// Runs the tests of this suite that `filters` select on `server`. Prints the differences from
    /// the expected output, and returns the counts.
    fn run(&self, private: &Private, server: &Server, filters: &[String]) -> Result<Counts> {
        let input = workspace().join("tests").join(self.name);
        let tests = self.tests(filters)?;
        let selected = tests.len();
        let tests = self.without_missing_extensions(tests, private)?;
        let mut counts = Counts {
            skipped: selected - tests.len(),
            ..Counts::default()
        };
        if tests.is_empty() {
            return Ok(counts);
        }
        ui::heading(format!("{}: {}", self.program, tests.join(", ")));
        let Some((program, bindir)) = self.programs(private) else {
            counts += self.without_program(tests.len());
            return Ok(counts);
        };
        let output = self.output_dir(private)?;
        let mut child = private
            .instance
            .client(&program.to_string_lossy())
            .current_dir(&output)
            .arg(format!("--inputdir={}", input.display()))
            .arg(format!("--outputdir={}", output.display()))
            .arg(format!("--bindir={}", bindir.display()))
            .arg(format!("--host={}", server.socket_dir().display()))
            .arg(format!("--port={}", server.port()))
            .args(["--user=postgres", "--encoding=UTF8"])
            .arg(format!("--dbname=neardup_{}", self.name))
            .arg(format!("--load-extension={}", extension::NAME))
            .args(&tests)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let (mut passed, mut failed) = (0, 0);
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = line?;
                let line = String::from_utf8_lossy(&line);
                match outcome(&line) {
                    Some(true) => passed += 1,
                    Some(false) => failed += 1,
                    None => continue,
                }
                println!("{line}");
            }
        }
        let status = child.wait()?;
        // A test that could not start, for example because an extension is missing, has no line in
        // the output.
        let missing = tests.len().saturating_sub(passed + failed);
        counts.passed += passed;
        counts.failed += failed + missing;
        if !status.success() || missing > 0 {
            show_differences(&output, status, missing);
        }
        Ok(counts)
    }

    /// Returns the names of the suite's tests that the filters select.
    fn tests(&self, filters: &[String]) -> Result<Vec<String>> {
        let (folder, ending) = self.scripts;
        let folder = workspace().join("tests").join(self.name).join(folder);
        let mut tests = scripts(&folder, ending)?;
        tests.retain(|test| is_selected(&format!("{}/{test}", self.name), filters));
        Ok(tests)
    }

    /// Returns the suite's test program, and the folder of a psql for it. Prefers the programs of
    /// the tested server. If one of them is missing or does not run (as in one Python wheel),
    /// returns the programs of another installed PostgreSQL. `None` if no installation has both
    /// programs.
    fn programs(&self, private: &Private) -> Option<(PathBuf, PathBuf)> {
        let of = |pg: &PgConfig, bindir: &Path| {
            let program = pg.test_program(self.program)?;
            (runs(&program) && runs(&bindir.join("psql"))).then(|| (program, bindir.to_owned()))
        };
        of(&private.pg, &private.instance.bindir).or_else(|| {
            let others = setup::installed();
            let (programs, other) = others
                .iter()
                .find_map(|other| Some((of(other, other.bindir())?, other)))?;
            ui::note(format!("by the programs of {}", other.version));
            Some(programs)
        })
    }

    /// Returns `tests` without the tests whose scripts need an extension that this PostgreSQL does
    /// not have. Prints a note for each such test.
    fn without_missing_extensions(
        &self,
        tests: Vec<String>,
        private: &Private,
    ) -> Result<Vec<String>> {
        let (folder, ending) = self.scripts;
        let folder = workspace().join("tests").join(self.name).join(folder);
        let extensions = private.pg.sharedir().join("extension");
        let mut possible = Vec::new();
        for test in tests {
            let script = fs::read_to_string(folder.join(format!("{test}.{ending}")))?;
            let lacks = |name: &&str| !extensions.join(format!("{name}.control")).is_file();
            match needed_extensions(&script).find(lacks) {
                Some(missing) => ui::note(format!(
                    "{}/{test} is not run: this PostgreSQL does not come with {missing}",
                    self.name
                )),
                None => possible.push(test),
            }
        }
        Ok(possible)
    }

    /// Returns the counts of a suite whose test program is missing, as in some packages of
    /// PostgreSQL. `tests` is the number of its tests. All of them count as skipped, or as failed
    /// in a strict run (NEARDUP_TEST_STRICT=1).
    fn without_program(&self, tests: usize) -> Counts {
        ui::note(format!(
            "{} does not come with this PostgreSQL; {tests} test(s) of tests/{} skipped",
            self.program, self.name
        ));
        let is_strict = std::env::var("NEARDUP_TEST_STRICT").is_ok_and(|strict| strict == "1");
        let [failed, skipped] = if is_strict { [tests, 0] } else { [0, tests] };
        Counts {
            passed: 0,
            failed,
            skipped,
        }
    }

    /// Returns an empty folder for the output of the suite.
    fn output_dir(&self, private: &Private) -> Result<PathBuf> {
        let name = format!("{PURPOSE}-output-{}", self.name);
        let dir = private.instance.data_root.join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }
}

/// Returns the sorted names, without extension, of the files in `dir` that have the extension
/// `ending`. Empty if the folder does not exist.
fn scripts(dir: &Path, ending: &str) -> Result<Vec<String>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == ending)
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the extensions that a script needs: the names in its line `-- Needs: citext, hstore`.
fn needed_extensions(script: &str) -> impl Iterator<Item = &str> {
    let line = script
        .lines()
        .find_map(|line| line.strip_prefix("-- Needs: "));
    line.into_iter().flat_map(|names| names.split(", "))
}

/// Returns whether a test passed, from the line that the test program prints about it. PostgreSQL
/// 15 prints `test a ... ok   12 ms`, later versions print `ok 1   - a   12 ms`. Returns `None` for
/// other lines.
fn outcome(line: &str) -> Option<bool> {
    if line.starts_with("ok ") {
        return Some(true);
    }
    if line.starts_with("not ok ") {
        return Some(false);
    }
    let (_, result) = line.strip_prefix("test ")?.split_once("... ")?;
    Some(result.trim_start().starts_with("ok"))
}

/// Prints the differences from the expected output, which the test program has written to the
/// folder `output`. If there are none, prints the exit status of the test program and `missing`,
/// the number of tests without a result.
fn show_differences(output: &Path, status: std::process::ExitStatus, missing: usize) {
    let differences = output.join("regression.diffs");
    match fs::read(&differences) {
        Ok(bytes) if !bytes.is_empty() => {
            println!("{}", String::from_utf8_lossy(&bytes).trim_end());
            println!("(from {})", differences.display());
        }
        _ => println!("it failed ({status}); {missing} test(s) did not run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_outcomes_of_old_and_new_versions() {
        for (line, expected) in [
            (
                "test types                        ... ok           12 ms",
                Some(true),
            ),
            (
                "test types                        ... FAILED       12 ms",
                Some(false),
            ),
            (
                "ok 1         - types                                    12 ms",
                Some(true),
            ),
            (
                "not ok 2     - planner                                  12 ms",
                Some(false),
            ),
            ("============== running regression test queries", None),
            ("# using postmaster on /tmp, port 5432", None),
            ("1..2", None),
        ] {
            assert_eq!(outcome(line), expected, "{line}");
        }
    }

    #[test]
    fn reads_what_a_script_needs() {
        let script = "-- Keys.\n-- Needs: citext, hstore\nSELECT 1;\n";
        assert!(needed_extensions(script).eq(["citext", "hstore"]));
        assert!(needed_extensions("SELECT 1;\n").next().is_none());
    }
}
