//! Implements `cargo xtask bench` and `cargo xtask eval`. It is a separate package, so that the
//! other commands build without its dependencies.
mod bench;
mod colours;
mod eval;
mod lines;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use xtask::setup::PgChoice;
use xtask::signals;

/// Benchmarks and evaluation of neardup
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    choice: PgChoice,
}

#[derive(Subcommand)]
enum Command {
    /// Measure neardup beside btree indexes and sequential scans
    Bench(bench::Options),
    /// Measure how well fingerprints find similar documents, on sets with known similarities
    Eval(eval::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = signals::install().and_then(|()| match arguments.command {
        Command::Bench(options) => bench::command(&arguments.choice, &options),
        Command::Eval(options) => eval::command(&options),
    });
    xtask::exit_code(result)
}
