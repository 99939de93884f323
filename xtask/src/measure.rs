//! `cargo xtask bench` and `cargo xtask eval`: build and run the separate package `neardup-bench`,
//! so that other commands need not build its dependencies.
use crate::cargo::cargo;
use crate::signals;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command `name` (`bench` or `eval`) of the benchmark package with the user's
/// `arguments`. Returns the command's exit code.
///
/// # Errors
/// If cargo cannot be run.
pub fn command(name: &str, arguments: &[OsString]) -> Result<ExitCode> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "neardup-bench", "--"]);
    if let Ok(folder) = std::env::current_dir() {
        // The arguments may name files relative to the folder in which the user called cargo.
        command.current_dir(folder);
    }
    // The benchmark handles Ctrl-C itself, because it has to stop its servers.
    let status = signals::while_interactive(|| command.arg(name).args(arguments).status())
        .context("cannot run cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
