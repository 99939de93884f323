//! Command line of `cargo xtask`, the development commands of neardup.
use anyhow::Result;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::private::Variant;
use xtask::setup::PgChoice;
use xtask::{
    book, check, cross, demo, generate, install, measure, package, psql, setup, signals, test,
    torture,
};

/// Development commands of neardup
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    version,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find PostgreSQL and libclang for the build, install them where possible, and print the
    /// settings that plain cargo needs, for a shell
    Setup(PgChoice),
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
        #[command(flatten)]
        choice: PgChoice,
    },
    /// Run all tests, or those whose name contains a FILTER
    ///
    /// A filter also selects a whole package (sketch, blocktree, tests, ...), the golden files
    /// (regress) and the isolation tests (isolation).
    Test {
        #[command(flatten)]
        variant: Variant,
        /// Run only the tests that need a server: the golden files and the tests over a connection
        #[arg(long)]
        server_only: bool,
        /// Parts of the names of the tests to run [default: all tests]
        filters: Vec<String>,
        #[command(flatten)]
        choice: PgChoice,
    },
    /// Run all tests, or those whose name contains a FILTER, and the example with sqlx, on each
    /// supported version of PostgreSQL, or on the versions of --pg
    Matrix {
        /// Parts of the names of the tests to run [default: all tests]
        filters: Vec<String>,
        /// Major versions of PostgreSQL, as in 16,17,18 [default: all supported versions]
        #[arg(
            long,
            value_name = "VERSIONS",
            value_delimiter = ',',
            help_heading = "PostgreSQL"
        )]
        pg: Vec<u32>,
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
    Torture {
        #[command(flatten)]
        options: torture::Options,
        #[command(flatten)]
        choice: PgChoice,
    },
    /// Build the extension and install it into an existing server, which --pg-config names
    Install(PgChoice),
    /// Make packages: a Debian package, an archive with an install script, the sources for PGXN,
    /// and a Python wheel
    ///
    /// Builds for each version of --pg, or for the server that setup finds. The same commit and
    /// compiler give the same bytes.
    Package {
        #[command(flatten)]
        options: package::Options,
        #[command(flatten)]
        choice: PgChoice,
    },
    /// Make every file of a release in one folder, install and use each one that this machine can
    /// use, and write a manifest with sizes and checksums
    ///
    /// The files are those of `package`, the crate, packages for rpm (with rpmbuild), a list of
    /// components, and checksums. Without --dry-run, the project's address, a date in the
    /// changelog, DEBFULLNAME and DEBEMAIL must be set, and all files must be made.
    Release {
        #[command(flatten)]
        options: package::ReleaseOptions,
        #[command(flatten)]
        choice: PgChoice,
    },
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
        #[command(flatten)]
        choice: PgChoice,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    xtask::exit_code(signals::install().and_then(|()| run(arguments.command)))
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Setup(choice) => setup::command(&choice),
        Command::Demo {
            path,
            report,
            choice,
        } => demo::command(&choice, path.as_deref(), report.as_deref()),
        Command::Test {
            variant,
            server_only,
            filters,
            choice,
        } => test::command(&choice, &filters, server_only, &variant),
        Command::Matrix { filters, pg } => test::matrix(&pg, &filters),
        Command::Arm64(options) => cross::arm64(&options),
        Command::S390x => cross::s390x(),
        Command::Check(options) => check::command(&options),
        Command::Book => book::command(),
        Command::Licences => package::write_licences(),
        Command::Generate => generate::command(),
        Command::Torture { options, choice } => torture::command(&choice, &options),
        Command::Install(choice) => install::command(&choice),
        Command::Package { options, choice } => package::command(&choice, &options),
        Command::Release { options, choice } => package::release(&choice, &options),
        Command::Bench { arguments } => measure::command("bench", &arguments),
        Command::Eval { arguments } => measure::command("eval", &arguments),
        Command::Psql {
            fresh,
            arguments,
            choice,
        } => psql::command(&choice, fresh, &arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Commands that neither build for a server nor start one. `bench` and `eval` pass their
    /// arguments to another program.
    const WITHOUT_SERVER: [&str; 9] = [
        "arm64", "s390x", "check", "book", "licences", "generate", "bench", "eval", "help",
    ];

    #[test]
    fn a_server_can_be_chosen_where_there_is_one() {
        let mut command = Arguments::command();
        command.build();
        assert_eq!(
            command.render_version(),
            concat!("cargo xtask ", env!("CARGO_PKG_VERSION"), "\n")
        );
        for subcommand in command.get_subcommands() {
            let name = subcommand.get_name();
            let headings: Vec<_> = (subcommand.get_arguments())
                .filter(|argument| argument.get_long().is_some_and(|it| it.starts_with("pg")))
                .map(clap::Arg::get_help_heading)
                .collect();
            let expected: &[_] = match name {
                // It runs on versions of PostgreSQL, not on a given server.
                "matrix" => &[Some("PostgreSQL")],
                _ if WITHOUT_SERVER.contains(&name) => &[],
                _ => &[Some("PostgreSQL"); 2],
            };
            assert_eq!(headings, expected, "{name}");
        }
    }
}
