//! Writes files and archives for packages, with file modes that do not depend on the umask.
use super::release::Release;
use crate::program;
use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Creates the empty folder `dir`. If it exists, removes its content first.
pub fn empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))
}

/// Writes `content` to the file `path`, and sets the file's mode to `mode`. Creates the parent
/// folders of the file.
pub fn write(path: &Path, content: impl AsRef<[u8]>, mode: u32) -> Result<()> {
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, content)?;
        fs::set_permissions(path, PermissionsExt::from_mode(mode))
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Copies the file `from` to `to`, and sets the mode of the copy to `mode`. Creates the parent
/// folders of `to`.
pub fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    write(to, content, mode)
}

/// Unpacks a zip archive into the folder `to`, which is emptied first. The files get default modes,
/// because Python's zip module ignores the modes in the archive.
///
/// # Errors
/// If python3 is missing.
pub fn unzip(archive: &Path, to: &Path) -> Result<()> {
    empty(to)?;
    let mut unzip = Command::new("python3");
    program::run(unzip.args(["-m", "zipfile", "-e"]).arg(archive).arg(to))
}

/// Returns `content` compressed like `gzip -9n`, without file name and time, so that equal contents
/// give equal bytes.
pub fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

/// Packs the folder `name` in `parent` into the archive `to` (.tar.gz). The bytes of the archive
/// depend only on file names, contents and the time of `release`.
///
/// # Errors
/// If GNU tar is missing.
pub fn archive(parent: &Path, name: &str, release: &Release, to: &Path) -> Result<()> {
    let plain = parent.join(format!("{name}.tar"));
    tar(parent, &[name], release, &plain)?;
    let content = fs::read(&plain)?;
    fs::remove_file(&plain)?;
    write(to, gzip(&content)?, 0o644)
}

/// Packs the files and folders `names` of `folder` into the uncompressed archive `to`. The bytes of
/// the archive depend only on file names, contents and the time of `release`.
///
/// # Errors
/// If GNU tar is missing.
pub fn tar(folder: &Path, names: &[&str], release: &Release, to: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.current_dir(folder)
        .args(["--format=ustar", "--sort=name", "--numeric-owner"]);
    // The modes of folders depend on the umask.
    tar.args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{}", release.epoch));
    tar.arg("--create").arg("--file").arg(to).args(names);
    program::run(&mut tar).context("cannot run GNU tar")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_depend_on_names_and_contents_alone() -> Result<()> {
        let release = Release {
            version: "0.1.0".into(),
            epoch: 1_000_000_000,
            maintainer: None,
            repository: None,
        };
        let dir = tempfile::tempdir()?;
        let mut archives = Vec::new();
        for (folder, names) in [("one", ["x/a", "x/b/c"]), ("two", ["x/b/c", "x/a"])] {
            let parent = dir.path().join(folder);
            for name in names {
                write(&parent.join(name), name, 0o644)?;
            }
            fs::set_permissions(parent.join("x/b"), PermissionsExt::from_mode(0o700))?;
            let to = parent.join("x.tar.gz");
            archive(&parent, "x", &release, &to)?;
            archives.push(fs::read(to)?);
            std::thread::sleep(std::time::Duration::from_millis(1100));
        }
        assert_eq!(archives[0], archives[1]);
        Ok(())
    }
}
