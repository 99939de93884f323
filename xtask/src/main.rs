//! `cargo xtask`: set-up, demo, tests, installation and benchmarks of neardup.
mod bench;
mod cargo;
mod check;
mod demo;
mod eval;
mod extension;
mod install;
mod private;
mod psql;
mod setup;
mod signals;
mod sql;
mod test;
mod torture;
mod ui;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Development commands of neardup
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The pg_config of the PostgreSQL to build for [default: $PG_CONFIG, $PGRX_PG_CONFIG_PATH,
    /// the one on PATH, the newest in /usr/lib/postgresql]
    #[arg(long, global = true, value_name = "PROGRAM")]
    pg_config: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Find what the build needs, install it where possible, print the settings for a shell
    Setup,
    /// Find the near-duplicates in a set of documents, and show how
    ///
    /// Without a PATH: in the licence, README and copyright files that this machine has.
    Demo {
        /// A folder of text files, a .tsv (identifier, tab, text), or a .jsonl (an object with
        /// "text" or "body", and perhaps "id", per line); the last two also as .gz
        path: Option<PathBuf>,
    },
    /// Run all tests, or those whose name contains a FILTER
    ///
    /// A filter also selects a whole package (sketch, blocktree, tests, ...), the golden files
    /// (regress) and the isolation tests (isolation).
    Test {
        /// Parts of names
        filters: Vec<String>,
    },
    /// Check the rules that no compiler knows: imports, wide lines, the SQL script, ...
    Check(check::Options),
    /// Put the extension's SQL script together from the files in sql/sections
    Sql,
    /// Kill a server in the midst of its work, let it recover and check it, again and again
    ///
    /// Of a round that fails the server's data is kept, in a folder that is named in the end. The
    /// next run with the same seed makes it anew.
    Torture(torture::Options),
    /// Install the extension into a real server, the one that --pg-config describes
    Install,
    /// Measure neardup beside btree indexes and sequential scans
    Bench(bench::Options),
    /// Measure how well fingerprints find similar documents, on sets with known similarities
    Eval(eval::Options),
    /// Open psql on a private server with the extension; its data stay until --fresh
    Psql {
        /// Begin with a new, empty server
        #[arg(long)]
        fresh: bool,
        /// Arguments for psql, for example: -- -c "SELECT 1"
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = signals::install().and_then(|()| {
        let pg_config = arguments.pg_config.as_deref();
        match arguments.command {
            Command::Setup => setup::command(pg_config),
            Command::Demo { path } => demo::command(pg_config, path.as_deref()),
            Command::Test { filters } => test::command(pg_config, &filters),
            Command::Check(options) => check::command(&options),
            Command::Sql => sql::command(),
            Command::Torture(options) => torture::command(pg_config, &options),
            Command::Install => install::command(pg_config),
            Command::Bench(options) => bench::command(pg_config, &options),
            Command::Eval(options) => eval::command(&options),
            Command::Psql { fresh, arguments } => psql::command(pg_config, fresh, &arguments),
        }
    });
    match result {
        Ok(code) => code,
        Err(error) => {
            // What fails after Ctrl-C fails because of it; the signals' thread ends the program.
            signals::wait_if_interrupted();
            ui::error(&error);
            let code = if error.is::<setup::Missing>() { 2 } else { 1 };
            ExitCode::from(code)
        }
    }
}
