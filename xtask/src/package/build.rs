//! Settings of a build of the extension for packages, and checks of the built library. Its bytes
//! depend on the sources and the compiler, not on the folders of the machine.
use super::release::Release;
use crate::cargo::{metadata, workspace};
use crate::program;
use anyhow::{Context, Result, ensure};
use neardup_pgserver::PgConfig;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiler flag for a library that is linked dynamically with the C library. It is the default,
/// except for musl with rustup's compiler. It is also in `.cargo/config.toml`, but the variable
/// CARGO_ENCODED_RUSTFLAGS replaces the flags there.
const DYNAMIC: &str = "-Ctarget-feature=-crt-static";

/// Returns the environment variables for a build in the target folder `target`. They keep paths of
/// this machine out of the built library, including paths of the server `pg`, if it is given. They
/// also replace compiler flags that the user has set, because such flags would change the bytes of
/// the library.
pub fn variables(
    pg: Option<&PgConfig>,
    release: &Release,
    target: &Path,
) -> Result<Vec<(&'static str, OsString)>> {
    let folders = renamed_folders(pg, target)?;
    let mapped = |flag: &str| -> Vec<String> {
        (folders.iter())
            .map(|(folder, name)| format!("{flag}={}={name}", folder.display()))
            .collect()
    };
    let mut rust = mapped("--remap-path-prefix");
    rust.push(DYNAMIC.to_owned());
    Ok(vec![
        // cargo separates the flags by this character, because paths may contain blanks.
        ("CARGO_ENCODED_RUSTFLAGS", rust.join("\x1f").into()),
        ("CFLAGS", mapped("-ffile-prefix-map").join(" ").into()),
        ("CARGO_INCREMENTAL", "0".into()),
        ("SOURCE_DATE_EPOCH", release.epoch.to_string().into()),
        ("LC_ALL", "C".into()),
        ("TZ", "UTC".into()),
    ])
}

/// Returns the folders of this machine whose paths could get into the library, each with the name
/// that replaces its path there. `target` is the target folder of the build. `pg` is the server to
/// build for, if there is one. The order matters: the compiler applies the last match, so an inner
/// folder follows its outer folder.
fn renamed_folders(pg: Option<&PgConfig>, target: &Path) -> Result<Vec<(PathBuf, &'static str)>> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = program::output(Command::new(rustc).args(["--print", "sysroot"]))?;
    let mut folders = vec![(PathBuf::from(sysroot), "rust")];
    folders.extend(pg.map(|pg| (pg.server_headers().to_owned(), "postgresql")));
    folders.extend(
        crate_folders()?
            .into_iter()
            .map(|folder| (folder, "crates")),
    );
    folders.push((workspace().to_owned(), "neardup"));
    folders.push((target.to_owned(), "target"));
    Ok(folders)
}

/// Returns the folders into which cargo has unpacked the crates of the build. Each registry has one
/// folder.
fn crate_folders() -> Result<BTreeSet<PathBuf>> {
    let packages = metadata(&["--locked"])?["packages"].take();
    let mut folders = BTreeSet::new();
    for package in packages.as_array().into_iter().flatten() {
        if !package["source"].is_null()
            && let Some(manifest) = package["manifest_path"].as_str()
            && let Some(folder) = Path::new(manifest).ancestors().nth(2)
        {
            folders.insert(folder.to_owned());
        }
    }
    ensure!(!folders.is_empty(), "cargo metadata names no crate");
    Ok(folders)
}

/// Copies the library `from` to `to` without symbols and notes, like Debian's dh_strip.
///
/// # Errors
/// If the program `strip` is missing.
pub fn strip(from: &Path, to: &Path) -> Result<()> {
    let mut strip = Command::new("strip");
    strip.args(["--strip-unneeded", "--enable-deterministic-archives"]);
    strip.args(["--remove-section=.comment", "--remove-section=.note", "-o"]);
    program::run(strip.arg(to).arg(from)).context("cannot strip the library")
}

/// Checks that the bytes of a library do not contain paths of this machine.
///
/// # Errors
/// If the library contains such a path. The error has the first one.
pub fn ensure_no_paths(library: &Path) -> Result<()> {
    let bytes = fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
    let mut private = vec![workspace().to_owned()];
    private.extend(crate_folders()?);
    private.extend(
        ["HOME", "CARGO_HOME", "RUSTUP_HOME"]
            .iter()
            .filter_map(|name| {
                let folder = PathBuf::from(std::env::var_os(name)?);
                // Every path contains the root folder, so it is not searched for.
                (folder.components().count() > 1).then_some(folder)
            }),
    );
    for folder in private {
        let text = format!("{}/", folder.display());
        let found = find(&bytes, text.as_bytes());
        ensure!(
            found.is_none(),
            "{} contains a path of this machine: {}",
            library.display(),
            found.map_or(String::new(), |at| printable(&bytes[at..]))
        );
    }
    Ok(())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// Returns the visible ASCII characters at the start of `bytes`, at most 100. A space ends them.
fn printable(bytes: &[u8]) -> String {
    let shown = bytes
        .iter()
        .take(100)
        .take_while(|byte| byte.is_ascii_graphic());
    shown.map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_are_found() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let library = dir.path().join("a.so");
        fs::write(&library, "\0\x7fELF crates/serde-1/src/lib.rs\0")?;
        ensure_no_paths(&library)?;
        let path = workspace().join("src/lib.rs");
        fs::write(&library, format!("\0\x7fELF {}\0rest", path.display()))?;
        let error = ensure_no_paths(&library).unwrap_err().to_string();
        assert!(error.ends_with(&path.display().to_string()), "{error}");
        Ok(())
    }
}
