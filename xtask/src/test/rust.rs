//! Rust tests of the pure packages, and over a connection.
use super::programs::{self, Program};
use super::selection::{SERVER_TESTS, Selected};
use super::{Counts, PURPOSE, node, python};
use crate::cargo::cargo;
use crate::private::Private;
use anyhow::Result;
use neardup_pgserver::Server;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Variable with the seed of proptest's random cases.
const SEED: &str = "PROPTEST_RNG_SEED";
/// Tests over a connection that wait for the server's clock. They start first.
const WAITING: [&str; 1] = ["old_snapshots::"];
/// Number of concurrent tests over a connection. It exceeds the number of cores, because tests
/// wait for locks, servers and the disk.
const SERVER_THREADS: &str = "4";

/// Built test programs, and their requirements.
pub struct RustTests<'a> {
    private: &'a Private,
    server: &'a Server,
    selected: &'a [Selected],
    programs: Vec<Program>,
    seed: String,
    skip_list: PathBuf,
}

impl<'a> RustTests<'a> {
    /// Builds the test programs of these packages.
    ///
    /// # Errors
    ///
    /// If one of them does not compile.
    pub fn build(
        private: &'a Private,
        server: &'a Server,
        selected: &'a [Selected],
    ) -> Result<Self> {
        let seed = property_seed();
        println!("{SEED}={seed}");
        let skip_list = private.instance.data_root.join("test-skipped.txt");
        if skip_list.exists() {
            fs::remove_file(&skip_list)?;
        }
        Ok(Self {
            private,
            server,
            selected,
            programs: programs::build(selected)?,
            seed,
            skip_list,
        })
    }

    /// Runs the tests of the packages that need no server, and their documentation examples.
    ///
    /// # Errors
    ///
    /// If a program cannot be run.
    pub fn pure(&self) -> Result<Counts> {
        let mut counts = Counts::default();
        for Selected { package, filters } in self.selected {
            if package.name == SERVER_TESTS {
                continue;
            }
            let is_of = |program: &&Program| program.package == *package;
            for program in self.programs.iter().filter(is_of) {
                let mut command = program.command(filters);
                command.env(SEED, &self.seed);
                counts += programs::run(&program.title(), command)?;
            }
            // Documentation examples have file names, which filters for tests do not match.
            if package.has_examples && filters.is_empty() {
                let mut command = cargo();
                command.args(["test", "--quiet", "--doc", "--package", package.name]);
                counts += programs::run(&format!("{}, examples", package.name), command)?;
            }
        }
        if counts.failed > 0 {
            println!("property tests ran with {SEED}={}", self.seed);
        }
        Ok(counts)
    }

    /// Runs the tests over a connection that mostly wait, if there are no filters.
    ///
    /// # Errors
    ///
    /// If the program cannot be run.
    pub fn waiting(&self) -> Result<Counts> {
        match self.suite() {
            Some((suite, [])) => {
                let mut command = suite.command(&WAITING.map(str::to_owned));
                self.provide_server(&mut command);
                programs::run("waiting", command)
            }
            _ => Ok(Counts::default()),
        }
    }

    /// Installs requirements and runs the other tests over a connection.
    ///
    /// # Errors
    ///
    /// If the program cannot be run, or the Python package cannot be built.
    pub fn over_connections(&self) -> Result<Counts> {
        let Some((suite, filters)) = self.suite() else {
            return Ok(Counts::default());
        };
        let mut command = suite.command(filters);
        if filters.is_empty() {
            command.args(WAITING.iter().flat_map(|name| ["--skip", *name]));
        }
        if std::env::var_os("RUST_TEST_THREADS").is_none() {
            command.env("RUST_TEST_THREADS", SERVER_THREADS);
        }
        self.provide_server(&mut command);
        if let Some(interpreter) = python::with_drivers(filters)? {
            command.env("NEARDUP_TEST_PYTHON", interpreter);
        }
        if let Some(folder) = node::with_packages(filters) {
            command.env("NEARDUP_TEST_NODE", folder);
        }
        if let Some(browser) = node::with_browser(filters) {
            command
                .env("NEARDUP_TEST_BROWSER", browser.packages)
                .env("NEARDUP_TEST_CHROMIUM", browser.chromium);
        }
        programs::run("suite", command)
    }

    /// Prints the list of skipped tests, and counts them as skipped.
    pub fn count_skipped(&self, counts: &mut Counts) {
        let list = fs::read_to_string(&self.skip_list).unwrap_or_default();
        print!("{list}");
        counts.skip(&list);
    }

    /// Returns the program with the tests over a connection, and its filters.
    fn suite(&self) -> Option<(&Program, &[String])> {
        let is_selected = |it: &&Selected| it.package.name == SERVER_TESTS;
        let selected = self.selected.iter().find(is_selected)?;
        let is_suite = |it: &&Program| it.package.name == SERVER_TESTS && it.target == "suite";
        let suite = self.programs.iter().find(is_suite)?;
        Some((suite, &selected.filters))
    }

    fn provide_server(&self, command: &mut Command) {
        command
            .env("NEARDUP_TEST_SKIPPED", &self.skip_list)
            .env("NEARDUP_TEST_CONNINFO", self.server.conninfo("postgres"));
        provide(command, self.private, PURPOSE);
        if self.private.has_citus {
            command.env("NEARDUP_TEST_CITUS", "1");
        }
    }
}

/// Returns the seed of the property tests: the user's, or a fresh seed.
fn property_seed() -> String {
    std::env::var(SEED).unwrap_or_else(|_| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default().as_nanos().to_string()
    })
}

/// Tells tests where they can create servers, whose names begin with `purpose`.
pub fn provide(command: &mut Command, private: &Private, purpose: &str) {
    let instance = &private.instance;
    command
        .env("NEARDUP_TEST_BINDIR", &instance.bindir)
        .env("NEARDUP_TEST_DATA_ROOT", &instance.data_root)
        .env("NEARDUP_TEST_OS_USER", instance.user.name())
        .env("NEARDUP_TEST_SERVERS", purpose);
}
