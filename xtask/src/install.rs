//! `cargo xtask install`: builds the extension and installs it into an existing server.
use crate::setup::PgChoice;
use crate::{extension, setup, ui};
use anyhow::{Result, bail};
use neardup_pgserver::{Artifacts, PgConfig};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Builds the extension for the chosen server, and copies the library, the control file and the
/// scripts into the server's folders.
pub fn command(choice: &PgChoice) -> Result<ExitCode> {
    let pg = setup::run_for_installed(choice)?.pg;
    let artifacts = extension::build(&pg)?;
    let files = destinations(&pg, &artifacts);
    for (source, target) in &files {
        if let Err(error) = place(source, target) {
            if error.kind() == ErrorKind::PermissionDenied {
                bail!(
                    "{} may not be written by this user. The build is done; to copy it there, \
                     type\n\n  sudo make install PG_CONFIG='{}'",
                    target.display(),
                    pg.program.display()
                );
            }
            bail!("cannot write {}: {error}", target.display());
        }
        ui::note(target.display());
    }
    ui::heading(format!(
        "Installed for {}. In each database that wants it: CREATE EXTENSION {};",
        pg.version,
        extension::NAME
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns each file to install with the path at which the server expects it.
fn destinations(pg: &PgConfig, artifacts: &Artifacts) -> Vec<(PathBuf, PathBuf)> {
    let share = pg.sharedir().join("extension");
    let library = format!("{}.{}", artifacts.name, pg.library_suffix());
    let library = pg.pkglibdir().join(library);
    let mut files = vec![(artifacts.library.clone(), library)];
    for source in &artifacts.share {
        let name = source.file_name().unwrap_or_default();
        files.push((source.clone(), share.join(name)));
    }
    files
}

/// Copies `source` to a new file beside `target`, and renames the copy to `target`. Overwriting the
/// library in place would break running backends, which have it mapped into memory.
fn place(source: &Path, target: &Path) -> std::io::Result<()> {
    let mut staged = target.as_os_str().to_owned();
    staged.push(".new");
    let placed = fs::copy(source, &staged)
        .and_then(|_| fs::set_permissions(&staged, PermissionsExt::from_mode(mode(target))))
        .and_then(|()| fs::rename(&staged, target));
    if placed.is_err() {
        fs::remove_file(&staged).ok();
    }
    placed
}

/// Returns the file mode that `make install` sets: 0755 for the library, 0644 for other files.
fn mode(target: &Path) -> u32 {
    let is_library = target
        .extension()
        .is_some_and(|ending| ending == "so" || ending == "dylib");
    if is_library { 0o755 } else { 0o644 }
}
