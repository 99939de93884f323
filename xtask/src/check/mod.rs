//! `cargo xtask check`: the rules that neither the compiler nor clippy know. Pure Rust, no server,
//! a second at most.
//!
//! Each check returns the places that break its rule. Old violations are counted in a file
//! ([`known::FILE`]); the counts can only fall.
mod columns;
mod directions;
mod examples;
mod imports;
mod known;
mod masked;
mod modules;
mod openers;
mod paths;
mod script;
mod sources;
mod unsafe_code;

use crate::cargo::workspace;
use crate::ui;
use anyhow::Result;
use known::Known;
use sources::Source;
use std::process::ExitCode;

/// Command line of the checks.
#[derive(clap::Args)]
pub struct Options {
    /// Lower the counts of known violations to those that are left
    #[arg(long)]
    lower: bool,
}

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    rule: &'static str,
    /// Path from the workspace's root, with slashes.
    path: String,
    /// Counted from 1; 0 for a whole file.
    line: usize,
    /// The defect, and the remedy.
    message: String,
}

/// Runs every check, prints the violations and returns whether there are none beyond the known.
///
/// # Errors
/// If a source cannot be read.
pub fn command(options: &Options) -> Result<ExitCode> {
    let sources = sources::read(workspace())?;
    let violations = violations(&sources);
    let mut known = Known::read(workspace())?;
    if options.lower {
        known.lower(&violations);
        known.write(workspace())?;
    }
    let complaints = known.complaints(&violations);
    for complaint in &complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() {
        ui::note(format!(
            "{} files keep the rules; {} known violations are left",
            sources.len(),
            known.total()
        ));
    }
    Ok(ExitCode::from(u8::from(!complaints.is_empty())))
}

fn violations(sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in sources {
        violations.extend(columns::check(source));
        violations.extend(openers::check(source));
        violations.extend(paths::check(workspace(), source));
        violations.extend(unsafe_code::check_free(source));
    }
    violations.extend(unsafe_code::check_total(sources));
    violations.extend(imports::check(sources));
    violations.extend(examples::check(sources));
    violations.extend(script::check(workspace(), sources));
    violations.sort();
    violations
}
