//! Builds Rust test programs by cargo, and runs them. cargo itself would run them one after the
//! other; this module can run several at once.
use super::Counts;
use super::selection::{Package, Selected};
use crate::cargo::{cargo, workspace};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable that makes test programs print the time of each test.
const TIMES: &str = "NEARDUP_TEST_TIMES";

/// Test program of a package, built by cargo.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// Package to which the tests in the program belong.
    pub package: &'static Package,
    /// Name of the program's target in cargo: the name of the library, or of a file in the
    /// package's folder `tests`.
    pub target: String,
    /// Path of the executable.
    pub path: PathBuf,
}

impl Program {
    /// Returns the text that is printed before each line of the program's output: the name of the
    /// package, followed by the name of the target if it is another one.
    pub fn title(&self) -> String {
        match self.package.name.replace('-', "_") == self.target {
            true => self.package.name.to_owned(),
            false => format!("{}, {}", self.package.name, self.target),
        }
    }

    /// Returns a command that runs the program's tests whose names contain one of `filters`.
    /// Without filters, it runs all tests. Like cargo, it runs them in the package's folder.
    pub fn command(&self, filters: &[String]) -> Command {
        let folder = workspace().join(self.package.folder);
        let mut command = Command::new(&self.path);
        command.args(filters).current_dir(&folder);
        command.env("CARGO_MANIFEST_DIR", folder);
        if std::env::var_os(TIMES).is_some() {
            // The test framework libtest reports times only as an unstable option.
            command.env("RUSTC_BOOTSTRAP", "1");
            command.args(["-Zunstable-options", "--report-time"]);
        }
        command
    }
}

/// Builds the test programs of the selected packages, and returns them.
///
/// # Errors
///
/// If a program does not compile.
pub fn build(packages: &[Selected]) -> Result<Vec<Program>> {
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = cargo();
    command.args([
        "test",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    // One call of cargo builds all packages. Separate calls would build dependencies again with
    // other features.
    for Selected { package, .. } in packages {
        command.args(["--package", package.name]);
    }
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "the tests could not be built; cargo says why above"
    );
    let mut programs = Vec::new();
    for line in output.stdout.lines() {
        let message = serde_json::from_str(&line?).context("cannot read a message of cargo")?;
        programs.extend(program_of(&message, packages));
    }
    Ok(programs)
}

/// Returns the test program that `message`, a JSON message of `cargo test --no-run`, reports as
/// built. Returns `None` for other messages, and for a program of a package that is not in
/// `packages`.
fn program_of(message: &Value, packages: &[Selected]) -> Option<Program> {
    let path = message["executable"].as_str()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let is_of = |selected: &&Selected| folder.ends_with(selected.package.folder);
    Some(Program {
        package: packages.iter().find(is_of)?.package,
        target: message["target"]["name"].as_str()?.to_owned(),
        path: PathBuf::from(path),
    })
}

/// Runs a test program and counts its tests. `command` runs the program. Prints a line for each
/// completed test, which begins with `title`. Prints the output of failed tests only at the end,
/// because the output of concurrent programs would mix.
///
/// # Errors
///
/// If the program cannot be run.
pub fn run(title: &str, mut command: Command) -> Result<Counts> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {title}"))?;
    let (mut counts, mut rest) = (Counts::default(), String::new());
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            if line.starts_with("test ") && !line.starts_with("test result: ") {
                println!("{title}: {line}");
            } else if !is_noise(&line) {
                rest += &format!("{line}\n");
            }
            counts += Counts::from_line(&line);
        }
    }
    let status = child.wait()?;
    if !rest.is_empty() {
        print!("{title}:\n{rest}");
    }
    if !status.success() && counts.failed == 0 {
        eprintln!("{title} ended ({status}) without naming a test; counted as one failure");
        counts.failed = 1;
    }
    Ok(counts)
}

/// Returns whether a line in the output of a test program is without information, so that it is not
/// printed. With filters, many programs have no tests to run.
fn is_noise(line: &str) -> bool {
    line.is_empty() || line.starts_with("running ") || line.starts_with("test result: ok. 0 passed")
}
