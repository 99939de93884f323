//! `cargo xtask bench` and `cargo xtask eval`: commands of a separate package, which is built when
//! one of them is called.
use crate::cargo::cargo;
use crate::setup::PgChoice;
use crate::signals;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs a command of the benchmark package with these arguments.
///
/// # Errors
/// If cargo cannot be run.
pub fn command(name: &str, choice: &PgChoice, arguments: &[OsString]) -> Result<ExitCode> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "neardup-bench", "--"]);
    command.args(choice.to_arguments());
    if let Ok(folder) = std::env::current_dir() {
        // Arguments name files relative to the user's folder.
        command.current_dir(folder);
    }
    // The child handles Ctrl-C itself, because it has to stop servers.
    let status = signals::while_interactive(|| command.arg(name).args(arguments).status())
        .context("cannot run cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
