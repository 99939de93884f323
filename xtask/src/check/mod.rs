//! `cargo xtask check`: rules that neither the compiler nor clippy checks. It needs no server and
//! takes at most a second.
//!
//! Each check returns the violations of its rule.
mod columns;
mod directions;
mod examples;
mod imports;
mod links;
mod masked;
mod modules;
mod paths;
mod sources;

use crate::cargo::workspace;
use crate::{generate, ui};
use anyhow::Result;
use sources::Source;
use std::process::ExitCode;

/// Violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    rule: &'static str,
    /// Path from the workspace's root, with slashes.
    path: String,
    /// Line number, from 1. 0 for a whole file.
    line: usize,
    /// Defect and remedy.
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

/// Runs every check, prints the violations and returns success if there are none.
///
/// # Errors
/// If a source cannot be read, or a generated file is outdated.
pub fn command() -> Result<ExitCode> {
    let sources = sources::read(workspace())?;
    let violations = violations(&sources);
    for violation in &violations {
        println!("{violation}");
    }
    generate::ensure_current(workspace())?;
    if violations.is_empty() {
        ui::note(format!("{} files keep the rules", sources.len()));
    }
    Ok(ExitCode::from(u8::from(!violations.is_empty())))
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
