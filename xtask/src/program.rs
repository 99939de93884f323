//! Calls of other programs.
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs a program without showing its output.
///
/// # Errors
/// If it cannot be run or fails. The error contains its standard error output.
pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(|_| ())
}

/// Runs a program and returns its trimmed standard output.
///
/// # Errors
/// Fails like [`run`], and if the output is not UTF-8.
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

/// Creates a Python virtual environment with the packages that pip's `arguments` name. Rejects
/// packages that must be compiled.
///
/// # Errors
/// If python3 with venv is missing, or the packages cannot be installed.
pub fn make_venv(folder: &Path, arguments: &[&OsStr]) -> Result<()> {
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"];
    run(Command::new(folder.join("bin/python"))
        .args(pip)
        .args(arguments))
}

/// Returns whether a program starts and prints its version.
pub fn runs(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}
