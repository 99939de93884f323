//! Calls of other programs.
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs a program without showing its output.
///
/// # Errors
/// If it cannot be run, or fails; then with what it wrote to standard error.
pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(|_| ())
}

/// Runs a program and returns its standard output, without blanks at both ends.
///
/// # Errors
/// As [`run`], and if the output is not UTF-8.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", errors.trim());
    let text = String::from_utf8(output.stdout)
        .with_context(|| format!("the output of {}", command.get_program().display()))?;
    Ok(text.trim().to_owned())
}

/// Makes a virtual environment of Python with packages, which pip's `arguments` name. Packages that
/// would have to be compiled are refused.
///
/// # Errors
/// If there is no python3 with venv, or the packages cannot be installed.
pub fn make_venv(folder: &Path, arguments: &[&OsStr]) -> Result<()> {
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"];
    run(Command::new(folder.join("bin/python"))
        .args(pip)
        .args(arguments))
}

/// Returns whether a program starts and tells its version.
pub fn runs(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}
