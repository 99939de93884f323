//! `cargo xtask arm64` and `cargo xtask s390x`: tests on another processor, emulated by QEMU. On
//! 64-bit ARM also tests the extension in a server for that processor.
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

/// Processor architecture, by the names that different projects use.
pub struct Machine {
    /// Name in Debian.
    debian: &'static str,
    /// Name in QEMU programs.
    qemu: &'static str,
    /// Name in GNU compilers.
    gnu: &'static str,
    /// Name in Rust.
    rust: &'static str,
}

/// 64-bit ARM: little-endian, with NEON.
pub const ARM64: Machine = Machine {
    debian: "arm64",
    qemu: "aarch64",
    gnu: "aarch64-linux-gnu",
    rust: "aarch64-unknown-linux-gnu",
};

/// IBM Z: big-endian.
pub const S390X: Machine = Machine {
    debian: "s390x",
    qemu: "s390x",
    gnu: "s390x-linux-gnu",
    rust: "s390x-unknown-linux-gnu",
};

/// Packages without PostgreSQL that write or read stored data.
const PURE: [&str; 2] = ["neardup-sketch", "neardup-blocktree"];

/// Variable for the number of cases of each property test of the tree, which take longest, and its
/// value under QEMU.
const TREE_CASES: (&str, &str) = ("NEARDUP_TEST_TREE_CASES", "4");

/// Options of the command line.
#[derive(clap::Args)]
pub struct Options {
    /// Leave out the pure packages
    #[arg(long)]
    extension_only: bool,
    /// Leave out the extension and its server
    #[arg(long)]
    pure_only: bool,
    /// Parts of names: of golden files and of tests over a connection [default: all golden files]
    filters: Vec<String>,
}

/// `cargo xtask arm64`: the tests of the pure packages, and the extension in a server.
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

/// `cargo xtask s390x`: the tests of the pure packages.
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

/// Returns the folder for the files of a machine. The server's user must be able to enter it.
fn folder(machine: &Machine) -> Result<PathBuf> {
    let preferred = cargo::target_dir()?.join(machine.debian);
    let user = OsUser::for_server()?;
    candidate_dirs(&preferred, machine.debian)
        .into_iter()
        .find(|dir| own_dir(dir).and_then(|()| user.can_enter(dir)).is_ok())
        .with_context(|| format!("the server's user cannot enter {}", preferred.display()))
}

/// Runs the tests of the pure packages. Returns whether they pass.
fn pure(toolchain: &Toolchain) -> Result<bool> {
    ui::heading(format!(
        "cargo test for {}: {}",
        toolchain.machine.rust,
        PURE.join(", ")
    ));
    let mut command = cargo::cargo();
    // Skips documentation examples, because Debian's rustdoc starts its rustc without the bundled
    // libraries. They are tested on this machine.
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

/// Builds the extension and tests it in a server. Returns whether the tests pass.
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
