//! Runs other programs, reports their errors, and writes scripts.
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Runs a program without showing its output.
///
/// # Errors
/// If the program cannot be run or fails. The error contains what the program wrote to standard
/// error.
pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(|_| ())
}

/// Runs a program and returns its standard output without white space at both ends.
///
/// # Errors
/// If the program cannot be run or fails, like [`run`], or if its output is not UTF-8.
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

/// Creates a Python virtual environment in `folder`, and installs the packages that pip's
/// `arguments` name. Rejects packages that would have to be compiled.
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

/// Returns whether a program exists and can print its version.
pub fn runs(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// Writes an executable script with this text.
pub fn write_program(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, PermissionsExt::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", path.display()))
}
