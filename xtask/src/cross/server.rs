//! Provides a PostgreSQL server for another processor, from Debian packages. Scripts that call QEMU
//! replace the server's programs, so that callers run them like any server.
use super::Machine;
use super::debian::{Age, Packages};
use super::toolchain::Toolchain;
use crate::program::write_program;
use crate::setup::os_release;
use crate::ui;
use anyhow::{Context, Result};
use neardup_pgserver::PgConfig;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Debian suite from which the server is taken if this system is not Debian. On Debian, the server
/// is taken from the suite of this system.
const SUITE: &str = "bookworm";
/// Packages that Debian's server packages need for their installation, but not to run the server.
/// They are not downloaded.
const ASSUMED: [&str; 19] = [
    "adduser",
    "debconf",
    "dpkg",
    "init-system-helpers",
    "locales",
    "lsb-base",
    "netbase",
    "openssl",
    "passwd",
    "perl",
    "postgresql-client-common",
    "postgresql-common",
    "procps",
    "sensible-utils",
    "ssl-cert",
    "sysvinit-utils",
    "tar",
    "tzdata",
    "ucf",
];

/// Returns the server for the toolchain's machine. The first call downloads it and unpacks it below
/// the toolchain's folder.
///
/// # Errors
/// If the server cannot be downloaded, or does not run.
pub fn provide(toolchain: &Toolchain) -> Result<PgConfig> {
    let root = toolchain.root.join("server");
    if !root.is_dir() {
        let text = format!(
            "Bringing Debian's PostgreSQL for {} (70 MB)",
            toolchain.machine.debian
        );
        ui::step(text, || unpack(toolchain, &root))?;
    }
    PgConfig::from_program(&bindir(&root)?.join("pg_config"))
}

/// Downloads the server and unpacks it into a temporary folder. Renames this folder to `root` when
/// it is complete, so that an interrupted call leaves no partial server.
fn unpack(toolchain: &Toolchain, root: &Path) -> Result<()> {
    let machine = toolchain.machine.debian;
    let staging = tempfile::tempdir_in(&toolchain.root)?;
    let lists = staging.path().join("apt");
    // Takes the suite of this system, because the compiler links with this system's C library.
    let suite = suite();
    let packages = Packages::fetch(&lists, &[machine], (&[&suite], Age::Valid), &ASSUMED)?;
    packages.download(&["postgresql"])?;
    let tree = staging.path().join("tree");
    fs::create_dir(&tree)?;
    packages.unpack(&tree)?;
    let bindir = bindir(&tree)?;
    let major = bindir
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default();
    packages.download_alone(&format!("postgresql-server-dev-{}", major.display()))?;
    packages.unpack(&tree)?;
    wrap(toolchain, &bindir, &tree, root)?;
    fs::set_permissions(&tree, PermissionsExt::from_mode(0o755))?;
    fs::rename(&tree, root).with_context(|| format!("cannot make {}", root.display()))
}

/// Returns the folder of the server's programs below `root`.
fn bindir(root: &Path) -> Result<PathBuf> {
    let versions = root.join("usr/lib/postgresql");
    let context = || format!("no server in {}", versions.display());
    let version = fs::read_dir(&versions).with_context(context)?.next();
    Ok(version.with_context(context)??.path().join("bin"))
}

/// Moves the programs in the folder `bindir` to another folder. In `bindir`, replaces each of them
/// by a script that runs it by QEMU. `bindir` is below `tree`, which will be renamed to `root`
/// later, so the scripts contain paths below `root`.
fn wrap(toolchain: &Toolchain, bindir: &Path, tree: &Path, root: &Path) -> Result<()> {
    let Machine { debian, .. } = toolchain.machine;
    let programs = bindir.with_file_name(format!("bin-{debian}"));
    fs::rename(bindir, &programs)?;
    fs::create_dir(bindir)?;
    fs::set_permissions(bindir, PermissionsExt::from_mode(0o755))?;
    for entry in fs::read_dir(&programs)? {
        let program = entry?.path();
        let name = program.file_name().unwrap_or_default();
        let final_path = root.join(program.strip_prefix(tree)?);
        // PostgreSQL's programs find their folders from the name by which they are called. `-0`
        // passes that name.
        let text = format!(
            "#!/bin/sh\nexec '{qemu}' -L '{root}' -0 \"$0\" '{program}' \"$@\"\n",
            qemu = toolchain.programs.qemu.display(),
            root = root.display(),
            program = final_path.display(),
        );
        write_program(&bindir.join(name), &text)?;
    }
    Ok(())
}

/// Returns the codename of this system's Debian suite, or the default suite if this system is not
/// Debian.
fn suite() -> String {
    os_release::debian_suite().unwrap_or_else(|| SUITE.to_owned())
}
