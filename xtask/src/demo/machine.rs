//! Documents that every machine with cargo has: the licences and README files of the packages that
//! cargo has downloaded for this workspace, and the copyright files of Debian's packages.
use super::document::{Complaints, Take};
use super::folder::read_file;
use crate::cargo::workspace;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const DEBIAN: &str = "/usr/share/doc";

/// Reads them all, in the order of their names.
pub fn read(complaints: &mut Complaints, take: &mut Take) -> Result<()> {
    let lock = workspace().join("Cargo.lock");
    let lock =
        fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    for dir in package_dirs(&lock, &registries()) {
        let package = name_of(&dir);
        for path in entries(&dir) {
            let name = name_of(&path);
            if is_document(&name) && path.is_file() {
                read_file(&path, format!("{package}/{name}"), complaints, take)?;
            }
        }
    }
    for dir in entries(Path::new(DEBIAN)) {
        // Packages share a folder by links; each file counts once.
        let path = dir.join("copyright");
        if !dir.is_symlink() && path.is_file() && !path.is_symlink() {
            let name = format!("doc/{}/copyright", name_of(&dir));
            read_file(&path, name, complaints, take)?;
        }
    }
    Ok(())
}

/// Folders of the workspace's dependencies that cargo has downloaded. Calling `cargo metadata`
/// would download the others, those that only tests need.
fn package_dirs(cargo_lock: &str, registries: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let field = |line: &str, name: &str| -> Option<String> {
        let value = line.strip_prefix(name)?.strip_prefix(" = ")?;
        Some(value.trim_matches('"').to_owned())
    };
    let mut dirs = BTreeSet::new();
    for package in cargo_lock.split("[[package]]") {
        let value = |name| package.lines().find_map(|line| field(line, name));
        if let (Some(name), Some(version)) = (value("name"), value("version")) {
            let found = registries
                .iter()
                .map(|dir| dir.join(format!("{name}-{version}")));
            dirs.extend(found.filter(|dir| dir.is_dir()));
        }
    }
    dirs
}

/// Folders into which cargo unpacks packages.
fn registries() -> BTreeSet<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    home.map_or(BTreeSet::new(), |home| entries(&home.join("registry/src")))
}

/// LICENSE-MIT, COPYING, README.md and the like.
fn is_document(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "license",
        "licence",
        "copying",
        "copyright",
        "notice",
        "unlicense",
        "readme",
    ]
    .iter()
    .any(|beginning| name.starts_with(beginning))
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// A folder's entries in the order of their names; none when it cannot be read.
fn entries(dir: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_that_are_there_count() {
        let registry = tempfile::tempdir().unwrap();
        for name in ["serde-1.0.0", "serde-0.9.0", "other-1.0.0"] {
            fs::create_dir(registry.path().join(name)).unwrap();
        }
        let lock = "version = 4\n\n[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"absent\"\nversion = \"1.0.0\"\n";
        let dirs = package_dirs(lock, &BTreeSet::from([registry.path().to_owned()]));
        assert_eq!(Vec::from_iter(dirs), [registry.path().join("serde-1.0.0")]);
    }

    #[test]
    fn documents_are_told_by_their_names() {
        for name in ["LICENSE-MIT", "Readme.md", "COPYING", "UNLICENSE"] {
            assert!(is_document(name), "{name}");
        }
        for name in ["Cargo.toml", "src", "CHANGELOG.md"] {
            assert!(!is_document(name), "{name}");
        }
    }
}
