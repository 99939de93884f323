//! Makes a package for rpm with rpmbuild, from the packed sources and the specification. The
//! package installs its files into the same folders as the server that it is built for.
use super::stage;
use crate::program;
use anyhow::{Context, Result};
use neardup_pgserver::PgConfig;
use std::path::{Path, PathBuf};
use std::process::Command;
use walkdir::WalkDir;

/// Returns whether users can install a package that is built for the server `pg`. The package
/// installs its files into the folders of this server. So they must be the folders of the servers
/// in PostgreSQL's repository for rpm, which the users have.
pub fn is_for_users(pg: &PgConfig) -> bool {
    pg.bindir() == Path::new(&format!("/usr/pgsql-{}/bin", pg.major))
}

/// Builds the package for the server `pg`. Its sources are the files that [`super::source::make`]
/// has written to the folder `output`. Returns the path of the package, which is in the folder
/// `work`.
///
/// # Errors
/// If rpmbuild is missing or fails.
pub fn make(pg: &PgConfig, work: &Path, output: &Path) -> Result<PathBuf> {
    program::output(Command::new("rpmbuild").arg("--version"))
        .context("needs rpmbuild, which Debian's package rpm has")?;
    let top = work.join(format!("rpm-pg{}", pg.major));
    stage::empty(&top)?;
    let mut build = Command::new("rpmbuild");
    // rpm does not know the installed server and compiler if they are not from rpm packages.
    build.args(["-bb", "--quiet", "--nodeps"]);
    for (name, value) in [
        ("pg_major", pg.major.to_string()),
        ("pg_config", pg.program.display().to_string()),
        ("_sourcedir", output.display().to_string()),
        ("_topdir", top.display().to_string()),
    ] {
        build.arg("--define").arg(format!("{name} {value}"));
    }
    build.arg(output.join("neardup.spec")).env(
        "CARGO_TARGET_DIR",
        work.join(format!("rpm-build-pg{}", pg.major)),
    );
    program::run(&mut build).context("rpmbuild failed")?;
    for entry in WalkDir::new(top.join("RPMS")) {
        let path = entry?.into_path();
        if path.extension().is_some_and(|it| it == "rpm") {
            return Ok(path);
        }
    }
    anyhow::bail!("rpmbuild made no package")
}
