//! Provides the folders, usually below `target/servers`, into which servers are unpacked.
use crate::{cargo, ui};
use anyhow::{Context, Result, bail};
use neardup_pgserver::{OsUser, candidate_dirs, own_dir};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the folder `name` below `target/servers`, and fills it first if necessary. If the
/// operating system user of the server cannot enter `target/servers`, the folder is below a
/// temporary folder instead.
///
/// `is_complete(path)` returns whether the folder at this path has all its content. If not,
/// `fill(path)` is called to fill a new, empty folder at its path, and this folder replaces the
/// incomplete one. `text` is shown to the user while `fill` runs.
///
/// # Errors
/// If the server's user can enter neither folder, or `fill` fails.
pub fn provide(
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

/// Calls `fill` to fill a temporary folder in `dir`. Renames this folder to `root` when it is
/// complete, so that an interrupted call leaves no partial folder.
fn fill_at(dir: &Path, root: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let staging = tempfile::tempdir_in(dir)?;
    let tree = staging.path().join("tree");
    fs::create_dir(&tree)?;
    fill(&tree)?;
    // The server's user must be able to read the folder, whatever the umask is.
    fs::set_permissions(&tree, PermissionsExt::from_mode(0o755))?;
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    fs::rename(&tree, root).with_context(|| format!("cannot make {}", root.display()))
}
