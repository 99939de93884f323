//! Runs the Rust tests: the tests of packages that need no server, and the tests over a connection,
//! which connect to a server.
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

/// Environment variable with the seed of proptest's random cases.
const SEED: &str = "PROPTEST_RNG_SEED";
/// Words in the names of tests over a connection that mostly wait, because the server's clock must
/// advance. A separate process runs them at the same time as the other tests.
const WAITING: [&str; 1] = ["old_snapshots::"];
/// Number of tests over a connection that run at the same time. It may exceed the number of cores,
/// because tests wait for locks, servers and the disk.
const SERVER_THREADS: &str = "4";

/// Built Rust test programs, and what they need to run.
pub struct RustTests<'a> {
    private: &'a Private,
    server: &'a Server,
    selected: &'a [Selected],
    programs: Vec<Program>,
    /// Seed of the property tests' random cases.
    seed: String,
    /// File to which each skipped test appends a line with the reason.
    skip_list: PathBuf,
}

impl<'a> RustTests<'a> {
    /// Builds the test programs of the packages in `selected`, and prints the seed of the property
    /// tests. Tests over a connection connect to `server`, and create further servers with the
    /// programs of `private`.
    ///
    /// # Errors
    ///
    /// If a program does not compile.
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

    /// Runs the tests of the selected packages that need no server, and their documentation
    /// examples.
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
            // The names of documentation examples are file names, which filters for tests do not
            // match.
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

    /// Runs the tests over a connection that mostly wait (`WAITING`), if the user gave no filters.
    /// With filters, does nothing, because [`Self::over_connections`] then runs all selected tests,
    /// also those that mostly wait.
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

    /// Runs the tests over a connection. Before, provides the Python packages, the Node.js packages
    /// and the browser that they need. Without filters, skips the tests that [`Self::waiting`]
    /// runs.
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

    /// Prints the list of skipped tests, and counts them as skipped instead of passed in `counts`.
    pub fn count_skipped(&self, counts: &mut Counts) {
        let list = fs::read_to_string(&self.skip_list).unwrap_or_default();
        print!("{list}");
        counts.skip(&list);
    }

    /// Returns the test program with the tests over a connection, and the filters with which to run
    /// it. `None` if no such test is selected.
    fn suite(&self) -> Option<(&Program, &[String])> {
        let is_selected = |it: &&Selected| it.package.name == SERVER_TESTS;
        let selected = self.selected.iter().find(is_selected)?;
        let is_suite = |it: &&Program| it.package.name == SERVER_TESTS && it.target == "suite";
        let suite = self.programs.iter().find(is_suite)?;
        Some((suite, &selected.filters))
    }

    /// Sets the environment variables of a test program by which it finds the shared server,
    /// creates servers, and reports skipped tests.
    fn provide_server(&self, command: &mut Command) {
        command
            .env("NEARDUP_TEST_SKIPPED", &self.skip_list)
            .env("NEARDUP_TEST_CONNINFO", self.server.conninfo("postgres"));
        set_server_variables(command, self.private, PURPOSE);
        if self.private.has_citus {
            command.env("NEARDUP_TEST_CITUS", "1");
        }
    }
}

/// Returns the seed of the property tests: the value that the user has set in [`SEED`], or a fresh
/// one.
fn property_seed() -> String {
    std::env::var(SEED).unwrap_or_else(|_| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default().as_nanos().to_string()
    })
}

/// Sets environment variables in `command`, which runs a test program, so that its tests can create
/// servers from the programs of `private`. The names of these servers begin with `purpose`.
pub fn set_server_variables(command: &mut Command, private: &Private, purpose: &str) {
    let instance = &private.instance;
    command
        .env("NEARDUP_TEST_BINDIR", &instance.bindir)
        .env("NEARDUP_TEST_DATA_ROOT", &instance.data_root)
        .env("NEARDUP_TEST_OS_USER", instance.user.name())
        .env("NEARDUP_TEST_SERVERS", purpose);
}
