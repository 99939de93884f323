//! `cargo xtask`: the development commands of neardup.
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::setup::PgChoice;
use xtask::{
    book, check, cross, demo, generate, install, measure, package, psql, setup, signals, test,
    torture,
};

/// Development commands of neardup
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
    /// Find what the build needs, install it where possible, print the settings for a shell
    Setup,
    /// Find the near-duplicates in a set of documents, and show how
    ///
    /// Without a PATH: in the licence, README and copyright files that this machine has.
    Demo {
        /// A folder of text files, a .tsv (identifier, tab, text), or a .jsonl (an object with
        /// "text" or "body", and perhaps "id", per line); the last two also as .gz
        path: Option<PathBuf>,
        /// File of the report, an HTML page; target/demo-report.html by default
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
    },
    /// Run all tests, or those whose name contains a FILTER
    ///
    /// A filter also selects a whole package (sketch, blocktree, tests, ...), the golden files
    /// (regress) and the isolation tests (isolation).
    Test {
        /// Test on Citus too: the folder that its "make install DESTDIR=..." was given, or / if it
        /// is installed
        #[arg(long, value_name = "PATH")]
        citus: Option<PathBuf>,
        /// Run only the golden files and the tests over a connection
        #[arg(long)]
        server_only: bool,
        /// Parts of names
        filters: Vec<String>,
    },
    /// Run all tests, or those whose name contains a FILTER, and the example with sqlx, on each
    /// supported version, or on the versions of --pg
    Matrix {
        /// Parts of names
        filters: Vec<String>,
    },
    /// Run the tests of the pure packages and the golden files on 64-bit ARM, by QEMU
    ///
    /// Unpacks a compiler and a server from Debian into target/, some 210 MB, and takes long.
    Arm64(cross::Options),
    /// Run the tests of the pure packages on a big-endian machine, IBM Z, by QEMU
    S390x,
    /// Check the rules that the compiler does not check: imports, wide lines, the SQL script, ...
    Check,
    /// Convert the documents to a book of searchable HTML pages, in the target folder
    ///
    /// Uses the mdBook on PATH, or installs it from crates.io into the target folder.
    Book,
    /// Write python/COPYRIGHT: the licences of the crates in the package for Python
    Licences,
    /// Write the generated files: the SQL script, the list of messages, and parts of the reference
    Generate,
    /// Kill a server while it works, let it recover and check it, repeatedly
    ///
    /// Keeps the server's data of a round that fails, and names its folder at the end. The next
    /// run with the same seed repeats the round.
    Torture(torture::Options),
    /// Install the extension into a real server, the one that --pg-config describes
    Install,
    /// Make packages: for Debian, an archive with an installing script, PGXN, Python
    ///
    /// For each version of --pg, or for the server that setup finds. The same commit and compiler
    /// give the same bytes.
    Package(package::Options),
    /// Measure neardup against btree indexes and sequential scans; --help lists the options
    #[command(disable_help_flag = true)]
    Bench {
        /// Options of the benchmark
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measure how well fingerprints find similar documents, on sets with known similarities
    #[command(disable_help_flag = true)]
    Eval {
        /// Folders of sets, and options; --help lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Open psql on a private server with the extension; its data remain until --fresh
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
        let choice = &arguments.choice;
        match arguments.command {
            Command::Setup => setup::command(choice),
            Command::Demo { path, report } => {
                demo::command(choice, path.as_deref(), report.as_deref())
            }
            Command::Test {
                citus,
                server_only,
                filters,
            } => test::command(choice, &filters, server_only, citus.as_deref()),
            Command::Matrix { filters } => test::matrix(choice, &filters),
            Command::Arm64(options) => cross::arm64(&options),
            Command::S390x => cross::s390x(),
            Command::Check => check::command(),
            Command::Book => book::command(),
            Command::Licences => package::write_licences(),
            Command::Generate => generate::command(),
            Command::Torture(options) => torture::command(choice, &options),
            Command::Install => install::command(choice),
            Command::Package(options) => package::command(choice, &options),
            Command::Bench { arguments } => measure::command("bench", choice, &arguments),
            Command::Eval { arguments } => measure::command("eval", choice, &arguments),
            Command::Psql { fresh, arguments } => psql::command(choice, fresh, &arguments),
        }
    });
    xtask::exit_code(result)
}
