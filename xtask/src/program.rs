//! Calls of other programs.
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Runs a program without showing its output.
///
/// # Errors
/// If it cannot be run, or fails; then with what it wrote to standard error.
pub fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", errors.trim());
    Ok(())
}
