//! Command line of `cargo xtask`, the development commands of neardup.
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
    /// Find PostgreSQL and libclang for the build, install them where possible, and print the
    /// settings that plain cargo needs, for a shell
    Setup,
    /// Find the near-duplicates in a set of documents, print clusters and differences, and write a
    /// report
    ///
    /// Without a PATH: in the licence, README and copyright files that this machine has.
    Demo {
        /// A folder of text files, a .tsv (identifier, tab, text), or a .jsonl (an object with
        /// "text" or "body", and optionally "id", per line); .tsv and .jsonl also as .gz
        path: Option<PathBuf>,
        /// Write the report, an HTML page, to this file; target/demo-report.html by default
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
    },
    /// Run all tests, or those whose name contains a FILTER
    ///
    /// A filter also selects a whole package (sketch, blocktree, tests, ...), the golden files
    /// (regress) and the isolation tests (isolation).
    Test {
        /// Also test with Citus: PATH is the folder that the "make install DESTDIR=..." of Citus
        /// was given, or / if Citus is installed
        #[arg(long, value_name = "PATH")]
        citus: Option<PathBuf>,
        /// Run only the tests that need a server: the golden files and the tests over a connection
        #[arg(long)]
        server_only: bool,
        /// Parts of the names of the tests to run [default: all tests]
        filters: Vec<String>,
    },
    /// Run all tests, or those whose name contains a FILTER, and the example with sqlx, on each
    /// supported version of PostgreSQL, or on the versions of --pg
    Matrix {
        /// Parts of the names of the tests to run [default: all tests]
        filters: Vec<String>,
    },
    /// On emulated 64-bit ARM, run the tests of the crates that do not depend on PostgreSQL, and
    /// compare a server's results with the golden files
    ///
    /// Uses QEMU. Unpacks a compiler and a server from Debian into target/, some 210 MB, and takes
    /// long.
    Arm64(cross::Options),
    /// Run the tests of the packages without code for PostgreSQL on an emulated big-endian machine,
    /// IBM Z, by QEMU
    S390x,
    /// Check rules that the compiler does not check: imports, line widths, links, generated files
    Check(check::Options),
    /// Convert the documents to a book of searchable HTML pages, in the target folder
    ///
    /// Uses the mdBook on PATH if it has the right version, or installs it from crates.io into the
    /// target folder.
    Book,
    /// Write python/COPYRIGHT, the licences of the crates in the Python package
    Licences,
    /// Write the generated files: the SQL script, the list of messages, and parts of the SQL
    /// reference
    Generate,
    /// Kill a server while it works, let it recover and check it, repeatedly
    ///
    /// If a round fails, keeps the folder with the server's data and prints its path at the end. A
    /// run with the same seed does the same work in each round, but kills the server at other
    /// moments.
    Torture(torture::Options),
    /// Build the extension and install it into an existing server, which --pg-config names
    Install,
    /// Make packages: a Debian package, an archive with an install script, the sources for PGXN,
    /// and a Python wheel
    ///
    /// Builds for each version of --pg, or for the server that setup finds. The same commit and
    /// compiler give the same bytes.
    Package(package::Options),
    /// Make every file of a release in one folder, install and use each one that this machine can
    /// use, and write a manifest with sizes and checksums
    ///
    /// The files are those of `package`, the crate, packages for rpm (with rpmbuild), a list of
    /// components, and checksums. Without --dry-run, the project's address, a date in the
    /// changelog, DEBFULLNAME and DEBEMAIL must be set, and all files must be made.
    Release(package::ReleaseOptions),
    /// Measure the speed of neardup beside btree indexes, sequential scans and other programs;
    /// --help lists the options
    #[command(disable_help_flag = true)]
    Bench {
        /// Options of the benchmark; `bench --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measure which share of the similar documents fingerprints find, on sets of documents with
    /// known similarities
    #[command(disable_help_flag = true)]
    Eval {
        /// Folders of documents, and options; `eval --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Open psql on a private server with the extension; the server's data remain until --fresh
    Psql {
        /// Delete the private server's data first, and begin with an empty database
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
            Command::Check(options) => check::command(&options),
            Command::Book => book::command(),
            Command::Licences => package::write_licences(),
            Command::Generate => generate::command(),
            Command::Torture(options) => torture::command(choice, &options),
            Command::Install => install::command(choice),
            Command::Release(options) => package::release(choice, &options),
            Command::Package(options) => package::command(choice, &options),
            Command::Bench { arguments } => measure::command("bench", choice, &arguments),
            Command::Eval { arguments } => measure::command("eval", choice, &arguments),
            Command::Psql { fresh, arguments } => psql::command(choice, fresh, &arguments),
        }
    });
    xtask::exit_code(result)
}
