//! `cargo xtask check`: checks rules that neither the compiler nor clippy checks. It needs no
//! server and takes at most a second.
//!
//! Each rule has a module, whose function `check` returns the violations of the rule.
mod columns;
mod directions;
mod examples;
mod imports;
mod links;
mod masked;
mod modules;
mod paths;
mod release;
mod sources;

use crate::cargo::workspace;
use crate::{generate, project, ui};
use anyhow::Result;
use sources::Source;
use std::process::ExitCode;

/// Violation of a rule in a file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    rule: &'static str,
    /// Path from the workspace's root, with slashes.
    path: String,
    /// Line number, from 1. 0 if the violation concerns the whole file.
    line: usize,
    /// What is wrong, and what to do about it.
    message: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rule,
            path,
            line,
            message,
        } = self;
        match line {
            0 => write!(f, "{path}: {rule}: {message}"),
            _ => write!(f, "{path}:{line}: {rule}: {message}"),
        }
    }
}

/// Options of `cargo xtask check`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Also check what a release needs: the project's address, and a date in the changelog
    #[arg(long)]
    release: bool,
}

/// Runs every check and prints the violations. The exit code is 0 if there are none, else 1.
///
/// # Errors
/// If a source cannot be read, or a generated file is outdated.
pub fn command(options: &Options) -> Result<ExitCode> {
    let sources = sources::read(workspace())?;
    let mut violations = violations(&sources);
    if options.release {
        violations.extend(missing_for_release(&sources));
    }
    for violation in &violations {
        println!("{violation}");
    }
    generate::ensure_current(workspace())?;
    if violations.is_empty() {
        ui::note(format!("{} files keep the rules", sources.len()));
    }
    Ok(ExitCode::from(u8::from(!violations.is_empty())))
}

/// Returns what the workspace lacks for a release, as one text; `None` if it lacks nothing.
///
/// # Errors
/// If a source cannot be read.
pub fn lacking_for_release() -> Result<Option<String>> {
    let missing = missing_for_release(&sources::read(workspace())?);
    let lines: Vec<String> = missing.iter().map(Violation::to_string).collect();
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}

fn missing_for_release(sources: &[Source]) -> Vec<Violation> {
    release::check(sources, env!("CARGO_PKG_VERSION"), project::repository())
}

fn violations(sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in sources {
        violations.extend(columns::check(source));
        violations.extend(paths::check(workspace(), source));
    }
    violations.extend(imports::check(sources));
    violations.extend(examples::check(sources));
    violations.extend(links::check(workspace(), sources));
    violations.sort();
    violations
}
