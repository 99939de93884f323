//! `cargo xtask torture`: runs tests that kill servers at random moments or put load on them, for
//! as long as the user wants.
use crate::cargo::cargo;
use crate::private::{self, Private};
use crate::setup::PgChoice;
use crate::{signals, test, ui};
use anyhow::{Context, Result};
use clap::Args;
use neardup_pgserver::stop_leftovers;
use std::process::{ExitCode, Stdio};

/// Prefix of the names of the servers that these tests create.
const PURPOSE: &str = "torture";
/// Test that kills a server repeatedly.
const CRASHES: &str = "server::torture::killed_at_random_moments_the_index_holds";
/// Test that puts load on a server.
const LOAD: &str = "server::load::many_clients_with_pgbench_agree";

/// Options of `cargo xtask torture`.
#[derive(Args)]
pub struct Options {
    /// Number of times that a server is killed; 0 skips this test
    #[arg(long, default_value_t = 50)]
    rounds: u64,
    /// Maximum time that clients work before the server is killed, in seconds
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    seconds: f64,
    /// Seed of the data and of the clients' work; the moments at which servers are killed vary all
    /// the same
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// After the kills, let many pgbench clients mix all kinds of statements for this time; 0 skips
    /// this test
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    load: u64,
    /// Number of pgbench clients for --load
    #[arg(long, default_value_t = 16)]
    clients: u64,
}

/// Runs the tests that the options select, one after the other.
pub fn command(choice: &PgChoice, options: &Options) -> Result<ExitCode> {
    let private = private::prepare(choice)?;
    let dir = private.instance.data_root.clone();
    let lock = private::reserve_server_names(&dir, PURPOSE)?;
    let milliseconds = (options.seconds * 1e3).max(1.0) as u64;
    let mut well = true;
    if options.rounds > 0 {
        ui::heading(format!(
            "Killing a server {}, seed {}",
            ui::plural(options.rounds as usize, "time", "times"),
            options.seed
        ));
        let settings = [
            ("ROUNDS", options.rounds),
            ("SEED", options.seed),
            ("MILLISECONDS", milliseconds),
        ];
        well &= run(&private, CRASHES, &settings)?;
    }
    if options.load > 0 {
        ui::heading(format!(
            "{} for {} s",
            ui::plural(options.clients as usize, "client", "clients"),
            options.load
        ));
        let settings = [
            ("SEED", options.seed),
            ("LOAD_SECONDS", options.load),
            ("CLIENTS", options.clients),
        ];
        well &= run(&private, LOAD, &settings)?;
    }
    stop_leftovers(&dir, PURPOSE)?;
    drop(lock);
    signals::wait_if_interrupted();
    Ok(ExitCode::from(u8::from(!well)))
}

/// Runs the test `name` and shows its output. `settings` are environment variables for the test:
/// their names without the prefix NEARDUP_TEST_, and their values. Returns whether the test passed.
fn run(private: &Private, name: &str, settings: &[(&str, u64)]) -> Result<bool> {
    let mut command = cargo();
    command.args([
        "test",
        "--quiet",
        "--package",
        "neardup-tests",
        "--test",
        "suite",
    ]);
    command.args(["--", "--exact", "--nocapture", name]);
    test::set_server_variables(&mut command, private, PURPOSE);
    for (setting, value) in settings {
        command.env(format!("NEARDUP_TEST_{setting}"), value.to_string());
    }
    let status = command
        .stdin(Stdio::null())
        .status()
        .context("cannot run cargo")?;
    Ok(status.success())
}
