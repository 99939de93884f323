//! Development commands of neardup (`cargo xtask`), and the parts of them that the benchmark
//! package uses.
pub mod book;
pub mod cargo;
pub mod check;
pub mod cross;
pub mod demo;
mod documents;
pub mod extension;
pub mod generate;
pub mod install;
pub mod measure;
pub mod package;
pub mod private;
mod program;
mod project;
pub mod psql;
pub mod setup;
pub mod signals;
pub mod test;
mod tools;
pub mod torture;
pub mod ui;

use anyhow::Result;
use std::process::ExitCode;

/// Returns the exit code of the program for the result of a command. Prints the error, if there is
/// one. An error has the exit code 2 if the user has to install something, otherwise 1.
pub fn exit_code(result: Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) => {
            // After Ctrl-C, errors are consequences of the signal. The thread that handles signals
            // ends the program.
            signals::wait_if_interrupted();
            ui::error(&error);
            let code = if error.is::<setup::Missing>() { 2 } else { 1 };
            ExitCode::from(code)
        }
    }
}
