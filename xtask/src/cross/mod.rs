//! `cargo xtask arm64` and `cargo xtask s390x`: run tests for another processor, which QEMU
//! emulates. `arm64` also tests the extension in a PostgreSQL server for that processor.
mod debian;
mod programs;
mod server;
mod toolchain;

use crate::private::Private;
use crate::{cargo, extension, signals, test, ui};
use anyhow::{Context, Result, ensure};
use neardup_pgserver::{Instance, OsUser, PrivateCopy, candidate_dirs, own_dir};
use std::path::PathBuf;
use std::process::ExitCode;
use toolchain::Toolchain;

/// Processor architecture (machine) to test for, with its names in different projects.
pub struct Machine {
    /// Name of the architecture in Debian, for example `arm64`.
    debian: &'static str,
    /// Name of the architecture in QEMU's program names, for example `aarch64`.
    qemu: &'static str,
    /// Name of the target in GNU compilers, for example `aarch64-linux-gnu`.
    gnu: &'static str,
    /// Name of the target in Rust, for example `aarch64-unknown-linux-gnu`.
    rust: &'static str,
}

/// 64-bit ARM, which is little-endian and has the vector instructions NEON.
pub const ARM64: Machine = Machine {
    debian: "arm64",
    qemu: "aarch64",
    gnu: "aarch64-linux-gnu",
    rust: "aarch64-unknown-linux-gnu",
};

/// IBM Z, which is big-endian.
pub const S390X: Machine = Machine {
    debian: "s390x",
    qemu: "s390x",
    gnu: "s390x-linux-gnu",
    rust: "s390x-unknown-linux-gnu",
};

/// Names of the pure packages, which contain no code for PostgreSQL. They read and write stored
/// data, so they must give the same bytes on every processor.
const PURE: [&str; 2] = ["neardup-sketch", "neardup-blocktree"];

/// Environment variable for the property tests of the index tree, and its value under QEMU: the
/// number of random cases for each test. The number is low, because these tests take longest.
const TREE_CASES: (&str, &str) = ("NEARDUP_TEST_TREE_CASES", "4");

/// Options of `cargo xtask arm64`.
#[derive(clap::Args)]
pub struct Options {
    /// Skip the tests of the packages without code for PostgreSQL
    #[arg(long)]
    extension_only: bool,
    /// Skip the tests of the extension in a server
    #[arg(long)]
    pure_only: bool,
    /// Run only the golden files and tests over a connection whose names contain one of these
    /// [default: all golden files]
    filters: Vec<String>,
}

/// Runs `cargo xtask arm64`: the tests of the packages without code for PostgreSQL, and the tests
/// of the extension in a server. Options may skip one of the two. The exit code is 0 if all tests
/// pass, else 1.
pub fn arm64(options: &Options) -> Result<ExitCode> {
    let toolchain = toolchain(&ARM64)?;
    let mut passed = true;
    if !options.extension_only {
        passed &= pure(&toolchain)?;
    }
    if !options.pure_only {
        passed &= in_server(&toolchain, &options.filters)?;
    }
    signals::wait_if_interrupted();
    Ok(ExitCode::from(u8::from(!passed)))
}

/// Runs `cargo xtask s390x`: the tests of the packages without code for PostgreSQL. The exit code
/// is 0 if all tests pass, else 1.
pub fn s390x() -> Result<ExitCode> {
    let passed = pure(&toolchain(&S390X)?)?;
    signals::wait_if_interrupted();
    Ok(ExitCode::from(u8::from(!passed)))
}

fn toolchain(machine: &'static Machine) -> Result<Toolchain> {
    ensure!(
        cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "Debian's compilers are taken for Linux on x86-64 alone"
    );
    let programs = programs::provide(machine)?;
    Toolchain::provide(machine, programs, &folder(machine)?)
}

/// Returns the folder for all files of a machine: compiler, server and builds. The operating system
/// user that runs the server can enter it.
fn folder(machine: &Machine) -> Result<PathBuf> {
    let preferred = cargo::target_dir()?.join(machine.debian);
    let user = OsUser::for_server()?;
    candidate_dirs(&preferred, machine.debian)
        .into_iter()
        .find(|dir| own_dir(dir).and_then(|()| user.can_enter(dir)).is_ok())
        .with_context(|| format!("the server's user cannot enter {}", preferred.display()))
}

/// Runs the tests of the packages in [`PURE`] under QEMU. Returns whether they pass.
fn pure(toolchain: &Toolchain) -> Result<bool> {
    ui::heading(format!(
        "cargo test for {}: {}",
        toolchain.machine.rust,
        PURE.join(", ")
    ));
    let mut command = cargo::cargo();
    // Documentation examples are skipped, because Debian's rustdoc starts rustc without the
    // libraries that are unpacked with it. The usual tests run these examples.
    command.args(["test", "--release", "--no-fail-fast", "--lib", "--tests"]);
    for name in PURE {
        command.args(["--package", name]);
    }
    let (variable, cases) = TREE_CASES;
    if std::env::var_os(variable).is_none() {
        command.env(variable, cases);
        ui::note(format!(
            "property tests of the tree: {cases} cases each, fewer than on this machine, since \
             QEMU is slow; {variable}=NUMBER overrules it"
        ));
    }
    let status = command
        .arg("--target-dir")
        .arg(&toolchain.build)
        .envs(toolchain.variables())
        .status()
        .context("cannot run cargo")?;
    Ok(status.success())
}

/// Builds the extension for the toolchain's machine, and runs the tests that `filters` select in a
/// server under QEMU; without filters, all golden files. Returns whether the tests pass.
fn in_server(toolchain: &Toolchain, filters: &[String]) -> Result<bool> {
    let pg = server::provide(toolchain)?;
    let artifacts = extension::build_for(
        &pg,
        &toolchain.build,
        Some(toolchain.machine.rust),
        &toolchain.variables(),
    )?;
    let user = OsUser::for_server()?;
    let preferred = toolchain.root.join("pg").join(pg.major.to_string());
    let copy = PrivateCopy::make(&pg, &preferred, &user)?;
    copy.install(&artifacts)?;
    let private = Private {
        pg,
        artifacts,
        instance: Instance::new(&copy, user),
        has_citus: false,
    };
    test::on_foreign(&private, filters)
}
