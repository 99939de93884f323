//! Program behind `cargo xtask bench` and `cargo xtask eval`. It is a separate package, so that the
//! other `cargo xtask` commands build without the dependencies of these two.
mod bench;
mod colours;
mod eval;
mod lines;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use xtask::setup::PgChoice;
use xtask::signals;

/// Benchmarks of neardup, and evaluation of its fingerprints
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the speed of neardup beside btree indexes, sequential scans and other programs
    Bench {
        #[command(flatten)]
        options: Box<bench::Options>,
        #[command(flatten)]
        choice: PgChoice,
    },
    /// Measure which share of the similar documents fingerprints find, on sets of documents with
    /// known similarities
    Eval(eval::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = signals::install().and_then(|()| match arguments.command {
        Command::Bench { options, choice } => bench::command(&choice, &options),
        Command::Eval(options) => eval::command(&options),
    });
    xtask::exit_code(result)
}
